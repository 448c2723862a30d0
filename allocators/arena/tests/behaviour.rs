//! The arms keep the rules of the behaviour suite.

use arena::Arena;
use contract::suite::{self, alone};
use contract::{Arm, Heap, Refused};

fn open(id: &str, knobs: &[(&str, &str)]) -> Result<Arena, Refused> {
    let knobs: Vec<(String, String)> = knobs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Arena::open(id, &knobs)
}

#[test]
fn every_arm_keeps_every_rule() {
    let _turn = alone();
    for (id, knobs) in [
        ("arena", &[][..]),
        ("arena-3.10-keep0", &[]),
        ("arena-3.10", &[("aligned", "1")]),
        ("arena-3.10", &[("arena", "256KiB"), ("pool", "4KiB")]),
        (
            "arena-3.10",
            &[
                ("arena", "64KiB"),
                ("pool", "16KiB"),
                ("threshold", "256"),
                ("keep", "0"),
            ],
        ),
    ] {
        let heap = open(id, knobs).expect("the arm opens");
        let rows = suite::run(&heap);
        for row in &rows {
            println!("{row}");
        }
        assert_eq!(suite::broken(&rows), "", "{id} {knobs:?}");
        let left = heap.statistics().bytes.allocated;
        assert_eq!(left, 0, "{id} {knobs:?}: everything was given back");
    }
}

#[test]
fn knobs_read_back() {
    let _turn = alone();
    let knobs = |id: &str, given: &[(&str, &str)]| {
        let receipt = open(id, given).expect("the arm opens").receipt();
        let values: Vec<String> = receipt.knobs.into_iter().map(|(_, value)| value).collect();
        (values.join(" "), receipt.facts[0].1.clone())
    };
    let constant = "constants of the code".to_owned();
    let tuned = "read at run time".to_owned();
    assert_eq!(
        knobs("arena", &[]),
        ("1048576 16384 512 1 0".into(), constant.clone())
    );
    assert_eq!(knobs("arena", &[]), knobs("arena-3.10", &[]));
    assert_eq!(
        knobs("arena-3.10", &[("keep", "0")]),
        knobs("arena-3.10-keep0", &[])
    );
    assert_eq!(
        knobs("arena-3.10-keep0", &[("aligned", "1")]),
        ("1048576 16384 512 0 1".into(), constant)
    );
    assert_eq!(
        knobs(
            "arena",
            &[("arena", "4MiB"), ("pool", "64KiB"), ("threshold", "256")]
        ),
        ("4194304 65536 256 1 0".into(), tuned)
    );
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing_open() {
    let _turn = alone();
    for (id, knobs) in [
        ("arena", ("pool", "3000")),
        ("arena", ("arena", "8KiB")),
        ("arena", ("arena", "17592186044416")),
        ("arena", ("threshold", "100")),
        ("arena", ("keep", "2")),
        ("arena", ("aligned", "2")),
        ("arena", ("align", "8")),
        ("arena-3.10-keep0", ("keep", "1")),
    ] {
        assert!(
            matches!(open(id, &[knobs]), Err(Refused::Knob(_))),
            "{knobs:?}"
        );
    }
    assert!(matches!(
        open("arena-1.5", &[]),
        Err(Refused::Unavailable(_))
    ));
    let heap = open("arena", &[]).expect("nothing is open");
    for knobs in [&[][..], &[("arena", "2MiB")]] {
        let why = open("arena", knobs).expect_err("one at a time");
        assert!(matches!(why, Refused::Unavailable(_)));
    }
    drop(heap);
    assert!(open("arena", &[]).is_ok());
}
