//! What a heap does where allocators differ: observed, not judged.
//!
//! Every answer comes from calls, and none of them asks a heap for more than [`Heap`] promises. What the trait leaves
//! out, a realloc of null and one to no bytes, is asked through [`Heap::realloc_as_c`], by which an arm hands on its
//! allocator's own entry point, or says that it has none that may be called so.

use super::raw::*;
use crate::Heap;
use core::fmt;
use std::collections::HashSet;

/// Everything that is observed. Sizes and alignments are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behaviour {
    /// What malloc gives for no bytes.
    pub malloc_zero: NoBytes,
    /// What realloc to no bytes does, with a block of each of [`REALLOCATED`].
    pub realloc_zero: Vec<(usize, ToNothing)>,
    /// What realloc of null to 100 bytes gives; `None`: no entry point of the arm may be called so.
    pub realloc_null: Option<Given>,
    /// What calloc gives for a product that overflows.
    pub calloc_overflow: Given,
    /// What calloc gives where there was something else; `None`: the heap keeps no contents.
    pub calloc_of_freed: Option<OfFreed>,
    /// errno after calls that cannot be served.
    pub refusals: Vec<Refusal>,
    /// The first size at which a free changed errno, and what it left there.
    pub errno_of_free: Option<(usize, i32)>,
    /// How far the entry point for aligned blocks goes.
    pub aligned: Aligned,
    /// For each of [`SIZES`] the largest power of two that divides the addresses of all blocks seen.
    pub alignment: Vec<(usize, usize)>,
    /// For no bytes and each of [`SIZES`]: the smallest and the largest usable size told; `None` if it is not told.
    pub usable: Vec<(usize, Option<(usize, usize)>)>,
    /// A free that is told the size uses it.
    pub sized_free: bool,
    /// Free memory can be given back on request.
    pub trim: bool,
}

/// Sizes whose alignment and usable size are observed.
pub const SIZES: [usize; 20] = [
    1,
    2,
    4,
    8,
    16,
    24,
    32,
    48,
    64,
    100,
    128,
    256,
    512,
    1000,
    1024,
    2048,
    4096,
    32 << 10,
    256 << 10,
    1 << 20,
];

/// Sizes of blocks that are reallocated to no bytes: a small and a large one, but none that the C library would map by
/// itself, whose address does not come back.
pub const REALLOCATED: [usize; 2] = [100, 100_000];

/// The largest alignment that is asked for.
pub const LARGEST_ALIGNMENT: usize = 64 << 20;

/// An answer to a request for no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBytes {
    /// Null.
    Null,
    /// Each time an address of its own.
    Own,
    /// The same address twice while it was live.
    Shared,
}

impl fmt::Display for NoBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoBytes::Null => "null",
            NoBytes::Own => "own address",
            NoBytes::Shared => "one address for all",
        })
    }
}

/// An answer to realloc to no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToNothing {
    /// No entry point of the arm may be called so.
    NotAsked,
    /// Null, and the block was freed: its memory was handed out again.
    Frees,
    /// Null, and the memory of the block was not handed out again in many requests of its size.
    Null,
    /// A block, of so many usable bytes if the heap tells.
    Block(Option<usize>),
}

impl fmt::Display for ToNothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToNothing::NotAsked => f.write_str("not asked"),
            ToNothing::Frees => f.write_str("frees, null"),
            ToNothing::Null => f.write_str("null, not seen to free"),
            ToNothing::Block(None) => f.write_str("a block"),
            ToNothing::Block(Some(usable)) => write!(f, "a block ({usable} usable)"),
        }
    }
}

/// Whether a call gave a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// Null.
    Null,
    /// A block.
    Block,
}

impl Given {
    fn of(p: *mut u8) -> Given {
        if p.is_null() {
            Given::Null
        } else {
            Given::Block
        }
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Given::Null => "null",
            Given::Block => "a block",
        })
    }
}

/// What calloc gave after blocks of the same sizes had been filled and freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfFreed {
    /// Blocks asked for.
    pub blocks: usize,
    /// Of these, at the address of one that had been filled.
    pub reused: usize,
    /// Of all, not zero throughout.
    pub not_zero: usize,
}

impl fmt::Display for OfFreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            OfFreed {
                not_zero: 0,
                reused: 0,
                ..
            } => f.write_str("zero, never reused"),
            OfFreed { not_zero: 0, .. } => f.write_str("zero"),
            OfFreed {
                blocks, not_zero, ..
            } => write!(f, "NOT ZERO in {not_zero} of {blocks}"),
        }
    }
}

/// errno after one call that cannot be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// `malloc`, `calloc`, `realloc` or `aligned`.
    pub call: &'static str,
    /// Bytes asked for.
    pub size: usize,
    /// What it left in errno; `None` if it was not refused.
    pub errno: Option<Errno>,
}

/// What a call left in errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// `ENOMEM`.
    NoMemory,
    /// What was there before.
    Untouched,
    /// Another number.
    Other(i32),
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Errno::NoMemory => f.write_str("ENOMEM"),
            Errno::Untouched => f.write_str("untouched"),
            Errno::Other(number) => write!(f, "{number}"),
        }
    }
}

/// How far the entry point for aligned blocks goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aligned {
    /// Every power of two up to this one was served; 0 if none was.
    pub up_to: usize,
    /// The first request that was not.
    pub first_failure: Option<NotAligned>,
}

/// A request for an aligned block that was not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAligned {
    /// The alignment.
    pub align: usize,
    /// Bytes asked for.
    pub size: usize,
    /// What came instead.
    pub instead: Instead,
}

/// What came instead of an aligned block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// Null.
    Null,
    /// An address that is not a multiple of the alignment.
    Misaligned,
    /// The end of the process, by this signal.
    Crash(i32),
}

impl fmt::Display for NotAligned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "aligned({}, {}) ", self.align, self.size)?;
        match self.instead {
            Instead::Null => f.write_str("is null"),
            Instead::Misaligned => f.write_str("is MISALIGNED"),
            Instead::Crash(libc::SIGABRT) => f.write_str("aborts"),
            Instead::Crash(signal) => write!(f, "ends the process by signal {signal}"),
        }
    }
}

/// Observes `heap`; `telling` is called with each question before it is asked, so that somebody knows where a heap
/// crashed. `None` where the heap gave null for a size of a mebibyte or less, or the system no second process: then
/// there is nothing to observe.
pub fn observe<H: Heap>(heap: &H, mut telling: impl FnMut(&'static str)) -> Option<Behaviour> {
    let mut at = |question| telling(question);
    at("malloc of no bytes");
    let malloc_zero = malloc_zero(heap);
    at("realloc to no bytes");
    let realloc_zero = REALLOCATED
        .into_iter()
        .map(|size| Some((size, realloc_zero(heap, size)?)))
        .collect::<Option<_>>()?;
    at("realloc of null");
    let realloc_null = realloc_null(heap);
    at("a product that overflows");
    let calloc_overflow = calloc_overflow(heap);
    at("calloc of freed memory");
    let calloc_of_freed = if H::CAPABILITIES.contents {
        Some(calloc_of_freed(heap)?)
    } else {
        None
    };
    at("errno of a refusal");
    let refusals = refusals(heap)?;
    at("errno of a free");
    let errno_of_free = errno_of_free(heap)?;
    at("alignments");
    let alignment = SIZES
        .into_iter()
        .map(|size| Some((size, alignment(heap, size)?)))
        .collect::<Option<_>>()?;
    at("usable sizes");
    let usable = [0]
        .into_iter()
        .chain(SIZES)
        .map(|size| Some((size, usable(heap, size)?)))
        .collect::<Option<_>>()?;
    at("aligned blocks");
    let aligned = aligned_up_to(heap)?;
    Some(Behaviour {
        malloc_zero,
        realloc_zero,
        realloc_null,
        calloc_overflow,
        calloc_of_freed,
        refusals,
        errno_of_free,
        aligned,
        alignment,
        usable,
        sized_free: H::CAPABILITIES.sized,
        trim: H::CAPABILITIES.trim,
    })
}

fn some(p: *mut u8) -> Option<*mut u8> {
    (!p.is_null()).then_some(p)
}

/// # Safety
/// All are live blocks of `heap`, or null, and not used afterwards.
unsafe fn free_all<H: Heap>(heap: &H, blocks: impl IntoIterator<Item = *mut u8>) {
    for p in blocks.into_iter().filter_map(some) {
        // SAFETY: the caller's promise.
        unsafe { free(heap, p) };
    }
}

fn malloc_zero<H: Heap>(heap: &H) -> NoBytes {
    let (first, second) = (malloc(heap, 0), malloc(heap, 0));
    if first == second && !first.is_null() {
        // It cannot be freed twice, and who knows whether once.
        return NoBytes::Shared;
    }
    // SAFETY: live, and not used afterwards.
    unsafe { free_all(heap, [first, second]) };
    if first.is_null() || second.is_null() {
        NoBytes::Null
    } else {
        NoBytes::Own
    }
}

fn realloc_zero<H: Heap>(heap: &H, size: usize) -> Option<ToNothing> {
    /// A heap that freed the block hands its memory out again within so many requests of its size.
    const REQUESTS: usize = 200;
    let p = some(malloc(heap, size))?;
    // SAFETY: live, of `size` bytes. Whatever the answer, `p` is used no more: only its address is compared.
    let Some(q) = (unsafe { realloc_as_c(heap, p, size, 0) }) else {
        // SAFETY: it was not called, so the block is live still.
        unsafe { free(heap, p) };
        return Some(ToNothing::NotAsked);
    };
    if !q.is_null() {
        // SAFETY: the block that came of it is live, be it at the old place or not.
        let usable = unsafe { heap.usable(q) };
        // SAFETY: live, and not used afterwards.
        unsafe { free(heap, q) };
        return Some(ToNothing::Block(usable));
    }
    let later: Vec<*mut u8> = (0..REQUESTS).map(|_| malloc(heap, size)).collect();
    // A heap may give the same memory by another address in it.
    let again = later
        .iter()
        .any(|q| !q.is_null() && q.addr().abs_diff(p.addr()) < size);
    // SAFETY: live, and not used afterwards.
    unsafe { free_all(heap, later) };
    Some(if again {
        ToNothing::Frees
    } else {
        ToNothing::Null
    })
}

fn realloc_null<H: Heap>(heap: &H) -> Option<Given> {
    // SAFETY: null may be given, with no bytes.
    let p = unsafe { realloc_as_c(heap, core::ptr::null_mut(), 0, 100) }?;
    // SAFETY: live, and not used afterwards.
    unsafe { free_all(heap, [p]) };
    Some(Given::of(p))
}

fn calloc_overflow<H: Heap>(heap: &H) -> Given {
    // 2^32 * 2^32 is 0 and (2^32 + 1) * 2^32 is 2^32 to whoever does not look. A block that comes of it is leaked.
    let half = 1usize << 32;
    let all = [calloc(heap, half, half), calloc(heap, half + 1, half)];
    all.into_iter()
        .find(|p| !p.is_null())
        .map_or(Given::Null, Given::of)
}

fn calloc_of_freed<H: Heap>(heap: &H) -> Option<OfFreed> {
    const BLOCKS: usize = 32;
    let mut found = OfFreed {
        blocks: 0,
        reused: 0,
        not_zero: 0,
    };
    for size in [16, 100, 1000, 5000, 40_000] {
        let filled = (0..BLOCKS)
            .map(|_| some(malloc(heap, size)))
            .collect::<Option<Vec<_>>>()?;
        let places: HashSet<usize> = filled.iter().map(|p| p.addr()).collect();
        // SAFETY: live, of `size` bytes.
        filled.iter().for_each(|p| unsafe { dirty(*p, size) });
        // SAFETY: live, and not used afterwards.
        unsafe { free_all(heap, filled) };
        let asked = (0..BLOCKS)
            .map(|_| some(calloc(heap, 1, size)))
            .collect::<Option<Vec<_>>>()?;
        for p in &asked {
            found.blocks += 1;
            found.reused += usize::from(places.contains(&p.addr()));
            // SAFETY: live, of `size` bytes.
            found.not_zero += usize::from(unsafe { not_zero(*p, size) }.is_some());
        }
        // SAFETY: live, and not used afterwards.
        unsafe { free_all(heap, asked) };
    }
    Some(found)
}

/// More than the address space holds, and more than a signed number does.
const IMPOSSIBLE: [usize; 2] = [1 << 47, usize::MAX - 4096];

fn refusals<H: Heap>(heap: &H) -> Option<Vec<Refusal>> {
    let mut found = Vec::new();
    for size in IMPOSSIBLE {
        let mut ask = |call, ask: &dyn Fn() -> Option<*mut u8>| {
            set_errno(UNTOUCHED);
            let p = ask();
            let errno = match errno() {
                libc::ENOMEM => Errno::NoMemory,
                UNTOUCHED => Errno::Untouched,
                other => Errno::Other(other),
            };
            let errno = p.is_none().then_some(errno);
            found.push(Refusal { call, size, errno });
        };
        // A block that comes of one of these is leaked: that it was given is the finding.
        ask("malloc", &|| some(malloc(heap, size)));
        ask("calloc", &|| some(calloc(heap, 1, size)));
        ask("aligned", &|| some(aligned(heap, 64, size)));
        let p = some(malloc(heap, 100))?;
        // SAFETY: live, of 100 bytes.
        ask("realloc", &|| some(unsafe { realloc(heap, p, 100, size) }));
        if found.last().is_some_and(|last| last.errno.is_some()) {
            // SAFETY: refused, so the block is live still; not used afterwards.
            unsafe { free(heap, p) };
        }
    }
    Some(found)
}

fn errno_of_free<H: Heap>(heap: &H) -> Option<Option<(usize, i32)>> {
    for size in [1, 100, 5000, 40_000, 300_000, 1 << 20] {
        let p = some(malloc(heap, size))?;
        set_errno(UNTOUCHED);
        // SAFETY: live, and not used afterwards.
        unsafe { free(heap, p) };
        if errno() != UNTOUCHED {
            return Some(Some((size, errno())));
        }
    }
    Some(None)
}

/// The largest power of two that divides all of many addresses of blocks of `size` bytes.
fn alignment<H: Heap>(heap: &H, size: usize) -> Option<usize> {
    let count = if size <= 4096 { 256 } else { 64 };
    let mut live = Vec::new();
    let mut all = 0;
    for n in 0..count {
        // Blocks of other sizes between them: where blocks lie side by side, they do not lie in step.
        live.push(some(malloc(heap, 16 * (1 + n % 7)))?);
        let p = some(malloc(heap, size))?;
        all |= p.addr();
        live.push(p);
    }
    // SAFETY: live, and not used afterwards.
    unsafe { free_all(heap, live) };
    Some(1 << all.trailing_zeros())
}

fn usable<H: Heap>(heap: &H, size: usize) -> Option<Option<(usize, usize)>> {
    let live: Vec<*mut u8> = (0..8).map(|_| malloc(heap, size)).collect();
    if size > 0 && live.iter().any(|p| p.is_null()) {
        return None;
    }
    // SAFETY: live.
    let told = live
        .iter()
        .filter(|p| !p.is_null())
        .map(|p| unsafe { heap.usable(*p) });
    let told: Option<Vec<usize>> = told.collect();
    let range = told.and_then(|told| Some((*told.iter().min()?, *told.iter().max()?)));
    // SAFETY: live, and not used afterwards. Those of no bytes may be one and the same, and then stay.
    unsafe {
        if size > 0 {
            free_all(heap, live);
        }
    }
    Some(range)
}

/// What is told through the pipe of a fork: the exponent of the alignment, the size asked for, and one of these.
type Told = [u64; 3];
const ASKING: u64 = 0;
const SERVED: u64 = 1;
const NULL: u64 = 2;
const MISALIGNED: u64 = 3;

/// Alignments are asked for in a fork: some allocators end the process over one that is too large for them.
fn aligned_up_to<H: Heap>(heap: &H) -> Option<Aligned> {
    let (told, signal) = forked(|tell| ask_alignments(heap, tell))?;
    let mut found = Aligned {
        up_to: 0,
        first_failure: None,
    };
    let failed = |exponent: u64, size: u64, instead| NotAligned {
        align: 1 << exponent,
        size: size as usize,
        instead,
    };
    let crash = signal.map(Instead::Crash);
    for (i, [exponent, size, answer]) in told.iter().copied().enumerate() {
        let failure = match answer {
            NULL => Some(Instead::Null),
            MISALIGNED => Some(Instead::Misaligned),
            ASKING if i + 1 == told.len() => crash,
            _ => None,
        };
        found.first_failure = failure.map(|instead| failed(exponent, size, instead));
        let last = told.get(i + 1).is_none_or(|next| next[0] > exponent);
        if answer == SERVED && last {
            found.up_to = 1 << exponent;
        }
    }
    Some(found)
}

/// Asks for blocks of every alignment, until one is not served.
fn ask_alignments<H: Heap>(heap: &H, tell: &mut dyn FnMut(Told)) {
    for exponent in 0..=LARGEST_ALIGNMENT.trailing_zeros() {
        let align = 1usize << exponent;
        // A block as large as its alignment, too, as long as that costs nothing.
        let sizes = [1, 48, align.min(1 << 20)];
        let mut live = Vec::new();
        for size in sizes.into_iter().cycle().take(12) {
            let mut told = |answer| tell([exponent.into(), size as u64, answer]);
            told(ASKING);
            let p = aligned(heap, align, size);
            if p.is_null() || p.addr() % align != 0 {
                // What is misaligned may be no block at all. The fork ends, and all with it.
                return told(if p.is_null() { NULL } else { MISALIGNED });
            }
            told(SERVED);
            live.push(p);
        }
        // SAFETY: live, and not used afterwards.
        unsafe { free_all(heap, live) };
    }
}

/// Runs `probe` in a fork of this process and gives what it told, and the signal that ended it, if one did. `None` if
/// there can be no fork.
fn forked(probe: impl FnOnce(&mut dyn FnMut(Told))) -> Option<(Vec<Told>, Option<i32>)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return None;
    }
    let [read, write] = ends;
    // SAFETY: the fork is a copy of this thread alone. It calls the heap, writes into the pipe, and ends without
    // returning. (A child of heaplab has no other thread.)
    let fork = unsafe { libc::fork() };
    if fork == 0 {
        probe(&mut |told| {
            // SAFETY: the descriptor is ours, and the bytes are there. Should it fail, less is told.
            unsafe { libc::write(write, told.as_ptr().cast(), size_of::<Told>()) };
        });
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: the descriptors are ours, each is closed once, and nobody uses it afterwards; a `Told` is made of numbers,
    // so whatever is read is one. The fork tells less than a pipe holds, so it can be waited for first or last.
    unsafe {
        libc::close(write);
        let mut all = Vec::new();
        let mut one: Told = [0; 3];
        while fork > 0
            && libc::read(read, one.as_mut_ptr().cast(), size_of::<Told>())
                == size_of::<Told>() as isize
        {
            all.push(one);
        }
        libc::close(read);
        let mut status = 0;
        if fork < 0 || libc::waitpid(fork, &mut status, 0) != fork {
            return None;
        }
        let signal = libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status));
        Some((all, signal))
    }
}
