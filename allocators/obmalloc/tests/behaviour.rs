//! Every variant keeps the rules of the behaviour suite, over each backing and with each placing of arenas, or says why
//! it is not there.

mod common;

use common::{Over, open};
use contract::suite::{self, alone};
use contract::{Arm, Refused};
use obmalloc::{AsIs, Classic, Eager, OneMibEager, Variant};

fn keeps_every_rule<V: Variant>() {
    let _turn = alone();
    for knobs in [
        &[][..],
        &[("aligned", "1")],
        &[("backing", "tcmalloc-2007"), ("aligned", "1")],
    ] {
        let Some(heap) = open::<V>(knobs) else { return };
        let rows = suite::run(&heap);
        for row in &rows {
            println!("{} {knobs:?} {row}", V::ARM);
        }
        assert_eq!(suite::broken(&rows), "");
        let books = heap.books();
        assert_eq!(
            (books.blocks, books.backing_blocks),
            (0, 0),
            "everything was given back"
        );
    }
}

#[test]
fn as_is() {
    keeps_every_rule::<AsIs>();
}

#[test]
fn one_mib_eager() {
    keeps_every_rule::<OneMibEager>();
}

#[test]
fn classic() {
    keeps_every_rule::<Classic>();
}

#[test]
fn eager() {
    keeps_every_rule::<Eager>();
}

#[test]
fn what_cannot_be_opened_says_why() {
    let _turn = alone();
    if open::<AsIs>(&[]).is_none() {
        let Err(Refused::Unavailable(why)) = Over::<AsIs>::open("obmalloc", &[]) else {
            panic!("opened, or refused for another reason");
        };
        assert!(
            why.contains("scripts/vendor-obmalloc, then rebuild"),
            "{why}"
        );
        return;
    }
    for (name, value, said) in [
        ("backing", "jemalloc", "system or tcmalloc-2007"),
        ("aligned", "2", "0 or 1"),
        ("granule", "4096", "backing=system has no knob"),
        ("arena", "1", "no knob"),
    ] {
        let knobs = [(name.to_owned(), value.to_owned())];
        let Err(Refused::Knob(why)) = Over::<AsIs>::open("obmalloc", &knobs) else {
            panic!("{name}={value} was not refused");
        };
        assert!(why.contains(said), "{why}");
    }
    let _first = open::<AsIs>(&[]);
    assert!(matches!(
        Over::<AsIs>::open("obmalloc", &[]),
        Err(Refused::Unavailable(why)) if why.contains("already")
    ));
    assert!(
        open::<Classic>(&[]).is_some(),
        "the variants have states of their own"
    );
}
