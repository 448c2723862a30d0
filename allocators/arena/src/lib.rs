//! An arena allocator after CPython's obmalloc, written to be read.
//!
//! Three nouns, each inside the one before:
//! - an **arena** is a region got from the operating system, 1 MiB, cut into pools;
//! - a **pool** is 16 KiB of blocks of one size class, with a header of 48 bytes at its start;
//! - a **block** is what the client gets: 16, 32, ... 512 bytes.
//!
//! ```text
//!  table of arenas            an arena: 1 MiB from the operating system, at any OS page
//! +-----------------+        +------+--------+--------+--------+-- - - - - - - - - - - --+
//! | address --------|------->| lost | pool 0 | pool 1 | pool 2 |  not carved yet         |
//! | empty pools ----|----+   +------+--------+--------+--------+-- - - - - - - - - - - --+
//! | free pools: 61  |    |          ^ the first multiple of 16 KiB: if the arena begins there, nothing is lost
//! | next, previous  |    +----------------------------> pool 2, empty
//! +-----------------+
//!                             a pool: 16 KiB of blocks of one size class, here of 64 bytes
//!  class lists               +--------+-------+-------+-------+-------+-- - - - --+------+
//! | 48 bytes: none  |    +-->| header | block | block | block | block |  virgin   | lost |
//! | 64 bytes -------|----+   +--------+-------+-------+-------+-------+-- - - - --+------+
//! | 80 bytes: none  |          |       live    free      live   free     ^ never handed out: the next is at `virgin`
//!                              |                 ^  \___________^         no block fits into what is lost
//!                              +-----------------+   each free block begins with the address of the next
//!
//!  the header, 48 bytes: live blocks, first free block, next pool, previous pool, arena, class, `virgin`, last offset
//! ```
//!
//! A request of 1 to 512 bytes takes a block of the first pool on its class's list. Everything else, 0 bytes
//! included, goes to the backing allocator, the C library's malloc. A pool is **used** (some blocks live, some not:
//! on its class's list), **full** (on no list) or **empty** (on its arena's list, free for any class). An arena is
//! **usable** while it has an empty pool; usable arenas are kept in order, fullest first, and pools are taken from
//! the first, so that the emptier ones have a chance to become wholly empty and go back to the operating system.
//! Whether a block is one of a pool or the backing's is answered by the **address test**.
//!
//! Sizes here are those of CPython 3.10 and later. What each generation did otherwise, with the history of it, is its
//! [`policy`].
//!
//! Who knows the size of a block that is given back can say so: see [`free_sized`](heap::Heap::free_sized).
//!
//! From the bottom up, one idea a file, each knowing only those before it:
//!
//! | module | idea |
//! |---|---|
//! | [`size_class`] | sizes to classes and back; no memory touched |
//! | [`work`] | counters of work done, behind the feature `counters` |
//! | [`os`] | everything asked of the operating system and of the backing: the seam for tests |
//! | [`policy`] | what differs between generations: numbers, order of arenas, when one is released, address test |
//! | [`block`] | a free block and its link; a pointer that the client gave |
//! | [`pool`] | a pool's header, and taking and giving back blocks |
//! | [`arena`] | the table of arenas, and taking and giving back pools |
//! | [`address_map`] | a radix tree that knows which addresses lie in an arena |
//! | [`address_test`] | is this block one of a pool? By that tree, by the pool's header, or by looking at all arenas |
//! | `hardened` | what a heap with the feature `hardened` looks at before it believes a pointer |
//! | [`heap`] | malloc, calloc, realloc, free |
//! | [`stats`] | counted as CPython counts |
//! | [`debug_text`] | and said as CPython says it |
//! | [`dump`] | what CPython has said, read back |
//! | [`check`] | walks everything and compares it with the invariants |
//!
//! All but [`dump`] need nothing but `core`, and [`os`], where [`Libc`](os::Libc) is, the C library. `arm` makes an arm
//! of the heap, for the harness, `sized_arm` one that is told sizes, and `over` puts another heap in the C library's place.
//!
//! With the feature `hardened` a double free, a pointer into an arena that is no block's and a free list that was written
//! over abort with a message. It looks at a pool's whole free list at every call, so it is for finding errors.
//!
//! One thread at a time: CPython's lock, the GIL, guards the original, and a `&mut` guards this one.
#![no_std]
#![warn(missing_docs)]

extern crate std;

pub mod address_map;
pub mod address_test;
pub mod arena;
mod arm;
pub mod block;
pub mod check;
pub mod debug_text;
pub mod dump;
mod hardened;
pub mod heap;
pub mod os;
mod over;
pub mod policy;
pub mod pool;
pub mod size_class;
mod sized_arm;
pub mod stats;
pub mod work;

pub use arm::Arena;
pub use sized_arm::SizedArena;
