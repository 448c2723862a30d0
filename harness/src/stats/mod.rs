//! Statistics: pure functions on samples. No file here reads a clock, a file or a random source of the machine's;
//! whatever is drawn by chance comes from a seed.
//!
//! - [`order`]: in which order the arms of a block run;
//! - [`sample`]: the types that make bad input unrepresentable;
//! - [`ratio`]: paired ratios with their intervals;
//! - [`floor`]: what the machine alone makes of two equal arms;
//! - [`verdict`]: faster, slower, equivalent, undecided;
//! - [`fit`]: growth exponents of counts.

pub mod fit;
pub mod floor;
pub mod order;
pub mod ratio;
pub mod sample;
pub mod verdict;

/// Which intervals are in force: printed under each table of ratios.
pub const INTERVALS: &str = "Intervals: 95 %, simultaneous over the cells of this table (max-T over 10,000 resamples \
     of whole blocks). Claims compare single cells, each with its own 95 % percentile interval, not adjusted.";
