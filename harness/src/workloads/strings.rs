//! Growing strings, and a vector of them, in the heap under test: Rust's `String` and `Vec<String>`.
//!
//! Both ask for nothing while they are empty. One that is full asks for twice what it has, or for what is needed where
//! that is more, but for 8 bytes or 4 elements at least.

use contract::{Block, Driver, Heap, Mode, OutOfMemory};

/// Fewest bytes that a string asks for.
const LEAST_BYTES: usize = 8;
/// Fewest elements that a vector of headers asks for.
const LEAST_HEADERS: usize = 4;
/// Bytes of a string's header: capacity, address, length.
pub(super) const HEADER: usize = 3 * size_of::<u64>();

/// What a collection with room for `room` asks for to hold `needed`; nothing if it has the room.
fn grown(room: usize, needed: usize, least: usize) -> Option<usize> {
    (needed > room).then(|| (2 * room).max(needed).max(least))
}

/// Makes room in `block` for `needed` units of `unit` bytes each.
#[inline]
fn reserve<H: Heap, M: Mode>(
    block: &mut Option<Block>,
    needed: usize,
    (least, unit): (usize, usize),
    driver: &mut Driver<H, M>,
) -> Result<(), OutOfMemory> {
    let room = block.as_ref().map_or(0, |block| block.size() / unit);
    if let Some(room) = grown(room, needed, least) {
        match block {
            Some(block) => driver.resize(block, room * unit)?,
            None => *block = Some(driver.alloc(room * unit)?),
        }
    }
    Ok(())
}

/// A string.
#[derive(Debug, Default)]
pub(super) struct Text {
    block: Option<Block>,
    len: usize,
}

impl Text {
    /// Appends the `len` bytes at `offset` of `from`.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null; the string is then as it was.
    #[inline]
    pub(super) fn extend<H: Heap, M: Mode>(
        &mut self,
        from: &Block,
        offset: usize,
        len: usize,
        driver: &mut Driver<H, M>,
    ) -> Result<(), OutOfMemory> {
        reserve(&mut self.block, self.len + len, (LEAST_BYTES, 1), driver)?;
        if let Some(block) = &mut self.block {
            driver.copy(from, offset, block, self.len, len);
        }
        self.len += len;
        Ok(())
    }

    /// Empties it; the block stays.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Hands its bytes to `sink` in pieces.
    pub(super) fn read<H: Heap, M: Mode>(&self, driver: &Driver<H, M>, sink: impl FnMut(&[u8])) {
        if let Some(block) = &self.block {
            driver.read(block, 0, self.len, sink);
        }
    }

    /// Gives it back.
    pub(super) fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        if let Some(block) = self.block {
            driver.free(block);
        }
    }
}

/// A vector of strings: their headers in a block, and the strings.
#[derive(Debug)]
pub(super) struct Texts {
    headers: Option<Block>,
    /// The child's own handles, in a table that is there before anything is measured.
    texts: Vec<Text>,
}

impl Texts {
    /// An empty vector with a table for `most` strings.
    pub(super) fn new(most: usize) -> Texts {
        Texts {
            headers: None,
            texts: Vec::with_capacity(most),
        }
    }

    /// Appends `text`.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null; the string is given back then.
    #[inline]
    pub(super) fn push<H: Heap, M: Mode>(
        &mut self,
        text: Text,
        driver: &mut Driver<H, M>,
    ) -> Result<(), OutOfMemory> {
        let place = self.texts.len();
        let unit = (LEAST_HEADERS, HEADER);
        if let Err(refused) = reserve(&mut self.headers, place + 1, unit, driver) {
            text.release(driver);
            return Err(refused);
        }
        if let Some(headers) = &mut self.headers {
            let block = text.block.as_ref();
            let words = [
                block.map_or(0, Block::size),
                block.map_or(0, Block::address),
                text.len,
            ];
            for (i, word) in words.into_iter().enumerate() {
                let at = place * HEADER + i * size_of::<u64>();
                driver.write(headers, at, &(word as u64).to_ne_bytes());
            }
        }
        self.texts.push(text);
        Ok(())
    }

    /// Hands the bytes of all strings to `sink`, in order and in pieces.
    pub(super) fn read<H: Heap, M: Mode>(
        &self,
        driver: &Driver<H, M>,
        mut sink: impl FnMut(&[u8]),
    ) {
        for text in &self.texts {
            text.read(driver, &mut sink);
        }
    }

    /// Gives everything back: the strings from the first to the last, then the headers.
    pub(super) fn release<H: Heap, M: Mode>(self, driver: &mut Driver<H, M>) {
        for text in self.texts {
            text.release(driver);
        }
        if let Some(headers) = self.headers {
            driver.free(headers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_those_of_the_standard_library() {
        let (mut text, mut list): (String, Vec<String>) = Default::default();
        let (mut text_room, mut list_room) = (0, 0);
        for length in [1, 3, 8, 9, 16, 17, 40, 300, 301, 700] {
            let more = "x".repeat(length - text.len());
            text.push_str(&more);
            text_room = grown(text_room, length, LEAST_BYTES).unwrap_or(text_room);
            assert_eq!(text.capacity(), text_room, "{length} bytes");
        }
        for length in 1..100 {
            list.push(String::new());
            list_room = grown(list_room, length, LEAST_HEADERS).unwrap_or(list_room);
            assert_eq!(list.capacity(), list_room, "{length} strings");
        }
        assert_eq!(size_of::<String>(), HEADER);
    }
}
