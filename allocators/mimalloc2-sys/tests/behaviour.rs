//! The arm keeps the rules of the behaviour suite.

use contract::{Arm, suite};
use mimalloc2_sys::MimallocV2;

#[test]
fn it_keeps_every_rule() {
    let heap = MimallocV2::open("mimalloc-v2", &[]).expect("the arm opens");
    let rows = suite::run(&heap);
    for row in &rows {
        println!("{row}");
    }
    assert_eq!(suite::broken(&rows), "");
}
