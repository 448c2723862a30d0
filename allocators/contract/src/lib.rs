//! What heaplab asks of an allocator, and what it lets a workload see of one.
//!
//! Three nouns:
//! - a [`Heap`] is one allocator as its C entry points offer it: raw addresses, null for failure;
//! - a [`Driver`] is the safe hand that a workload holds: it gives out [`Block`] handles and never a reference
//!   into the heap's memory, so that even a broken allocator cannot make the *workload* undefined;
//! - a [`Mode`] is what the driver does beside the call itself: nothing ([`Plain`], for time), counting
//!   ([`Counted`], for the census) or mistrust ([`Canary`], for verification).
//!
//! The driver is monomorphised over heap and mode: in [`Plain`] nothing is left of either but the call.
#![warn(missing_docs)]

pub mod backing;
mod block;
mod counted;
mod driver;
mod heap;
mod knob;
mod lines;
mod opaque;
mod shadow;
#[cfg(feature = "suite")]
pub mod suite;

pub use backing::{Backed, Backing};
pub use block::Block;
pub use counted::{Counted, Counts, Move};

pub use driver::{Driver, FreeOrder, Mode, OutOfMemory, Place, Plain, Refill, Refills, Sizes};
pub use heap::{Arm, Capabilities, Heap, Receipt, Refused, SelfStats};
pub use knob::{Knobs, parse_bytes};
pub use lines::Lines;
pub use opaque::opaque;
pub use shadow::{Broken, Canary, Noticed};
