//! The four variants: which arm is which, and its entry points under the prefix that the build script gave them.

#[cfg(obmalloc)]
pub(crate) use entries::{ArenaHook, BackingHook, Cold, Entries};

/// One variant of the file.
pub trait Variant: Entries {
    /// The arm's id.
    const ARM: &'static str;
    /// What was changed in the file, in words.
    const CHANGES: &'static str;
    /// Whether the last usable arena is kept when it is empty.
    const KEEPS_ONE: bool;
}

/// The file as it is.
#[derive(Debug)]
pub enum AsIs {}
/// As it is, but an empty arena goes back at once.
#[derive(Debug)]
pub enum OneMibEager {}
/// Arenas of 256 KiB, pools of 4 KiB, the address test by the pool header.
#[derive(Debug)]
pub enum Classic {}
/// Classic, but an empty arena goes back at once.
#[derive(Debug)]
pub enum Eager {}

impl Variant for AsIs {
    const ARM: &'static str = "obmalloc";
    const CHANGES: &'static str = "none";
    const KEEPS_ONE: bool = true;
}
impl Variant for OneMibEager {
    const ARM: &'static str = "obmalloc-1m-eager";
    const CHANGES: &'static str =
        "one line: an empty arena goes back even if it is the last usable one";
    const KEEPS_ONE: bool = false;
}
impl Variant for Classic {
    const ARM: &'static str = "obmalloc-classic";
    const CHANGES: &'static str = "one line: arenas of 256 KiB";
    const KEEPS_ONE: bool = true;
}
impl Variant for Eager {
    const ARM: &'static str = "obmalloc-eager";
    const CHANGES: &'static str =
        "two lines: arenas of 256 KiB; an empty arena goes back even if it is the last usable one";
    const KEEPS_ONE: bool = false;
}

/// Without the file there is nothing to enter.
#[cfg(not(obmalloc))]
mod entries {
    pub trait Entries {}
    impl Entries for super::AsIs {}
    impl Entries for super::OneMibEager {}
    impl Entries for super::Classic {}
    impl Entries for super::Eager {}
}
#[cfg(not(obmalloc))]
use entries::Entries;

#[cfg(obmalloc)]
mod entries {
    use crate::Books;
    use core::ffi::{c_char, c_int, c_void};
    use core::sync::atomic::AtomicBool;

    /// CPython's `PyMemAllocatorEx`: who serves what the file hands on.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    pub struct BackingHook {
        pub ctx: *mut c_void,
        pub malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
        pub calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
        pub realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
        pub free: unsafe extern "C" fn(*mut c_void, *mut c_void),
    }

    /// CPython's `PyObjectArenaAllocator`: where arenas come from.
    #[repr(C)]
    #[derive(Debug, Clone, Copy)]
    pub struct ArenaHook {
        pub ctx: *mut c_void,
        pub alloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
        pub free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
    }

    /// Entry points that are in nobody's hot path; see `c/unit.c`. The `domain` is always [`RAW`].
    #[repr(C)]
    pub struct Cold {
        pub adopt: unsafe extern "C" fn(),
        pub books: unsafe extern "C" fn(*mut Books),
        pub text: unsafe extern "C" fn() -> *mut c_char,
        pub reset: unsafe extern "C" fn(c_int),
        pub backing: unsafe extern "C" fn(c_int, *mut BackingHook),
        pub set_backing: unsafe extern "C" fn(c_int, *mut BackingHook),
        pub arenas: unsafe extern "C" fn(*mut ArenaHook),
        pub set_arenas: unsafe extern "C" fn(*mut ArenaHook),
    }

    impl Cold {
        /// The domain whose hook serves what the file hands on: `PYMEM_DOMAIN_RAW`.
        pub const RAW: c_int = 0;
    }

    /// The entry points of one variant. The state behind them is static and not locked.
    pub trait Entries {
        /// True while a heap of the variant is open.
        fn taken() -> &'static AtomicBool;
        /// The cold ones.
        fn cold() -> &'static Cold;
        /// # Safety
        /// Only by the one open heap, as all that follow.
        unsafe fn malloc(size: usize) -> *mut u8;
        /// # Safety
        /// As [`malloc`](Entries::malloc).
        unsafe fn calloc(count: usize, size: usize) -> *mut u8;
        /// # Safety
        /// As [`malloc`](Entries::malloc); `p` is a live block of it.
        unsafe fn realloc(p: *mut u8, size: usize) -> *mut u8;
        /// # Safety
        /// As [`malloc`](Entries::malloc); `p` is null or a live block of it, not used afterwards.
        unsafe fn free(p: *mut u8);
    }

    macro_rules! entries {
        ($variant:ident, $malloc:literal, $calloc:literal, $realloc:literal, $free:literal, $cold:literal) => {
            const _: () = {
                unsafe extern "C" {
                    #[link_name = $malloc]
                    fn malloc(size: usize) -> *mut c_void;
                    #[link_name = $calloc]
                    fn calloc(count: usize, size: usize) -> *mut c_void;
                    #[link_name = $realloc]
                    fn realloc(p: *mut c_void, size: usize) -> *mut c_void;
                    #[link_name = $free]
                    fn free(p: *mut c_void);
                    #[link_name = $cold]
                    static COLD: Cold;
                }
                impl Entries for super::$variant {
                    fn taken() -> &'static AtomicBool {
                        static TAKEN: AtomicBool = AtomicBool::new(false);
                        &TAKEN
                    }
                    fn cold() -> &'static Cold {
                        // SAFETY: a constant of `c/unit.c`, of this layout.
                        unsafe { &COLD }
                    }
                    #[inline]
                    unsafe fn malloc(size: usize) -> *mut u8 {
                        // SAFETY: the caller's promise is the one asked for.
                        unsafe { malloc(size).cast() }
                    }
                    #[inline]
                    unsafe fn calloc(count: usize, size: usize) -> *mut u8 {
                        // SAFETY: the caller's promise is the one asked for.
                        unsafe { calloc(count, size).cast() }
                    }
                    #[inline]
                    unsafe fn realloc(p: *mut u8, size: usize) -> *mut u8 {
                        // SAFETY: the caller's promise is the one asked for.
                        unsafe { realloc(p.cast(), size).cast() }
                    }
                    #[inline]
                    unsafe fn free(p: *mut u8) {
                        // SAFETY: the caller's promise is the one asked for.
                        unsafe { free(p.cast()) }
                    }
                }
            };
        };
    }

    entries!(
        AsIs,
        "heaplab_obm_as_is_malloc",
        "heaplab_obm_as_is_calloc",
        "heaplab_obm_as_is_realloc",
        "heaplab_obm_as_is_free",
        "heaplab_obm_as_is_entries"
    );
    entries!(
        OneMibEager,
        "heaplab_obm_1m_eager_malloc",
        "heaplab_obm_1m_eager_calloc",
        "heaplab_obm_1m_eager_realloc",
        "heaplab_obm_1m_eager_free",
        "heaplab_obm_1m_eager_entries"
    );
    entries!(
        Classic,
        "heaplab_obm_classic_malloc",
        "heaplab_obm_classic_calloc",
        "heaplab_obm_classic_realloc",
        "heaplab_obm_classic_free",
        "heaplab_obm_classic_entries"
    );
    entries!(
        Eager,
        "heaplab_obm_eager_malloc",
        "heaplab_obm_eager_calloc",
        "heaplab_obm_eager_realloc",
        "heaplab_obm_eager_free",
        "heaplab_obm_eager_entries"
    );
}
