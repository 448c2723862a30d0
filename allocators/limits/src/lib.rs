//! The arms `bump` and `null`: not allocators but limits, which show what a workload costs when allocation costs
//! next to nothing.
//!
//! Both are called through functions that are never inlined and have the C calling convention, as the C allocators
//! are, so that the difference between them and those is the allocator and not the way it is called. The functions
//! have exported names, so that a loop written in C can be run over the very same ones.
//!
//! Their state is the process's, in plain variables. Only one heap of each kind is open at a time, and it stays on the
//! thread that opened it.
#![warn(missing_docs)]

mod bump;
mod claim;
mod mapping;
mod null;

pub use bump::{
    Bump, heaplab_bump_calloc, heaplab_bump_free, heaplab_bump_malloc, heaplab_bump_realloc,
};
pub use null::{Null, heaplab_null_free, heaplab_null_malloc, heaplab_null_realloc};
