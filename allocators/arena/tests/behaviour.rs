//! The arms keep the rules of the behaviour suite.

mod common;

use common::{Arena, SizedArena};
use contract::suite::{self, alone};
use contract::{Arm, Heap, Refused};

fn open(id: &str, knobs: &[(&str, &str)]) -> Result<Arena, Refused> {
    let knobs: Vec<(String, String)> = knobs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Arena::open(id, &knobs)
}

fn open_sized(id: &str, knobs: &[(&str, &str)]) -> Result<SizedArena, Refused> {
    let knobs: Vec<(String, String)> = knobs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    SizedArena::open(id, &knobs)
}

fn keeps_every_rule<H: Heap>(heap: &H, named: &str) {
    let rows = suite::run(heap);
    for row in &rows {
        println!("{row}");
    }
    assert_eq!(suite::broken(&rows), "", "{named}");
}

#[test]
fn every_arm_keeps_every_rule() {
    let _turn = alone();
    for (id, knobs) in [
        ("arena", &[][..]),
        ("arena-2.4", &[]),
        ("arena-2.5", &[]),
        ("arena-3.8", &[]),
        ("arena-3.9", &[]),
        ("arena-3.10-keep0", &[]),
        ("arena-3.10", &[("aligned", "1")]),
        ("arena-2.4", &[("source", "malloc"), ("threshold", "256")]),
        ("arena-2.5", &[("source", "malloc"), ("aligned", "1")]),
        ("arena-3.9", &[("order", "last"), ("test", "walk")]),
        ("arena", &[("backing", "tcmalloc-2007")]),
        (
            "arena-2.4",
            &[("source", "malloc"), ("backing", "tcmalloc-2007")],
        ),
        (
            "arena-2.5",
            &[
                ("source", "malloc"),
                ("aligned", "1"),
                ("backing", "tcmalloc-2007"),
            ],
        ),
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
        keeps_every_rule(&heap, &format!("{id} {knobs:?}"));
        let left = heap.statistics().bytes.allocated;
        assert_eq!(left, 0, "{id} {knobs:?}: everything was given back");
        drop(heap);
        let heap = open_sized(&format!("{id}+sized"), knobs).expect("the arm opens");
        keeps_every_rule(&heap, &format!("{id}+sized {knobs:?}"));
        assert_eq!(heap.stats().allocated, Some(0), "{id}+sized {knobs:?}");
    }
}

/// With blocks in steps of 8 bytes, as CPython had up to 3.7.3, one rule is broken, and the receipt says so.
#[test]
fn steps_of_8_bytes_are_less_than_c_wants() {
    let _turn = alone();
    for id in ["arena-2.4", "arena-3.10"] {
        let heap = open(id, &[("align", "8")]).expect("the arm opens");
        let broken = suite::broken(&suite::run(&heap));
        assert!(broken.contains("aligned for any C type"), "{broken}");
        assert_eq!(broken.lines().count(), 1, "{broken}");
        let facts = heap.receipt().facts;
        assert!(facts.iter().any(|(name, _)| name == "block alignment"));
    }
}

/// Values of the knobs, of the policy and of the numbers as a receipt has them.
fn told(id: &str, given: &[(&str, &str)]) -> (String, String, String) {
    let receipt = open(id, given).expect("the arm opens").receipt();
    let values: Vec<String> = receipt.knobs.into_iter().map(|(_, value)| value).collect();
    let (policy, numbers) = (&receipt.build[1], &receipt.facts[0]);
    assert_eq!(
        (policy.0.as_str(), numbers.0.as_str()),
        ("policy", "numbers")
    );
    (values.join(" "), policy.1.clone(), numbers.1.clone())
}

#[test]
fn knobs_read_back() {
    let _turn = alone();
    for (id, values, policy) in [
        (
            "arena-2.4",
            "262144 4096 16 512 all global header-2.4 mmap 0 system",
            "CPython 2.4's",
        ),
        (
            "arena-2.5",
            "262144 4096 16 512 0 slide header mmap 0 system",
            "CPython 2.5's to 3.7's",
        ),
        (
            "arena-3.8",
            "262144 4096 16 512 0 constant header mmap 0 system",
            "CPython 3.8's",
        ),
        (
            "arena-3.9",
            "262144 4096 16 512 1 constant header mmap 0 system",
            "CPython 3.9's",
        ),
        (
            "arena-3.10",
            "1048576 16384 16 512 1 constant radix mmap 0 system",
            "CPython 3.10's and later",
        ),
        (
            "arena-3.10-keep0",
            "1048576 16384 16 512 0 constant radix mmap 0 system",
            "CPython 3.10's, but an empty arena is released at once",
        ),
    ] {
        let constant = (
            values.to_owned(),
            policy.to_owned(),
            "constants of the code".to_owned(),
        );
        assert_eq!(told(id, &[]), constant);
    }
    assert_eq!(told("arena", &[]), told("arena-3.10", &[]));
    // An arm whose knobs make it another generation is that generation.
    assert_eq!(
        told("arena-3.10", &[("keep", "0")]),
        told("arena-3.10-keep0", &[])
    );
    assert_eq!(
        told("arena-2.4", &[("order", "slide"), ("keep", "0")]),
        told("arena-2.5", &[])
    );
    assert_eq!(
        told("arena-3.9", &[("order", "global"), ("test", "header-2.4")]),
        told("arena-2.4", &[])
    );
    // 2.4's policy with the test of 2.5, so that the two tests can be compared, is constants of the code, too.
    let asking = told("arena-2.4", &[("test", "header")]);
    assert_eq!(asking, told("arena-3.9", &[("order", "global")]));
    assert_eq!(
        asking,
        (
            "262144 4096 16 512 all global header mmap 0 system".into(),
            "CPython 2.4's, with the address test of 2.5".into(),
            "constants of the code".into()
        )
    );
    let (values, _, _) = told("arena-3.9", &[]);
    assert_eq!(
        told("arena-3.9", &[("numbers", "read")]),
        (values, "as its knobs say".into(), "read at run time".into())
    );
    let knobs = &[
        ("arena", "4MiB"),
        ("pool", "64KiB"),
        ("align", "8"),
        ("threshold", "256"),
        ("keep", "3"),
        ("order", "last"),
        ("test", "walk"),
        ("source", "malloc"),
        ("aligned", "1"),
    ];
    assert_eq!(
        told("arena", knobs),
        (
            "4194304 65536 8 256 3 last walk malloc 1 system".into(),
            "as its knobs say".into(),
            "read at run time".into()
        )
    );
}

/// The receipt tells who serves, with the knobs of that one.
#[test]
fn the_backing_is_told() {
    let _turn = alone();
    let fact = |id: &str, knobs: &[(&str, &str)]| {
        let receipt = open(id, knobs).expect("the arm opens").receipt();
        let mut facts = receipt.facts.into_iter();
        let found = facts.find(|(name, _)| name == "backing allocator");
        (receipt.knobs, found.expect("the fact").1)
    };
    let said = |knobs: &[(String, String)], name: &str, value: &str| {
        knobs.contains(&(name.to_owned(), value.to_owned()))
    };
    let (knobs, who) = fact("arena-3.9", &[]);
    assert!(said(&knobs, "backing", "system"));
    assert!(who.starts_with("glibc malloc 2."), "{who}");
    let model = [("backing", "tcmalloc-2007"), ("granule", "8192")];
    let (knobs, who) = fact("arena-3.9", &model);
    assert!(said(&knobs, "backing", "tcmalloc-2007") && said(&knobs, "granule", "8192"));
    assert!(who.contains("google-perftools <= 0.97"), "{who}");
}

#[test]
fn arenas_are_told_and_where_they_lie() {
    let _turn = alone();
    let aligned = [("aligned", "1")];
    let from_malloc = [("source", "malloc")];
    for (id, knobs, size, placed) in [
        ("arena", &[][..], 1u64 << 20, "as mmap gives them"),
        ("arena", &aligned, 1 << 20, "aligned"),
        ("arena-3.8", &[], 1 << 18, "aligned"),
        ("arena-2.4", &from_malloc, 1 << 18, "as malloc gives them"),
    ] {
        let heap = open(id, knobs).expect("the arm opens");
        let p = heap.malloc(100);
        let told = heap.stats();
        assert_eq!(
            told.extra,
            [
                ("arenas_total", 1),
                ("arenas_reclaimed", 0),
                ("arenas_highwater", 1),
                ("arenas_current", 1),
                ("arena_bytes", size),
            ]
        );
        assert_eq!(told.mapped, Some(size));
        // SAFETY: live, and not used afterwards.
        unsafe { heap.free(p) };
        let facts = heap.receipt().facts;
        let mut found = facts.iter().filter(|(name, _)| name == "arena_placement");
        let value = &found.next().expect("the fact").1;
        assert!(value.starts_with(placed), "{id}: {value}");
    }
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing_open() {
    let _turn = alone();
    for (id, knobs) in [
        ("arena", ("pool", "3000")),
        ("arena", ("arena", "8KiB")),
        ("arena", ("arena", "17592186044416")),
        ("arena", ("threshold", "100")),
        ("arena", ("threshold", "520")),
        ("arena", ("align", "4")),
        ("arena", ("keep", "0.5")),
        ("arena", ("keep", "1025")),
        ("arena", ("aligned", "2")),
        ("arena", ("test", "header")),
        ("arena", ("test", "tree")),
        ("arena-2.5", ("test", "header-2.4")),
        ("arena", ("order", "fullest")),
        ("arena", ("source", "sbrk")),
        ("arena", ("backing", "tcmalloc")),
        ("arena", ("granule", "4096")),
        ("arena-2.4", ("keep", "1")),
        ("arena-3.10-keep0", ("keep", "1")),
    ] {
        assert!(
            matches!(open(id, &[knobs]), Err(Refused::Knob(_))),
            "{knobs:?}"
        );
    }
    for id in ["arena", "arena+sized+sized", "arena-1.5+sized"] {
        assert!(matches!(open_sized(id, &[]), Err(Refused::Unavailable(_))));
    }
    assert!(matches!(
        open("arena+sized", &[]),
        Err(Refused::Unavailable(_))
    ));
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
