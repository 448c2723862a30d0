//! The arm keeps the rules of the behaviour suite.

use contract::{Arm, suite};
use tcmalloc_google::TcmallocGoogle;

#[test]
fn it_keeps_every_rule() {
    let heap = TcmallocGoogle::open("tcmalloc-google", &[]).expect("the arm opens");
    let rows = suite::run(&heap);
    for row in &rows {
        println!("{row}");
    }
    assert_eq!(suite::broken(&rows), "");
}
