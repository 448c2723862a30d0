//! The preloaded library, and the proof that a function of the process is its own.

use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The environment variable that the loader reads.
const VARIABLE: &str = "LD_PRELOAD";

/// The one library that LD_PRELOAD names.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Name of the file, without its folder.
    pub name: String,
    /// Hash of the file's bytes: xxh3, 64 bits.
    pub hash: u64,
    /// Device and inode, by which a file is the same under several names.
    file: (u64, u64),
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// The last name of a list as the loader takes it. The harness puts in one library, whose name holds no colon; valgrind puts
/// its own in front of it.
fn last_of(list: &OsStr) -> PathBuf {
    let last = list.as_bytes().rsplit(|byte| *byte == b':').next();
    PathBuf::from(OsStr::from_bytes(last.unwrap_or_default()))
}

/// The file that holds what `name` means in this process.
fn home_of(name: &CStr) -> Option<PathBuf> {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the name ends in 0; `found` has room for the answer, which is read only if the call says that it is
    // there, and whose file name lives as long as the library is loaded.
    unsafe {
        let address: *mut c_void = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        if address.is_null() || libc::dladdr(address, found.as_mut_ptr()) == 0 {
            return None;
        }
        let file = found.assume_init().dli_fname;
        (!file.is_null()).then(|| PathBuf::from(OsStr::from_bytes(CStr::from_ptr(file).to_bytes())))
    }
}

impl Loaded {
    /// What LD_PRELOAD names; whether the loader took it is for [`Loaded::defines`] to say.
    ///
    /// # Errors
    /// Why there is no such file, in words.
    pub(crate) fn preloaded() -> Result<Loaded, String> {
        let path = std::env::var_os(VARIABLE)
            .map(|list| last_of(&list))
            .ok_or("this arm is written name=path.so: the library is put in by LD_PRELOAD")?;
        let name = file_name(&path);
        let unreadable = || format!("{name} cannot be read any more");
        Ok(Loaded {
            hash: xxhash_rust::xxh3::xxh3_64(&std::fs::read(&path).map_err(|_| unreadable())?),
            file: identity(&path).ok_or_else(unreadable)?,
            name,
        })
    }

    /// Proves that the function `symbol` of this process is the library's.
    ///
    /// # Errors
    /// Whose it is, in words.
    pub(crate) fn defines(&self, symbol: &CStr) -> Result<(), String> {
        let home = home_of(symbol);
        if home.as_deref().and_then(identity) == Some(self.file) {
            return Ok(());
        }
        Err(format!(
            "refused: {} of this process is not {}'s but {}'s: not a library that the loader takes, or one without it",
            symbol.to_string_lossy(),
            self.name,
            home.as_deref().map_or("nobody".to_owned(), file_name)
        ))
    }
}
