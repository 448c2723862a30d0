//! gperftools' entry points under the prefix that the build script gave them.

use core::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    #[link_name = "heaplab_gp_tc_malloc"]
    pub fn malloc(size: usize) -> *mut c_void;
    #[link_name = "heaplab_gp_tc_calloc"]
    pub fn calloc(count: usize, size: usize) -> *mut c_void;
    #[link_name = "heaplab_gp_tc_realloc"]
    pub fn realloc(p: *mut c_void, size: usize) -> *mut c_void;
    #[link_name = "heaplab_gp_tc_free"]
    pub fn free(p: *mut c_void);
    #[link_name = "heaplab_gp_tc_memalign"]
    pub fn memalign(align: usize, size: usize) -> *mut c_void;
    #[link_name = "heaplab_gp_tc_malloc_size"]
    pub fn malloc_size(p: *mut c_void) -> usize;
    /// The returned string is static; null pointers are allowed.
    #[link_name = "heaplab_gp_tc_version"]
    pub fn version(
        major: *mut c_int,
        minor: *mut c_int,
        patch: *mut *const c_char,
    ) -> *const c_char;

    /// 1 if the name is known.
    #[link_name = "heaplab_gp_MallocExtension_GetNumericProperty"]
    pub fn get_numeric_property(name: *const c_char, value: *mut usize) -> c_int;
    /// 1 if the name is known and can be set.
    #[link_name = "heaplab_gp_MallocExtension_SetNumericProperty"]
    pub fn set_numeric_property(name: *const c_char, value: usize) -> c_int;
    #[link_name = "heaplab_gp_MallocExtension_ReleaseFreeMemory"]
    pub fn release_free_memory();
}

// The release rate has C++ entry points only: static `MallocExtension::instance()`, and two methods, whose object is
// the first argument.
#[cfg(release_rate)]
unsafe extern "C" {
    #[link_name = "heaplab_gp__ZN15MallocExtension8instanceEv"]
    pub fn instance() -> *mut c_void;
    #[link_name = "heaplab_gp__ZN22TCMallocImplementation20GetMemoryReleaseRateEv"]
    pub fn get_release_rate(instance: *mut c_void) -> f64;
    #[link_name = "heaplab_gp__ZN22TCMallocImplementation20SetMemoryReleaseRateEd"]
    pub fn set_release_rate(instance: *mut c_void, rate: f64);
}
