//! The checker can say no: each kind of damage to a sound heap, and the rule that it breaks.

mod common;

use arena::heap::Heap;
use arena::policy::{Settings, Tuned};
use arena::pool::PoolHeader;
use common::Staged;
use std::mem::offset_of;

const SETTINGS: Settings = Settings {
    arena: 64 << 10,
    pool: 4096,
    ..Settings::PYTHON_3_10
};

/// Bytes of a block: 15 of them in a pool.
const SIZE: usize = 256;

/// A heap with blocks of one class in three pools, none of them full: six blocks of each are live, and the first of each
/// was freed last.
struct Sound {
    heap: Heap<Staged, Tuned>,
    /// A freed block of each pool.
    freed: [*mut u8; 3],
    /// A live block of each.
    live: [*mut u8; 3],
}

impl Sound {
    fn new() -> Sound {
        let mut heap = common::heap(SETTINGS, 0);
        let blocks: Vec<*mut u8> = (0..45).map(|_| heap.malloc(SIZE)).collect();
        for pool in blocks.chunks(15) {
            for p in &pool[6..] {
                // SAFETY: live, once each.
                unsafe { heap.free(*p) };
            }
        }
        let of_each = |n: usize| [blocks[n], blocks[15 + n], blocks[30 + n]];
        assert_eq!(heap.check(), Ok(()));
        Sound {
            heap,
            freed: of_each(14),
            live: of_each(0),
        }
    }

    /// The word at `offset` of the header of the pool that `p` lies in.
    fn word<T>(p: *mut u8, offset: usize) -> *mut T {
        p.map_addr(|address| address & !(SETTINGS.pool - 1))
            .wrapping_add(offset)
            .cast()
    }

    /// The rule that is broken.
    fn broken(&self) -> &'static str {
        let fault = self.heap.check().expect_err("damaged");
        assert!(fault.to_string().contains(fault.rule));
        fault.rule
    }
}

/// Damages a sound heap and demands the rule.
fn damaged(rule: &str, damage: impl FnOnce(&Sound)) {
    let sound = Sound::new();
    damage(&sound);
    assert_eq!(sound.broken(), rule);
}

#[test]
fn each_kind_of_damage_breaks_its_rule() {
    // All writes below go into an arena that is held, into fields of a header or into a block, and nothing but the
    // checker, which believes nothing, looks at the heap afterwards. (Its end looks at the table alone.)
    damaged("live + free + virgin = capacity", |sound| {
        let live: *mut u32 = Sound::word(sound.live[0], offset_of!(PoolHeader, live));
        // SAFETY: as above.
        unsafe { *live += 1 };
    });
    damaged("a pool knows its arena", |sound| {
        let arena: *mut u32 = Sound::word(sound.live[1], offset_of!(PoolHeader, arena));
        // SAFETY: as above; it is not 0.
        unsafe { *arena += 7 };
    });
    damaged("last = pool size - block size", |sound| {
        let last: *mut u32 = Sound::word(sound.live[2], offset_of!(PoolHeader, last));
        // SAFETY: as above.
        unsafe { *last -= 16 };
    });
    let astray = "a free block is a block of its pool that has been handed out or is next to be";
    for to in [8, 48, SETTINGS.pool] {
        damaged(astray, |sound| {
            // SAFETY: as above: a link to no block, twice, or into another pool.
            unsafe { *sound.freed[0].cast::<*mut u8>() = sound.freed[0].wrapping_add(to) };
        });
    }
    damaged("a free list ends", |sound| {
        // SAFETY: as above.
        unsafe { *sound.freed[1].cast::<*mut u8>() = sound.freed[1] };
    });
    // A block that is on the list, and is counted as live, too.
    damaged("live + free + virgin = capacity", |sound| {
        let free: *mut *mut u8 = Sound::word(sound.live[0], offset_of!(PoolHeader, free));
        // SAFETY: as above: the live block becomes the first of the list.
        unsafe {
            *sound.live[0].cast::<*mut u8>() = *free;
            *free = sound.live[0];
        }
    });
    damaged("used pools are linked both ways", |sound| {
        let prev: *mut *mut u8 = Sound::word(sound.live[1], offset_of!(PoolHeader, prev));
        // SAFETY: as above.
        unsafe { *prev = std::ptr::null_mut() };
    });
    damaged(
        "every used pool is on its class's list, and no other",
        |sound| {
            let next: *mut *mut u8 = Sound::word(sound.live[1], offset_of!(PoolHeader, next));
            // SAFETY: as above.
            unsafe { *next = std::ptr::null_mut() };
        },
    );
    // A ring, too: its second round comes from another side.
    damaged("used pools are linked both ways", |sound| {
        let [first, last] =
            [2, 0].map(|n| Sound::word::<*mut u8>(sound.live[n], offset_of!(PoolHeader, next)));
        // SAFETY: as above.
        unsafe {
            *last = first
                .cast::<u8>()
                .wrapping_sub(offset_of!(PoolHeader, next));
        }
    });
}
