//! The arm `tcmalloc-2007`: a MODEL of the realloc policy of google-perftools up to 0.97.
//!
//! It is not that allocator. It is the C library's malloc with that allocator's rule for realloc on top:
//!
//! - the capacity of a block of more than 32 KiB is its size rounded up to a multiple of the granule (4096 bytes; 8192
//!   models gperftools 2.18);
//! - realloc leaves such a block in place exactly if its capacity stays the same, growing or shrinking; else it
//!   allocates the new capacity, copies the smaller of old capacity and new size, and frees the old block;
//! - up to 32 KiB the base decides.
//!
//! So it models neither small classes nor the heap of spans, only what is copied, and that exactly: measured against
//! the real 0.93, 34,367,873,190 against 34,368,153,890 bytes when a block grows to 16 MiB in steps of 70.
//!
//! The base is told to keep large blocks in its own heap (mmap threshold 1 GiB, no trimming), because a fresh mapping
//! at every copy makes the copies ten times as slow as they were.
#![warn(missing_docs)]

mod model;
mod table;

pub use model::Tcmalloc2007;
