//! Three kinds of heap, to be played side by side: ours, CPython's file, and the reference model.

use crate::c_file::{self, Over};
use crate::model::{BlockAt, Model};
use arena::debug_text::DebugText;
use arena::heap::Heap;
use arena::os::{Libc, Source};
use arena::policy::Policy;
use contract::Heap as _;
use obmalloc::Variant;

/// Arenas begin at multiples of their size, so that a block's arena follows from its address, and none loses a pool.
pub const ALIGNED: Libc = Libc {
    aligned_arenas: true,
    source: Source::Mmap,
};

/// A heap that is played.
pub trait Side {
    /// How it names a block.
    type Block: Copy;

    fn malloc(&mut self, size: usize) -> Self::Block;
    fn calloc(&mut self, count: usize, size: usize) -> Self::Block;
    /// `block`, live and of `old` bytes, becomes one of `new`.
    fn realloc(&mut self, block: Self::Block, old: usize, new: usize) -> Self::Block;
    /// `block`, live and of `size` bytes, goes.
    fn free(&mut self, block: Self::Block, size: usize);
    /// Where a block of a pool lies: something that names the arena, and the offset in it.
    fn place(&self, block: Self::Block) -> (usize, usize);
    /// Where its bytes are, if it has any.
    fn bytes(&self, block: Self::Block) -> Option<*mut u8>;
    /// CPython's text of statistics. Where nodes of an address map lie is chance, so a text that is compared with
    /// another, `beside`, takes their number from it.
    fn text(&self, beside: Option<&str>) -> String;
    /// Whether it is sound in itself.
    fn check(&self) {}
}

/// Ours, with arenas of so many bytes.
impl<P: Policy> Side for Heap<Libc, P> {
    type Block = *mut u8;

    fn malloc(&mut self, size: usize) -> *mut u8 {
        Heap::malloc(self, size)
    }
    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        Heap::calloc(self, count, size)
    }
    fn realloc(&mut self, block: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: live, says the trait.
        unsafe { Heap::realloc(self, block, new) }
    }
    fn free(&mut self, block: *mut u8, _size: usize) {
        // SAFETY: live, says the trait.
        unsafe { Heap::free(self, block) }
    }
    fn place(&self, block: *mut u8) -> (usize, usize) {
        let size = self.policy().arena_size();
        (block.addr() / size, block.addr() % size)
    }
    fn bytes(&self, block: *mut u8) -> Option<*mut u8> {
        Some(block)
    }
    fn text(&self, beside: Option<&str>) -> String {
        let mut text: DebugText = self.debug_text();
        if let (Some(map), Some(beside)) = (&mut text.stats.map, beside) {
            map.middle_nodes = figure(beside, "# arena map mid nodes");
            map.leaves = figure(beside, "# arena map bot nodes");
        }
        text.to_string()
    }
    fn check(&self) {
        assert_eq!(Heap::check(self), Ok(()));
    }
}

/// Ours, told the size of each block that it resizes or takes back.
pub struct Sized<P: Policy>(pub Heap<Libc, P>);

impl<P: Policy> Side for Sized<P> {
    type Block = *mut u8;

    fn malloc(&mut self, size: usize) -> *mut u8 {
        self.0.malloc(size)
    }
    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        self.0.calloc(count, size)
    }
    fn realloc(&mut self, block: *mut u8, old: usize, new: usize) -> *mut u8 {
        // SAFETY: live, says the trait, of `old` bytes.
        unsafe { self.0.realloc_sized(block, old, new) }
    }
    fn free(&mut self, block: *mut u8, size: usize) {
        // SAFETY: live, says the trait, of `size` bytes.
        unsafe { self.0.free_sized(block, size) }
    }
    fn place(&self, block: *mut u8) -> (usize, usize) {
        self.0.place(block)
    }
    fn bytes(&self, block: *mut u8) -> Option<*mut u8> {
        Some(block)
    }
    fn text(&self, beside: Option<&str>) -> String {
        self.0.text(beside)
    }
    fn check(&self) {
        Side::check(&self.0);
        if self.0.stats().bytes.allocated == 0 {
            // A stream frees all it has made, so the strays are gone, too.
            assert_eq!(self.0.strays(), 0);
        }
    }
}

/// The number in the line that begins so.
fn figure(text: &str, label: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(label));
    let line = lines.next().unwrap_or_else(|| panic!("{label} in {text}"));
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// CPython's file in one of its variants.
#[derive(Debug)]
pub struct CFile<V: Variant> {
    heap: Over<V>,
    arena: usize,
}

impl<V: Variant> CFile<V> {
    /// `None` without the file.
    pub fn open() -> Option<Self> {
        let heap = c_file::open::<V>(&[("aligned", "1")])?;
        let arena = heap.books().arena_size;
        Some(CFile { heap, arena })
    }
}

impl<V: Variant> Side for CFile<V> {
    type Block = *mut u8;

    fn malloc(&mut self, size: usize) -> *mut u8 {
        self.heap.malloc(size)
    }
    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        self.heap.calloc(count, size)
    }
    fn realloc(&mut self, block: *mut u8, old: usize, new: usize) -> *mut u8 {
        // SAFETY: live, says the trait.
        unsafe { self.heap.realloc(block, old, new) }
    }
    fn free(&mut self, block: *mut u8, _size: usize) {
        // SAFETY: live, says the trait.
        unsafe { self.heap.free(block) }
    }
    fn place(&self, block: *mut u8) -> (usize, usize) {
        (block.addr() / self.arena, block.addr() % self.arena)
    }
    fn bytes(&self, block: *mut u8) -> Option<*mut u8> {
        Some(block)
    }
    fn text(&self, _beside: Option<&str>) -> String {
        self.heap.debug_text().expect("memory for a text")
    }
}

impl Side for Model {
    type Block = BlockAt;

    fn malloc(&mut self, size: usize) -> BlockAt {
        Model::malloc(self, size)
    }
    fn calloc(&mut self, count: usize, size: usize) -> BlockAt {
        Model::malloc(self, count * size)
    }
    fn realloc(&mut self, block: BlockAt, _old: usize, new: usize) -> BlockAt {
        Model::realloc(self, block, new)
    }
    fn free(&mut self, block: BlockAt, _size: usize) {
        Model::free(self, block);
    }
    fn place(&self, block: BlockAt) -> (usize, usize) {
        block.expect("a block of a pool")
    }
    fn bytes(&self, _block: BlockAt) -> Option<*mut u8> {
        None
    }
    fn text(&self, _beside: Option<&str>) -> String {
        Model::text(self).to_string()
    }
}
