//! A list of small objects in the heap under test: what `[thing() for _ in range(n)]` leaves there.

use super::pointers::Pointers;
use crate::child::session::{Session, Stop};
use contract::{Block, Driver, Heap, Mode};
use xxhash_rust::xxh3::Xxh3Default;

/// Objects between two looks at the clock.
const A_LOOK: usize = 1024;

/// The objects and the list's pointer vector. An object is one block or several, of `parts` bytes each; every byte is
/// written, as an interpreter writes an object that it makes.
#[derive(Debug)]
pub(super) struct Objects {
    parts: &'static [usize],
    /// The parts of each object, one after the other.
    blocks: Vec<Block>,
    /// Room for what a slice keeps, so that no table grows while anything is measured.
    spare: Vec<Block>,
    pointers: Pointers,
    /// Objects ever made: what the next one is written with.
    made: usize,
}

/// What the parts of object `i` are written with.
fn byte(i: usize) -> u8 {
    (i % 251) as u8
}

impl Objects {
    /// An empty list with tables for `most` objects of `parts`.
    pub(super) fn new(parts: &'static [usize], most: usize) -> Objects {
        Objects {
            parts,
            blocks: Vec::with_capacity(most * parts.len()),
            spare: Vec::with_capacity(most * parts.len()),
            pointers: Pointers::default(),
            made: 0,
        }
    }

    /// Bytes of the child's own that tables for `most` objects of `parts` take.
    pub(super) fn tables(parts: &[usize], most: u64) -> u64 {
        most.saturating_mul(2 * parts.len() as u64 * size_of::<Block>() as u64)
    }

    /// Objects in the list.
    pub(super) fn len(&self) -> usize {
        self.blocks.len() / self.parts.len()
    }

    /// Appends `count` new objects.
    ///
    /// # Errors
    /// [`Stop`] when the allocator is out of memory or the time is up.
    pub(super) fn append<H: Heap, M: Mode>(
        &mut self,
        count: usize,
        driver: &mut Driver<H, M>,
        session: &Session,
    ) -> Result<(), Stop> {
        for i in 0..count {
            for size in self.parts {
                let mut block = driver.alloc(*size)?;
                driver.fill(&mut block, 0, *size, byte(self.made));
                self.blocks.push(block);
            }
            self.made += 1;
            let object = self.blocks.len() - self.parts.len();
            self.pointers.push(driver, &self.blocks[object])?;
            if i % A_LOOK == 0 {
                session.in_time()?;
            }
        }
        Ok(())
    }

    /// Keeps the objects that `keep` says by their place, as a slice or a filter does: a new vector for them, then the
    /// old list goes, from its last object to its first.
    ///
    /// # Errors
    /// [`Stop`] when the allocator is out of memory.
    pub(super) fn retain<H: Heap, M: Mode>(
        &mut self,
        keep: impl Fn(usize) -> bool,
        driver: &mut Driver<H, M>,
    ) -> Result<(), Stop> {
        let parts = self.parts.len();
        let kept = (0..self.len()).filter(|place| keep(*place));
        let firsts = kept.clone().map(|place| &self.blocks[place * parts]);
        let pointers = Pointers::exactly(driver, kept.clone().count(), firsts)?;
        for place in (0..self.len()).rev() {
            let object = self.blocks.drain(place * parts..).rev();
            if keep(place) {
                self.spare.extend(object);
            } else {
                object.for_each(|block| driver.free(block));
            }
        }
        self.spare.reverse();
        std::mem::swap(&mut self.blocks, &mut self.spare);
        std::mem::replace(&mut self.pointers, pointers).release(driver);
        Ok(())
    }

    /// Drops the list: its objects from the last to the first, as CPython does, then the vector.
    pub(super) fn release<H: Heap, M: Mode>(&mut self, driver: &mut Driver<H, M>) {
        for block in self.blocks.drain(..).rev() {
            driver.free(block);
        }
        std::mem::take(&mut self.pointers).release(driver);
    }

    /// Hash of what the blocks hold.
    pub(super) fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>) -> u64 {
        let mut hash = Xxh3Default::new();
        for block in &self.blocks {
            driver.read(block, 0, block.size(), |bytes| hash.update(bytes));
        }
        hash.digest()
    }

    /// Hash of what the objects with the numbers `made`, counted as they were made, must hold, built without any heap.
    pub(super) fn expected(parts: &[usize], made: impl Iterator<Item = usize>) -> u64 {
        let mut hash = Xxh3Default::new();
        let mut written = vec![0; parts.iter().copied().max().unwrap_or(0)];
        for i in made {
            for size in parts {
                written[..*size].fill(byte(i));
                hash.update(&written[..*size]);
            }
        }
        hash.digest()
    }
}
