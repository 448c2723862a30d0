//! heaplab: a comparative research harness for memory allocators.
//!
//! Data flows one way: definition ([`experiment`]), plan, trial ([`trial`]), record ([`record`]), summary
//!, report. This library links no allocator under test; each `child_*` binary links
//! exactly one.

pub mod claims;
pub mod experiment;
pub mod metric;
pub mod nearest;
pub mod record;
pub mod size;
pub mod stats;
pub mod summary;
#[cfg(test)]
mod synthetic;
pub mod trial;
