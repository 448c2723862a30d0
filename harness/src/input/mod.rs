//! What workloads read: generated text ([`corpus`]), real files ([`tree`]), and their lines ([`lines`]).
//!
//! All of it runs in the child before the measured region, into memory of the caller's, and obeys the same
//! invariant as the child's side of [`crate::probe`], NO-MALLOC: system calls through rustix, never a C function
//! that allocates (opendir does), so that the heap under test meets nothing but its workload.

pub mod corpus;
pub mod lines;
pub mod lognormal;
pub mod tree;
