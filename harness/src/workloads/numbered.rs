//! Blocks that are numbered as they are made, and written with their number: those of survivors, size-shift and burst-idle.

use crate::child::session::{Session, Stop};
use contract::{Block, Driver, Heap, Mode};
use std::ops::Range;
use xxhash_rust::xxh3::Xxh3Default;

/// Blocks between two looks at the clock.
const A_LOOK: usize = 1024;

/// What every byte of block `number` is.
fn byte(number: usize) -> u8 {
    (number % 251) as u8
}

/// Makes the blocks `numbers` of `size` bytes, each written whole, inside the measured region.
///
/// # Errors
/// [`Stop`] when the allocator is out of memory or the time is up; those that were made are in `blocks`.
pub(super) fn fill<H: Heap, M: Mode>(
    blocks: &mut Vec<Block>,
    numbers: Range<usize>,
    size: usize,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) -> Result<(), Stop> {
    session.start();
    let made = make(blocks, numbers, size, driver, session);
    session.stop();
    made
}

fn make<H: Heap, M: Mode>(
    blocks: &mut Vec<Block>,
    numbers: Range<usize>,
    size: usize,
    driver: &mut Driver<H, M>,
    session: &Session,
) -> Result<(), Stop> {
    for number in numbers {
        let mut block = driver.alloc(size)?;
        driver.fill(&mut block, 0, size, byte(number));
        blocks.push(block);
        if number.is_multiple_of(A_LOOK) {
            session.in_time()?;
        }
    }
    Ok(())
}

/// Frees all of `blocks` but every `every`th, in the order in which they were made, inside the measured region.
pub(super) fn thin<H: Heap, M: Mode>(
    blocks: &mut Vec<Block>,
    kept: &mut Vec<Block>,
    every: usize,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) {
    session.start();
    for (place, block) in blocks.drain(..).enumerate() {
        if place.is_multiple_of(every) {
            kept.push(block);
        } else {
            driver.free(block);
        }
    }
    session.stop();
}

/// Checks what `blocks` hold: blocks of these numbers and sizes, in this order.
pub(super) fn check<H: Heap, M: Mode>(
    blocks: &[Block],
    made: impl Iterator<Item = (usize, usize)>,
    driver: &Driver<H, M>,
    session: &mut Session,
) {
    let mut expected = Xxh3Default::new();
    let mut written = Vec::new();
    for (number, size) in made {
        written.clear();
        written.resize(size, byte(number));
        expected.update(&written);
    }
    session.contents_of(expected.digest(), |sum| {
        let mut hash = Xxh3Default::new();
        for block in blocks {
            driver.read(block, 0, block.size(), |bytes| hash.update(bytes));
        }
        *sum = sum.wrapping_add(hash.digest());
    });
}

/// Frees what there still is, inside the measured region.
pub(super) fn release<H: Heap, M: Mode>(
    blocks: impl Iterator<Item = Block>,
    driver: &mut Driver<H, M>,
    session: &mut Session,
) {
    session.start();
    for block in blocks {
        driver.free(block);
    }
    session.stop();
}
