//! The arm keeps the rules of the behaviour suite.

use contract::{Arm, suite};
use jemalloc_global::JemallocGlobal;

#[test]
fn it_keeps_every_rule() {
    let heap = JemallocGlobal::open("jemalloc-global", &[]).expect("the arm opens");
    let rows = suite::run(&heap);
    for row in &rows {
        println!("{row}");
    }
    assert_eq!(suite::broken(&rows), "");
}
