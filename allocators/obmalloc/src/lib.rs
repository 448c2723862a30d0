//! CPython's own obmalloc.c as arms: the file of 3.11.2 in four variants, linked side by side.
//!
//! | arm | arena, pool, address test | an empty arena | stands for |
//! |---|---|---|---|
//! | `obmalloc` | 1 MiB, 16 KiB, radix tree | the last usable one is kept | CPython 3.10 and later |
//! | `obmalloc-1m-eager` | the same | goes back at once | the experiment of 2019 |
//! | `obmalloc-classic` | 256 KiB, 4 KiB, pool header | the last usable one is kept | CPython 3.9 |
//! | `obmalloc-eager` | the same | goes back at once | CPython 3.6 to 3.8 |
//!
//! The file serves 1 to 512 bytes. Everything else goes to a [`Backing`], through the file's public hook: the C
//! library, or another heap that the same child links. Its state is static and nothing in it is locked, as CPython's
//! global lock has guarded it: one open heap a variant, one thread.
//!
//! The file is not part of this project; `scripts/vendor-obmalloc` fetches it. Without it the heaps are there all the
//! same and answer [`Refused::Unavailable`](contract::Refused::Unavailable) with the command that would change that.
#![warn(missing_docs)]

mod books;
mod variant;

#[cfg(obmalloc)]
mod arenas;
#[cfg(obmalloc)]
mod linked;
#[cfg(not(obmalloc))]
mod missing;

pub use books::Books;
pub use contract::Backing;
#[cfg(obmalloc)]
pub use linked::Obmalloc;
#[cfg(not(obmalloc))]
pub use missing::Obmalloc;
pub use variant::{AsIs, Classic, Eager, OneMibEager, Variant};
