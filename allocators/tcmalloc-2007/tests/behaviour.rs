//! The arm keeps the rules of the behaviour suite.

use contract::{Arm, suite};
use tcmalloc_2007::Tcmalloc2007;

#[test]
fn it_keeps_every_rule() {
    let heap = Tcmalloc2007::open("tcmalloc-2007", &[]).expect("the arm opens");
    let rows = suite::run(&heap);
    for row in &rows {
        println!("{row}");
    }
    assert_eq!(suite::broken(&rows), "");
}
