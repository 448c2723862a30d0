//! One allocator, as its C entry points offer it.

/// What a heap can do beyond malloc and free. The harness reads it before it plans a cell; it is never found out
/// by trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// May be called from several threads at once.
    pub threads: bool,
    /// `free_sized` uses the size (Rust's `Layout`, C23 `free_sized`) and is not just `free`.
    pub sized: bool,
    /// `usable` answers.
    pub usable: bool,
    /// `trim` gives memory back to the operating system.
    pub trim: bool,
    /// Blocks keep what is written into them. False only for the `null` limit, which hands out one mapped ring:
    /// its times mean something, its contents and memory figures do not.
    pub contents: bool,
}

/// Who was measured: told by the allocator itself wherever it can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receipt {
    /// Name as its authors write it, e.g. `jemalloc`, `mimalloc`, `TCMalloc (google)`.
    pub allocator: String,
    /// Version string, read from the library at run time where it offers one.
    pub version: String,
    /// How it was built and where it came from: `(what, value)`.
    pub build: Vec<(String, String)>,
    /// Every knob of the arm with its value as READ BACK from the allocator, set by us or not. A knob that the
    /// allocator cannot be asked for says so in its value.
    pub knobs: Vec<(String, String)>,
    /// What else decides the figures and was read back, e.g. `per_cpu_caches = active`.
    pub facts: Vec<(String, String)>,
}

/// What the allocator says about itself. Meanings differ between allocators ("allocated" is
/// whatever the allocator calls so); `None` where it keeps no such figure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SelfStats {
    /// Bytes in blocks handed out, by the allocator's own books.
    pub allocated: Option<u64>,
    /// Bytes it holds from the operating system, backed or not, by the allocator's own books.
    pub mapped: Option<u64>,
    /// Bytes it holds that are backed, by the allocator's own books.
    pub resident: Option<u64>,
    /// Further figures under their metric names, e.g. `rule_copied_bytes`.
    pub extra: Vec<(&'static str, u64)>,
}

/// Why an arm cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The allocator is not here; the text says what would change that (a command, where there is one).
    Unavailable(String),
    /// A knob's value was not accepted, or read back differently from what was asked.
    Knob(String),
}

/// An allocator under test.
///
/// Sizes and alignments are bytes. Null is failure, never an abort. The methods take `&self` because the state is
/// the process's: a child holds exactly one heap.
///
/// # Safety
/// An implementation promises that every non-null address it returns for `size` bytes is valid for reads and
/// writes of `size` bytes until it is freed or reallocated, and that `free`, `free_sized`, `realloc` and `usable`
/// are sound for every block it returned and that is still live. (That live blocks do not overlap and keep their
/// contents is *tested*, by the behaviour suite and the shadow model, and not relied on for soundness.)
pub unsafe trait Heap {
    /// What this heap can do.
    const CAPABILITIES: Capabilities;

    /// Blocks are given back by [`free_sized`](Heap::free_sized): the arm is defined by entry points that want to be
    /// told the size, such as those of Rust's `GlobalAlloc`.
    const SIZED_FREE: bool = false;

    /// A block of `size` bytes, aligned for any C type of that size. `size` 0 is the allocator's own affair.
    fn malloc(&self, size: usize) -> *mut u8;

    /// A block of `count * size` zero bytes; null if the product overflows.
    fn calloc(&self, count: usize, size: usize) -> *mut u8;

    /// Resizes the block at `p` from `old` requested bytes to `new`, moving it if the allocator wants to. On null
    /// the old block is untouched. C's `realloc` ignores `old`; Rust's and CPython's own allocators use it.
    ///
    /// # Safety
    /// `p` is a live block of this heap of `old` requested bytes; `new` is not 0.
    unsafe fn realloc(&self, p: *mut u8, old: usize, new: usize) -> *mut u8;

    /// Resizes as C's `realloc` does, also where [`realloc`](Heap::realloc) may not be called: from null, and to no
    /// bytes. What comes of the latter is the allocator's own affair, so no workload asks for it; who wants to know what
    /// an allocator does, asks here. `None`: the arm has no entry point that may be called so, and nothing was called.
    ///
    /// # Safety
    /// `p` is a live block of this heap of `old` requested bytes, or null with `old` 0. If `new` is 0, nobody uses `p`
    /// afterwards, whatever the answer.
    unsafe fn realloc_as_c(&self, p: *mut u8, old: usize, new: usize) -> Option<*mut u8> {
        let _ = (p, old, new);
        None
    }

    /// Gives the block at `p` back.
    ///
    /// # Safety
    /// `p` is a live block of this heap and is not used afterwards.
    unsafe fn free(&self, p: *mut u8);

    /// Gives a block back, telling its requested size and alignment. The default forgets them.
    ///
    /// # Safety
    /// As [`free`](Heap::free); `size` is what was last asked for the block, and `align` what
    /// [`aligned`](Heap::aligned) was asked with, or 1 for a block of malloc, calloc or realloc.
    #[inline]
    unsafe fn free_sized(&self, p: *mut u8, size: usize, align: usize) {
        let _ = (size, align);
        // SAFETY: the caller's promise is the one `free` asks for.
        unsafe { self.free(p) }
    }

    /// A block of `size` bytes at a multiple of `align`, a power of two.
    fn aligned(&self, align: usize, size: usize) -> *mut u8;

    /// How many bytes the block at `p` can hold, if the allocator tells.
    ///
    /// # Safety
    /// `p` is a live block of this heap.
    unsafe fn usable(&self, p: *mut u8) -> Option<usize>;

    /// Asks the allocator to give free memory back to the operating system; false if it has no such call.
    fn trim(&self) -> bool;

    /// The allocator's own books.
    fn stats(&self) -> SelfStats;

    /// Who this is.
    fn receipt(&self) -> Receipt;

    /// Called by a thread before its first use of the heap.
    fn thread_enter(&self) {}

    /// Called by a thread after its last use of the heap.
    fn thread_exit(&self) {}
}

/// A heap that can be opened by the name of an arm: the one constructor that a child calls.
pub trait Arm: Heap + Sized {
    /// Opens the arm `id` (a crate can offer several) with `knobs` as `(name, value)`, values already checked
    /// against their ranges by the harness.
    ///
    /// # Errors
    /// [`Refused`] when the allocator is missing or a knob does not read back as set.
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused>;
}
