//! The safe hand that a workload holds.

use crate::{Block, Counts, Heap, Lines};
use core::hint::black_box;
use core::ops::Range;
use core::ptr::{self, NonNull};

mod churn;

pub use churn::{FreeOrder, Refill, Refills, Sizes};

/// Where a block lies while a hook of a [`Mode`] is told of it.
///
/// Invariant PLACE: only the driver makes one, of a block of its heap that is live at that moment with as many bytes
/// as the hook is told; the old place in [`Mode::resized`] alone may be gone. It can be neither copied nor kept.
#[derive(Debug, PartialEq, Eq)]
pub struct Place(pub(crate) *mut u8);

impl Place {
    /// The address, as a number.
    #[inline]
    #[must_use]
    pub fn address(&self) -> usize {
        self.0 as usize
    }
}

/// What the driver does beside the call itself. The default of every hook is to do nothing.
pub trait Mode {
    /// What this mode has counted so far, if it counts.
    fn counts(&self) -> Option<Counts> {
        None
    }
    /// A block of `size` bytes was handed out at `at`.
    #[inline]
    fn allocated(&mut self, at: &Place, size: usize) {
        let _ = (at, size);
    }
    /// A block of `old` bytes at `from` is about to be resized.
    #[inline]
    fn resizing(&mut self, from: &Place, old: usize) {
        let _ = (from, old);
    }
    /// A block of `old` bytes at `from` now has `new` bytes at `to`.
    #[inline]
    fn resized(&mut self, from: &Place, old: usize, to: &Place, new: usize) {
        let _ = (from, old, to, new);
    }
    /// A resize of the block at `from` failed; the block is as it was.
    #[inline]
    fn resize_failed(&mut self, from: &Place, old: usize) {
        let _ = (from, old);
    }
    /// `len` bytes were written at `offset` into the block at `at`.
    #[inline]
    fn wrote(&mut self, at: &Place, offset: usize, len: usize) {
        let _ = (at, offset, len);
    }
    /// The workload itself copied `len` bytes from block to block.
    #[inline]
    fn copied(&mut self, len: usize) {
        let _ = len;
    }
    /// The block of `size` bytes at `at` is about to be freed.
    #[inline]
    fn freeing(&mut self, at: &Place, size: usize) {
        let _ = (at, size);
    }
}

/// The mode of time trials: the call and nothing else.
#[derive(Debug, Default, Clone, Copy)]
pub struct Plain;
impl Mode for Plain {}

/// The allocator said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes asked for in the call that failed.
    pub requested: usize,
}

impl core::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "out of memory: the allocator returned null for a request of {} bytes",
            self.requested
        )
    }
}
impl std::error::Error for OutOfMemory {}

/// Weights that keep the three kinds of call apart in the `ops` checksum.
const MALLOC: u64 = 1 << 48;
const REALLOC: u64 = 3 << 48;
const FREE: u64 = 7 << 48;

/// Drives one heap on behalf of one thread of a workload.
///
/// Invariant NO-REFERENCE: the driver never forms a reference into the heap's memory; bytes go in and out by raw
/// copies. So a heap whose blocks overlap gives wrong contents, which are caught, and not undefined behaviour.
///
/// The driver keeps the `ops` checksum: the sum, modulo 2^64, over all calls of a weight for its kind plus the
/// bytes requested. It depends on the workload's decisions alone, is equal for every allocator, costs one addition
/// a call and adds up over threads.
#[derive(Debug)]
pub struct Driver<'h, H, M = Plain> {
    heap: &'h H,
    mode: M,
    ops: u64,
}

impl<'h, H: Heap, M: Mode> Driver<'h, H, M> {
    /// A driver over `heap`.
    ///
    /// # Safety
    /// Invariant ONE-HEAP: all drivers whose blocks can meet in this process drive the same heap, so that every
    /// [`Block`] given to a driver is a live block of its heap.
    pub unsafe fn new(heap: &'h H, mode: M) -> Self {
        Driver { heap, mode, ops: 0 }
    }

    /// The `ops` checksum so far.
    pub fn ops(&self) -> u64 {
        self.ops
    }

    /// The mode, to read what it gathered.
    pub fn mode(&self) -> &M {
        &self.mode
    }

    /// Ends the driving and gives the mode's findings back.
    pub fn into_mode(self) -> M {
        self.mode
    }

    /// The heap itself, for the harness (statistics, trimming); workloads have no use for it.
    pub fn heap(&self) -> &'h H {
        self.heap
    }

    /// malloc. The contents are undefined until written.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null.
    #[inline]
    pub fn alloc(&mut self, size: usize) -> Result<Block, OutOfMemory> {
        self.ops = self.ops.wrapping_add(MALLOC.wrapping_add(size as u64));
        let Some(at) = NonNull::new(self.heap.malloc(size)) else {
            return Err(OutOfMemory { requested: size });
        };
        self.mode.allocated(&Place(at.as_ptr()), size);
        Ok(Block { at, size })
    }

    /// realloc to `new` bytes, which must not be 0. On failure the block is as it was.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null.
    #[inline]
    pub fn resize(&mut self, block: &mut Block, new: usize) -> Result<(), OutOfMemory> {
        debug_assert!(new != 0, "realloc(p, 0) has no portable meaning");
        self.ops = self.ops.wrapping_add(REALLOC.wrapping_add(new as u64));
        let (from, old) = (block.at.as_ptr(), block.size);
        self.mode.resizing(&Place(from), old);
        // SAFETY: LIVE and ONE-HEAP: `from` is a live block of this heap of `old` bytes; `new` is not 0.
        let to = unsafe { self.heap.realloc(from, old, new) };
        let Some(at) = NonNull::new(to) else {
            self.mode.resize_failed(&Place(from), old);
            return Err(OutOfMemory { requested: new });
        };
        self.mode.resized(&Place(from), old, &Place(to), new);
        block.at = at;
        block.size = new;
        Ok(())
    }

    /// realloc by exactly `bytes.len()` (not 0), and `bytes` written into the new end: `content += line`.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null; the block is then as it was.
    #[inline]
    pub fn append(&mut self, block: &mut Block, bytes: &[u8]) -> Result<(), OutOfMemory> {
        let old = block.size;
        self.resize(block, old + bytes.len())?;
        // SAFETY: LIVE: the block now holds `old + len` bytes, so `old ..` has room for `len`; NO-REFERENCE: `bytes`
        // cannot lie in the heap's memory, so the two do not overlap.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), block.at.as_ptr().add(old), bytes.len())
        };
        self.mode.wrote(&Place(block.at.as_ptr()), old, bytes.len());
        Ok(())
    }

    /// realloc by exactly `len` bytes (not 0), each written as `byte`.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null; the block is then as it was.
    #[inline]
    pub fn extend(&mut self, block: &mut Block, byte: u8, len: usize) -> Result<(), OutOfMemory> {
        let old = block.size;
        self.resize(block, old + len)?;
        // SAFETY: LIVE: the block now holds `old + len` bytes.
        unsafe { ptr::write_bytes(block.at.as_ptr().add(old), byte, len) };
        self.mode.wrote(&Place(block.at.as_ptr()), old, len);
        Ok(())
    }

    /// [`append`](Driver::append) for each of the next `most` lines, or for all that are left. Those that were appended
    /// are gone from `lines`.
    ///
    /// A run of calls is a loop of its own, never inlined, so that around the calls there is no more than in a loop
    /// written by hand (a test counts the instructions): among the variables of a workload's own loop the registers
    /// would not suffice.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null; the line that did not fit is then the next one.
    #[inline(never)]
    pub fn append_each(
        &mut self,
        block: &mut Block,
        lines: &mut Lines,
        most: usize,
    ) -> Result<(), OutOfMemory> {
        let (mut line, lengths) = lines.next(most);
        let mut left = lengths.iter();
        let mut books = Books {
            ops: self.ops.wrapping_add(weight(lengths.len())),
            at: block.at,
        };
        let mut run = Run::of(self, &mut books);
        let mut size = block.size;
        while let Some(length) = left.next() {
            let (length, new) = (*length as usize, size + *length as usize);
            let Some(to) = run.resize(size, new) else {
                (self.ops, *block) = run.end(size, left.len());
                // SAFETY: `line` has passed all lines that were yielded but the one that failed.
                unsafe { lines.go_on(line, left.as_slice().as_ptr().sub(1)) };
                return Err(OutOfMemory { requested: new });
            };
            // SAFETY: LIVE: the block now holds `size + length` bytes; IN-TEXT: so many are left at `line`;
            // NO-REFERENCE: the text is not in the heap's memory.
            line = unsafe {
                ptr::copy_nonoverlapping(line, to.as_ptr().add(size), length);
                line.add(length)
            };
            run.mode.wrote(&Place(to.as_ptr()), size, length);
            size = new;
        }
        (self.ops, *block) = run.end(size, 0);
        // SAFETY: `line` has passed all of them.
        unsafe { lines.go_on(line, left.as_slice().as_ptr()) };
        Ok(())
    }

    /// [`extend`](Driver::extend) by `len` bytes for each of `bytes`: a run of calls, as
    /// [`append_each`](Driver::append_each).
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator returns null; the steps before have been made.
    #[inline(never)]
    pub fn extend_each(
        &mut self,
        block: &mut Block,
        len: usize,
        mut bytes: Range<u8>,
    ) -> Result<(), OutOfMemory> {
        let mut books = Books {
            ops: self.ops.wrapping_add(weight(bytes.len())),
            at: block.at,
        };
        let mut run = Run::of(self, &mut books);
        let mut size = block.size;
        while let Some(byte) = bytes.next() {
            let new = size + len;
            let Some(to) = run.resize(size, new) else {
                (self.ops, *block) = run.end(size, bytes.len());
                return Err(OutOfMemory { requested: new });
            };
            // SAFETY: LIVE: the block now holds `size + len` bytes.
            unsafe { ptr::write_bytes(to.as_ptr().add(size), byte, len) };
            run.mode.wrote(&Place(to.as_ptr()), size, len);
            size = new;
        }
        (self.ops, *block) = run.end(size, 0);
        Ok(())
    }

    /// Writes `bytes` at `offset`.
    ///
    /// # Panics
    /// If they do not fit.
    #[inline]
    pub fn write(&mut self, block: &mut Block, offset: usize, bytes: &[u8]) {
        assert!(
            offset <= block.size && bytes.len() <= block.size - offset,
            "write past the end of a block"
        );
        // SAFETY: LIVE and the check above; NO-REFERENCE: `bytes` is not in the heap's memory.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), block.at.as_ptr().add(offset), bytes.len())
        };
        self.mode
            .wrote(&Place(block.at.as_ptr()), offset, bytes.len());
    }

    /// Writes `byte` into the `len` bytes at `offset`.
    ///
    /// # Panics
    /// If they do not fit.
    #[inline]
    pub fn fill(&mut self, block: &mut Block, offset: usize, len: usize, byte: u8) {
        assert!(
            offset <= block.size && len <= block.size - offset,
            "fill past the end of a block"
        );
        // SAFETY: LIVE and the check above.
        unsafe { ptr::write_bytes(block.at.as_ptr().add(offset), byte, len) };
        self.mode.wrote(&Place(block.at.as_ptr()), offset, len);
    }

    /// Copies `len` bytes from `from_offset` of one block to `to_offset` of another: the copying that a program
    /// does itself, counted apart from what realloc copies.
    ///
    /// # Panics
    /// If either range does not fit.
    #[inline]
    pub fn copy(
        &mut self,
        from: &Block,
        from_offset: usize,
        to: &mut Block,
        to_offset: usize,
        len: usize,
    ) {
        assert!(
            from_offset <= from.size && len <= from.size - from_offset,
            "copy past the end of the source"
        );
        assert!(
            to_offset <= to.size && len <= to.size - to_offset,
            "copy past the end of the target"
        );
        // SAFETY: LIVE and the checks above; `copy`, not `copy_nonoverlapping`, because a broken heap (or `null`)
        // may have made the two blocks overlap.
        unsafe {
            ptr::copy(
                from.at.as_ptr().add(from_offset),
                to.at.as_ptr().add(to_offset),
                len,
            )
        };
        self.mode.wrote(&Place(to.at.as_ptr()), to_offset, len);
        self.mode.copied(len);
    }

    /// Hands the `len` bytes at `offset` to `sink` in pieces, copied out through a buffer of 4 KiB
    /// (NO-REFERENCE). For checksums, outside the measured region.
    ///
    /// # Panics
    /// If the range does not lie in the block.
    pub fn read(&self, block: &Block, offset: usize, len: usize, mut sink: impl FnMut(&[u8])) {
        assert!(
            offset <= block.size && len <= block.size - offset,
            "read past the end of a block"
        );
        let mut buffer = [0u8; 4096];
        let mut done = 0;
        while done < len {
            let n = buffer.len().min(len - done);
            // SAFETY: LIVE and the check above; the buffer is ours and holds `n` bytes.
            unsafe {
                ptr::copy_nonoverlapping(
                    block.at.as_ptr().add(offset + done),
                    buffer.as_mut_ptr(),
                    n,
                )
            };
            sink(&buffer[..n]);
            done += n;
        }
    }

    /// free, with the size where the heap is defined so ([`Heap::SIZED_FREE`]).
    #[inline]
    pub fn free(&mut self, block: Block) {
        self.ops = self.ops.wrapping_add(FREE.wrapping_add(block.size as u64));
        self.mode.freeing(&Place(block.at.as_ptr()), block.size);
        let at = block.at.as_ptr();
        // SAFETY: LIVE and ONE-HEAP; the handle is consumed, so nobody uses the block afterwards. It has `size` bytes,
        // and the driver makes no blocks by `aligned`.
        unsafe {
            if H::SIZED_FREE {
                self.heap.free_sized(at, block.size, 1);
            } else {
                self.heap.free(at);
            }
        }
    }
}

/// Weight of `calls` reallocs: a run adds it at once, so that within the run a call costs the checksum one addition.
fn weight(calls: usize) -> u64 {
    REALLOC.wrapping_mul(calls as u64)
}

/// A run of reallocs of one block.
///
/// Invariant RUN: it borrows the driver's mode, and the block that it was made from is borrowed as long, so nobody else
/// resizes or frees that block meanwhile; `at` is where it lies now.
struct Run<'r, 'h, H, M> {
    heap: &'h H,
    mode: &'r mut M,
    books: &'r mut Books,
}

/// What has to outlive each call and is used once between two.
struct Books {
    ops: u64,
    at: NonNull<u8>,
}

impl<'r, 'h, H: Heap, M: Mode> Run<'r, 'h, H, M> {
    #[inline(always)]
    fn of(driver: &'r mut Driver<'h, H, M>, books: &'r mut Books) -> Self {
        // Keeps the books on the stack, where each use is a part of an instruction that is there anyway. The compiler
        // would give them registers that it has not got, and carry them to and fro.
        black_box(&mut *books);
        Run {
            heap: driver.heap,
            mode: &mut driver.mode,
            books,
        }
    }

    /// What the driver and the block are to be afterwards, the block having `size` bytes and `unmade` of the calls not
    /// having been made.
    #[inline(always)]
    fn end(self, size: usize, unmade: usize) -> (u64, Block) {
        (
            self.books.ops.wrapping_sub(weight(unmade)),
            Block {
                at: self.books.at,
                size,
            },
        )
    }

    /// realloc from `old` bytes to `new`, which is not 0; `None` if the allocator returns null.
    #[inline(always)]
    fn resize(&mut self, old: usize, new: usize) -> Option<NonNull<u8>> {
        self.books.ops = self.books.ops.wrapping_add(new as u64);
        let from = self.books.at.as_ptr();
        self.mode.resizing(&Place(from), old);
        // SAFETY: RUN and ONE-HEAP: `from` is a live block of this heap of `old` bytes; `new` is not 0.
        let Some(to) = NonNull::new(unsafe { self.heap.realloc(from, old, new) }) else {
            self.mode.resize_failed(&Place(from), old);
            return None;
        };
        self.mode
            .resized(&Place(from), old, &Place(to.as_ptr()), new);
        self.books.at = to;
        Some(to)
    }
}
