//! The model is a model over the C library's malloc: its own books of capacity see the blocks, and so do the C
//! library's, whose blocks they are. That the C library's do not is asked of the other arms only.

use contract::suite::{alone, identity};
use contract::{Arm, Heap};
use tcmalloc_2007::Tcmalloc2007;

fn extra(heap: &Tcmalloc2007, name: &str) -> u64 {
    let stats = heap.stats();
    stats
        .extra
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a figure of that name")
        .1
}

#[test]
fn its_own_books_see_the_blocks() {
    let _turn = alone();
    let heap = Tcmalloc2007::open("tcmalloc-2007", &[]).expect("the arm opens");
    let found = identity(&heap, |heap| extra(heap, "rule_capacity_bytes"), || 0).expect("blocks");
    assert!(found.own_saw_them(), "{found}");
    assert_eq!(extra(&heap, "rule_capacity_bytes"), 0, "all were freed");
}

#[test]
fn the_receipt_says_that_it_is_a_model_and_over_what() {
    let _turn = alone();
    let receipt = Tcmalloc2007::open("tcmalloc-2007", &[])
        .expect("the arm opens")
        .receipt();
    assert_eq!(
        receipt.allocator,
        "realloc policy model of google-perftools <= 0.97"
    );
    assert_eq!(receipt.knobs, [("granule".to_string(), "4096".to_string())]);
    let base = receipt
        .facts
        .iter()
        .find(|(name, _)| name == "base M_MMAP_THRESHOLD")
        .expect("the base's options");
    assert_eq!(base.1, "1073741824 (accepted by mallopt)");
}
