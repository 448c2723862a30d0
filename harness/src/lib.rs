//! heaplab: a comparative research harness for memory allocators.
//!
//! Data flows one way: definition ([`experiment`]), plan ([`plan`]), trial ([`trial`], run by [`run`] in a child, see
//! [`mod@child`]), record ([`record`]), then summary, claims and report. This library links no allocator under test; each
//! `child_*` binary links exactly one.

pub mod arms;
pub mod behaviour;
pub mod bench;
pub mod child;
pub mod claims;
pub mod cli;
pub mod definitions;
pub mod experiment;
pub mod input;
pub mod metric;
pub mod nearest;
pub mod plan;
pub mod probe;
pub mod record;
pub mod report;
pub mod run;
pub mod size;
pub mod stats;
pub mod summary;
#[cfg(test)]
mod synthetic;
pub mod trial;
pub mod verification;
pub mod workloads;

/// Hash of every source file of the harness and its heaps: a child that was built from others is refused.
pub const SOURCE_HASH: &str = env!("HEAPLAB_SOURCE_HASH");
