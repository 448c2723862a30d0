//! The limits keep the rules of the behaviour suite, as far as they can.

use contract::suite::{self, Verdict};
use contract::{Arm, Heap};
use limits::{Bump, Null};

#[test]
fn bump_keeps_every_rule() {
    let _turn = suite::alone();
    let heap = Bump::open("bump", &[]).expect("the arm opens");
    let rows = suite::run(&heap);
    for row in &rows {
        println!("{row}");
    }
    assert_eq!(suite::broken(&rows), "");
}

#[test]
fn null_keeps_every_rule_that_needs_no_contents() {
    let _turn = suite::alone();
    let heap = Null::open("null", &[]).expect("the arm opens");
    const { assert!(!Null::CAPABILITIES.contents) };
    let rows = suite::run(&heap);
    for row in &rows {
        println!("{row}");
    }
    assert_eq!(suite::broken(&rows), "");
    let held = rows
        .iter()
        .filter(|row| row.verdict == Verdict::Held)
        .count();
    let exempt = rows
        .iter()
        .filter(|row| format!("{row}").contains("no contents"))
        .count();
    assert_eq!(
        (held, exempt),
        (6, 10),
        "the six rules about calls alone are asked, the others are not"
    );
}

#[test]
fn both_refuse_a_knob_they_do_not_have() {
    let _turn = suite::alone();
    let knobs = [("granule".to_string(), "1".to_string())];
    assert!(Bump::open("bump", &knobs).is_err());
    assert!(Null::open("null", &knobs).is_err());
}
