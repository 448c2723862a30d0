//! The pointer vector of a list, in the heap under test.

use contract::{Block, Driver, Heap, Mode, OutOfMemory};

/// A vector of addresses that grows by CPython's rule for lists (3.9 and later): about an eighth more than needed, in
/// fours.
#[derive(Debug, Default)]
pub(super) struct Pointers {
    vector: Option<Block>,
    length: usize,
}

impl Pointers {
    const ENTRY: usize = size_of::<u64>();

    /// A vector that holds the addresses of `blocks` and has room for no more, as a slice of a list has.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null.
    pub(super) fn exactly<'b, H: Heap, M: Mode>(
        driver: &mut Driver<H, M>,
        length: usize,
        blocks: impl Iterator<Item = &'b Block>,
    ) -> Result<Pointers, OutOfMemory> {
        let mut made = Pointers::default();
        if length > 0 {
            made.vector = Some(driver.alloc(length * Self::ENTRY)?);
        }
        for block in blocks.take(length) {
            made.write(driver, block);
        }
        Ok(made)
    }

    /// Entries that the vector gets when it must hold `length`.
    pub(super) fn allocated_for(length: usize) -> usize {
        (length + (length >> 3) + 6) & !3
    }

    /// Appends the address of `block`.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null; the vector is then as it was.
    #[inline]
    pub(super) fn push<H: Heap, M: Mode>(
        &mut self,
        driver: &mut Driver<H, M>,
        block: &Block,
    ) -> Result<(), OutOfMemory> {
        let room = self
            .vector
            .as_ref()
            .map_or(0, |vector| vector.size() / Self::ENTRY);
        if self.length == room {
            let bytes = Self::allocated_for(self.length + 1) * Self::ENTRY;
            match &mut self.vector {
                Some(vector) => driver.resize(vector, bytes)?,
                None => self.vector = Some(driver.alloc(bytes)?),
            }
        }
        self.write(driver, block);
        Ok(())
    }

    #[inline]
    fn write<H: Heap, M: Mode>(&mut self, driver: &mut Driver<H, M>, block: &Block) {
        if let Some(vector) = &mut self.vector {
            let address = (block.address() as u64).to_ne_bytes();
            driver.write(vector, self.length * Self::ENTRY, &address);
        }
        self.length += 1;
    }

    /// Gives the vector back.
    pub(super) fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        if let Some(vector) = self.vector {
            driver.free(vector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_as_cpython_documents_it() {
        let mut sizes = vec![0];
        for length in 1..=77 {
            let room = sizes[sizes.len() - 1];
            if length > room {
                sizes.push(Pointers::allocated_for(length));
            }
        }
        assert_eq!(sizes, [0, 4, 8, 16, 24, 32, 40, 52, 64, 76, 92]);
    }
}
