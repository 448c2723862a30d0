//! What the tests of the four variants share.
#![allow(dead_code, reason = "each test binary uses its own part")]

use contract::{Arm, Heap, Refused, opaque};
use obmalloc::{Backing, Books, Obmalloc, Variant};

/// The model of 2007 as a backing.
#[derive(Debug)]
pub enum Model {}

impl Backing for Model {
    const NAME: &'static str = "tcmalloc-2007";
    type Heap = tcmalloc_2007::Tcmalloc2007;
}

/// A variant over the C library, or over the model.
pub type Over<V> = Obmalloc<V, Model>;

/// Opens a variant. `None` if CPython's file was not fetched, which only somebody who is just trying may do without:
/// under continuous integration, and in `scripts/test`, it fails.
pub fn open<V: Variant>(knobs: &[(&str, &str)]) -> Option<Over<V>> {
    let knobs: Vec<_> = knobs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    match Over::<V>::open(V::ARM, &knobs) {
        Ok(heap) => Some(heap),
        Err(Refused::Unavailable(why)) => {
            let required = ["CI", "HEAPLAB_REQUIRE_OBMALLOC"]
                .iter()
                .find(|name| std::env::var_os(name).is_some());
            assert!(
                required.is_none(),
                "{required:?} is set, and {} is unavailable: {why}",
                V::ARM
            );
            println!("{} unavailable: {why}", V::ARM);
            None
        }
        Err(Refused::Knob(why)) => panic!("{}: {why}", V::ARM),
    }
}

/// `count` live blocks of `size` bytes, each with its number written into it.
pub fn fill<V: Variant>(heap: &Over<V>, count: usize, size: usize) -> Vec<*mut u8> {
    let mut blocks = Vec::with_capacity(count);
    for number in 0..count {
        let p = heap.malloc(size);
        assert!(!p.is_null(), "block {number}");
        // SAFETY: live, of `size` bytes, aligned to 16.
        unsafe { p.cast::<u64>().write_volatile(number as u64) };
        blocks.push(opaque(p.cast()));
    }
    blocks
}

/// Frees them all, in order.
pub fn free_all<V: Variant>(heap: &Over<V>, blocks: Vec<*mut u8>) {
    for p in blocks {
        // SAFETY: live, and not used afterwards.
        unsafe { heap.free(p) };
    }
}

/// Total, reclaimed, highwater, current.
pub fn arenas(books: &Books) -> [usize; 4] {
    [
        books.arenas_total,
        books.arenas_reclaimed,
        books.arenas_highwater,
        books.arenas_current,
    ]
}
