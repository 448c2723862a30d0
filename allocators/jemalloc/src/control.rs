//! `mallctl`, jemalloc's tree of named values, with types.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{MaybeUninit, size_of};
use std::ffi::CString;
use std::fmt::Display;
use tikv_jemalloc_sys as je;

/// A type in which `mallctl` gives or takes values.
///
/// # Safety
/// Any value that jemalloc writes for a name of this size is a valid value of the type (invariant VALID).
pub(crate) unsafe trait Value: Copy {
    /// What is shown.
    type Shown: Display;
    /// Makes it showable.
    fn show(self) -> Self::Shown;
}

macro_rules! shown_as_itself {
    ($($type:ty),*) => {$(
        // SAFETY: VALID: an integer has no invalid value; a C `bool` is written as 0 or 1.
        unsafe impl Value for $type {
            type Shown = $type;
            fn show(self) -> $type { self }
        }
    )*};
}
shown_as_itself!(bool, u32, u64, usize, isize);

/// A string of jemalloc's: static, ends in 0.
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

// SAFETY: VALID: a pointer has no invalid value; that it points to a string is part of what the name means, and only
// names of strings are read as `Text`.
unsafe impl Value for Text {
    type Shown = String;
    fn show(self) -> String {
        if self.0.is_null() {
            return String::new();
        }
        // SAFETY: jemalloc's strings are static and end in 0.
        unsafe { CStr::from_ptr(self.0) }
            .to_string_lossy()
            .into_owned()
    }
}

fn name_of(name: &str) -> Result<CString, String> {
    CString::new(name).map_err(|_| format!("{name:?} has a 0 in it"))
}

fn check(name: &str, code: c_int) -> Result<(), String> {
    if code == 0 {
        Ok(())
    } else {
        Err(format!(
            "mallctl {name}: {}",
            std::io::Error::from_raw_os_error(code)
        ))
    }
}

/// Reads `name`.
pub(crate) fn read<T: Value>(name: &str) -> Result<T, String> {
    let c_name = name_of(name)?;
    let mut value = MaybeUninit::<T>::uninit();
    let mut size = size_of::<T>();
    // SAFETY: the name ends in 0; `value` has room for `size` bytes, and jemalloc checks the size against its own.
    let code = unsafe {
        je::mallctl(
            c_name.as_ptr(),
            value.as_mut_ptr().cast(),
            &mut size,
            core::ptr::null_mut(),
            0,
        )
    };
    check(name, code)?;
    if size != size_of::<T>() {
        return Err(format!(
            "mallctl {name}: {size} bytes where {} were expected",
            size_of::<T>()
        ));
    }
    // SAFETY: the call succeeded and wrote all of it; VALID.
    Ok(unsafe { value.assume_init() })
}

/// Writes `name`.
pub(crate) fn write<T: Value>(name: &str, mut value: T) -> Result<(), String> {
    let c_name = name_of(name)?;
    let new: *mut c_void = (&raw mut value).cast();
    // SAFETY: the name ends in 0; `new` points to as many bytes as said, and jemalloc checks the size.
    let code = unsafe {
        je::mallctl(
            c_name.as_ptr(),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
            new,
            size_of::<T>(),
        )
    };
    check(name, code)
}

/// Does what `name` is: a name without a value.
pub(crate) fn act(name: &str) -> Result<(), String> {
    let c_name = name_of(name)?;
    // SAFETY: the name ends in 0; nothing is read or written.
    let code = unsafe {
        je::mallctl(
            c_name.as_ptr(),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
            0,
        )
    };
    check(name, code)
}

/// What jemalloc says for `name`, or why it says nothing: for receipts.
pub(crate) fn told<T: Value>(name: &str) -> String {
    match read::<T>(name) {
        Ok(value) => value.show().to_string(),
        Err(why) => format!("unknown ({why})"),
    }
}
