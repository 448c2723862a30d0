//! mimalloc v2's entry points under the names that the build script gives them.

use core::ffi::{c_int, c_long, c_void};

/// A heap of the library's, seen from outside.
#[repr(C)]
pub(crate) struct MiHeap {
    opaque: [u8; 0],
}

/// The C structure `mi_heap_area_t` of mimalloc 2.3: blocks of one size.
#[repr(C)]
pub(crate) struct MiHeapArea {
    pub blocks: *mut c_void,
    pub reserved: usize,
    pub committed: usize,
    /// Blocks in use.
    pub used: usize,
    /// Bytes in each.
    pub block_size: usize,
    pub full_block_size: usize,
    pub heap_tag: c_int,
}

/// Called for each area, or block; false ends the visit.
pub(crate) type Visitor = unsafe extern "C" fn(
    heap: *const MiHeap,
    area: *const MiHeapArea,
    block: *mut c_void,
    block_size: usize,
    argument: *mut c_void,
) -> bool;

unsafe extern "C" {
    pub(crate) fn m2_mi_malloc(size: usize) -> *mut c_void;
    pub(crate) fn m2_mi_calloc(count: usize, size: usize) -> *mut c_void;
    pub(crate) fn m2_mi_realloc(p: *mut c_void, new: usize) -> *mut c_void;
    pub(crate) fn m2_mi_free(p: *mut c_void);
    pub(crate) fn m2_mi_malloc_aligned(size: usize, align: usize) -> *mut c_void;
    pub(crate) fn m2_mi_usable_size(p: *const c_void) -> usize;
    pub(crate) fn m2_mi_collect(force: bool);
    pub(crate) fn m2_mi_version() -> c_int;
    pub(crate) fn m2_mi_option_get(option: c_int) -> c_long;
    pub(crate) fn m2_mi_option_set(option: c_int, value: c_long);
    pub(crate) fn m2_mi_stats_merge();
    pub(crate) fn m2_mi_stats_get(stats: *mut crate::stats::Stats) -> bool;
    pub(crate) fn m2_mi_heap_get_default() -> *mut MiHeap;
    pub(crate) fn m2_mi_heap_visit_blocks(
        heap: *const MiHeap,
        blocks_too: bool,
        visitor: Visitor,
        argument: *mut c_void,
    ) -> bool;
}
