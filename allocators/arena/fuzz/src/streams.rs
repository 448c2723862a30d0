//! Any bytes are a stream of operations on a heap with some policy: see `tests/common/case.rs`, which `tests/cases.rs`
//! reads the kept ones with.
#![no_main]

#[path = "../../tests/common/mod.rs"]
mod common;

use common::case::Case;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| Case::of(bytes).run());
