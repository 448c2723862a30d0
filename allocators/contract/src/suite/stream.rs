//! Random operations against the shadow model.

use super::Verdict;
use crate::{Block, Broken, Canary, Driver, Heap, OutOfMemory};

/// Marsaglia's xorshift64: enough for choosing sizes, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % limit as u64) as usize
    }

    /// Mostly small, as in programs; one in eight up to 16 KiB, one in 64 up to 512 KiB. Never 0.
    fn size(&mut self) -> usize {
        1 + match self.below(64) {
            0 => self.below(512 << 10),
            1..8 => self.below(16 << 10),
            _ => self.below(512),
        }
    }
}

/// How a random stream can end badly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The shadow model caught the heap.
    Broken(Broken),
    /// The heap returned null for a size of no more than 512 KiB.
    OutOfMemory(OutOfMemory),
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Failure::Broken(broken) => broken.fmt(f),
            Failure::OutOfMemory(null) => null.fmt(f),
        }
    }
}
impl std::error::Error for Failure {}

/// Runs `operations` random operations (malloc, realloc, write, free; up to 500 live blocks) on `heap`, then frees
/// everything, all under the shadow model. The stream is the same for the same `seed`.
///
/// # Errors
/// What the shadow model found first, or a refusal.
pub fn random_stream<H: Heap>(heap: &H, seed: u64, operations: usize) -> Result<(), Failure> {
    stream(heap, Canary::default(), seed, operations)
}

fn stream<H: Heap>(heap: &H, canary: Canary, seed: u64, operations: usize) -> Result<(), Failure> {
    // SAFETY: ONE-HEAP: the blocks of this driver never leave this function.
    let mut driver = unsafe { Driver::new(heap, canary) };
    let mut random = Random(seed | 1);
    let mut live: Vec<Block> = Vec::new();
    for _ in 0..operations {
        if let Some(broken) = driver.mode().broken() {
            return Err(Failure::Broken(broken.clone()));
        }
        let choice = random.below(8);
        if live.is_empty() || (choice < 3 && live.len() < 500) {
            live.push(driver.alloc(random.size()).map_err(Failure::OutOfMemory)?);
            continue;
        }
        let which = random.below(live.len());
        match choice {
            0..=4 => driver
                .resize(&mut live[which], random.size())
                .map_err(Failure::OutOfMemory)?,
            5 => {
                let block = &mut live[which];
                let offset = random.below(block.size());
                let len = 1 + random.below(block.size() - offset);
                driver.fill(block, offset, len, random.below(256) as u8);
            }
            _ => driver.free(live.swap_remove(which)),
        }
    }
    for block in live {
        driver.free(block);
    }
    match driver.mode().broken() {
        Some(broken) => Err(Failure::Broken(broken.clone())),
        None => Ok(()),
    }
}

pub(super) fn rule<H: Heap>(heap: &H) -> Verdict {
    // Alignment has rules of its own: a heap that breaks them and nothing else is to be told from one that loses data.
    match stream(heap, Canary::of_contents(), 0x0BAD_5EED, 20_000) {
        Ok(()) => Verdict::Held,
        Err(failure) => Verdict::Broken(failure.to_string()),
    }
}
