//! The entry points of Google's TCMalloc that the arm calls.
//!
//! The -sys crate builds the library with internal names only (nothing is called `malloc`) and declares just the few
//! that its own wrapper needs.

use core::ffi::{c_char, c_void};

unsafe extern "C" {
    pub fn TCMallocInternalMalloc(size: usize) -> *mut c_void;
    pub fn TCMallocInternalCalloc(count: usize, size: usize) -> *mut c_void;
    pub fn TCMallocInternalRealloc(p: *mut c_void, size: usize) -> *mut c_void;
    pub fn TCMallocInternalFree(p: *mut c_void);
    /// For blocks of malloc, calloc and realloc.
    pub fn TCMallocInternalFreeSized(p: *mut c_void, size: usize);
    /// For blocks of aligned_alloc.
    pub fn TCMallocInternalFreeAlignedSized(p: *mut c_void, align: usize, size: usize);
    pub fn TCMallocInternalAlignedAlloc(align: usize, size: usize) -> *mut c_void;
    pub fn TCMallocInternalMallocSize(p: *mut c_void) -> usize;

    pub fn TCMalloc_Internal_ForceCpuCacheActivation();
    pub fn MallocExtension_Internal_GetPerCpuCachesActive() -> bool;
    pub fn MallocExtension_Internal_GetMaxPerCpuCacheSize() -> i32;
    /// Mean bytes between two samples; 0 is never.
    pub fn TCMalloc_Internal_SetProfileSamplingInterval(bytes: i64);
    pub fn MallocExtension_Internal_GetProfileSamplingInterval() -> i64;
    pub fn MallocExtension_Internal_GetGuardedSamplingInterval() -> i64;
    pub fn MallocExtension_Internal_GetNumericProperty(
        name: *const c_char,
        length: usize,
        value: *mut usize,
    ) -> bool;
    pub fn MallocExtension_Internal_ReleaseMemoryToSystem(bytes: usize) -> usize;
}
