//! The rule, over the C library's malloc.

use crate::table::Table;
use contract::{Arm, Capabilities, Heap, Knobs, Receipt, Refused, SelfStats, opaque};
use core::cell::{Cell, RefCell};
use core::ffi::CStr;
use core::ptr;

/// Blocks of more bytes than this fall under the rule: the largest small size of google-perftools.
const SMALL_MAX: usize = 32 << 10;

/// 2007's page: what large capacities are rounded up to.
const DEFAULT_GRANULE: usize = 4096;

/// From here on the base maps a block of its own.
const BASE_MMAP_THRESHOLD: i32 = 1 << 30;

/// mallopt's way of saying the largest threshold there is: the top of the base's heap is never given back.
const BASE_TRIM_THRESHOLD: i32 = -1;

/// The realloc policy model of google-perftools up to 0.97.
///
/// Invariant CAPACITY: the table holds exactly the live blocks of more than 32 KiB, each with its capacity, which the
/// base really gave it.
///
/// Single-threaded, as `Capabilities` says and as not being `Sync` enforces.
#[derive(Debug)]
pub struct Tcmalloc2007 {
    granule: usize,
    table: RefCell<Table>,
    tally: Cell<Tally>,
}

/// What the rule did so far. Bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    /// Moves of blocks that were under the rule before.
    moves: u64,
    /// What those copied: the smaller of old capacity and new size.
    copied: u64,
    /// Blocks that came under the rule by growing past 32 KiB.
    entries: u64,
    /// What those copied: their old size.
    entry_bytes: u64,
    /// Sum of the capacities in the table.
    capacity: u64,
}

impl Arm for Tcmalloc2007 {
    fn open(id: &str, knobs: &[(String, String)]) -> Result<Self, Refused> {
        let mut knobs = Knobs::new(knobs);
        let asked = knobs.bytes("granule")?;
        knobs.finish(id)?;
        let granule = match asked {
            None => DEFAULT_GRANULE,
            Some(bytes) => usize::try_from(bytes)
                .ok()
                .filter(|bytes| bytes.is_power_of_two() && (4096..=1 << 20).contains(bytes))
                .ok_or_else(|| {
                    Refused::Knob(format!(
                        "granule={bytes}: expected a power of two from 4096 to 1MiB"
                    ))
                })?,
        };
        for (name, parameter, value) in [
            (
                "M_MMAP_THRESHOLD",
                libc::M_MMAP_THRESHOLD,
                BASE_MMAP_THRESHOLD,
            ),
            (
                "M_TRIM_THRESHOLD",
                libc::M_TRIM_THRESHOLD,
                BASE_TRIM_THRESHOLD,
            ),
        ] {
            // SAFETY: mallopt has no memory preconditions; it takes two integers.
            if unsafe { libc::mallopt(parameter, value) } != 1 {
                return Err(Refused::Unavailable(format!(
                    "this C library does not accept {name} {value} for the base of the model; run it on glibc 2.35 or later"
                )));
            }
        }
        let table = Table::new().map_err(|_| {
            Refused::Unavailable("no memory for the table of capacities; free some".into())
        })?;
        Ok(Tcmalloc2007 {
            granule,
            table: RefCell::new(table),
            tally: Cell::default(),
        })
    }
}

/// Answers as the C library does when it cannot serve a size.
fn refuse() -> *mut u8 {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    ptr::null_mut()
}

impl Tcmalloc2007 {
    /// The capacity of a block of `size` bytes under the rule, or `None` if there is no such number.
    #[inline]
    fn capacity(&self, size: usize) -> Option<usize> {
        Some(size.checked_add(self.granule - 1)? & !(self.granule - 1))
    }

    fn count(&self, add: impl FnOnce(&mut Tally)) {
        let mut tally = self.tally.get();
        add(&mut tally);
        self.tally.set(tally);
    }

    /// Has `base` allocate the capacity for `size` bytes and enters the block.
    fn large(&self, size: usize, base: impl FnOnce(usize) -> *mut libc::c_void) -> *mut u8 {
        let Some(capacity) = self.capacity(size) else {
            return refuse();
        };
        let p = opaque(base(capacity));
        if p.is_null() {
            return p;
        }
        if self.table.borrow_mut().insert(p.addr(), capacity).is_err() {
            // SAFETY: the base has just given it, and nobody else has it.
            unsafe { libc::free(p.cast()) };
            return refuse();
        }
        self.count(|tally| tally.capacity += capacity as u64);
        p
    }

    /// Takes the block at `p` out of the table, if it is in.
    fn forget(&self, p: *mut u8) {
        if let Some(capacity) = self.table.borrow_mut().remove(p.addr()) {
            self.count(|tally| tally.capacity -= capacity as u64);
        }
    }
}

/// The model's own realloc.
impl Tcmalloc2007 {
    /// A block under the rule, of `capacity` bytes.
    ///
    /// # Safety
    /// `p` is a live block of this heap and in the table with `capacity`.
    unsafe fn realloc_large(&self, p: *mut u8, capacity: usize, new: usize) -> *mut u8 {
        if new > SMALL_MAX && self.capacity(new) == Some(capacity) {
            return p;
        }
        let q = self.malloc(new);
        if q.is_null() {
            return q;
        }
        let copied = capacity.min(new);
        // SAFETY: CAPACITY: `p` holds `capacity` bytes; `q` holds `new`; both are live, so they do not overlap.
        unsafe { ptr::copy_nonoverlapping(p, q, copied) };
        self.count(|tally| {
            tally.moves += 1;
            tally.copied += copied as u64;
        });
        // SAFETY: `p` is live, and its bytes are in `q` now.
        unsafe { self.free(p) };
        q
    }

    /// A block of `old` bytes that grows past 32 KiB and comes under the rule.
    ///
    /// # Safety
    /// `p` is a live block of this heap of `old` bytes, and not in the table.
    unsafe fn enter(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        let q = self.malloc(new);
        if q.is_null() {
            return q;
        }
        // SAFETY: `p` holds `old` bytes, fewer than `new`, which `q` holds; both are live, so they do not overlap.
        unsafe { ptr::copy_nonoverlapping(p, q, old) };
        self.count(|tally| {
            tally.entries += 1;
            tally.entry_bytes += old as u64;
        });
        // SAFETY: `p` came from the base, is live, and its bytes are in `q` now.
        unsafe { libc::free(p.cast()) };
        q
    }
}

// SAFETY: every block comes from the C library with at least the size that was asked (CAPACITY), and goes back to it.
unsafe impl Heap for Tcmalloc2007 {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: true,
        trim: true,
        contents: true,
    };

    #[inline]
    fn malloc(&self, size: usize) -> *mut u8 {
        // SAFETY: malloc has no preconditions.
        let base = |size| unsafe { libc::malloc(size) };
        if size <= SMALL_MAX {
            opaque(base(size))
        } else {
            self.large(size, base)
        }
    }

    #[inline]
    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        let Some(bytes) = count.checked_mul(size) else {
            return refuse();
        };
        // SAFETY: calloc has no preconditions.
        let base = |size| unsafe { libc::calloc(1, size) };
        if bytes <= SMALL_MAX {
            opaque(base(bytes))
        } else {
            self.large(bytes, base)
        }
    }

    #[inline]
    unsafe fn realloc(&self, p: *mut u8, old: usize, new: usize) -> *mut u8 {
        let capacity = self.table.borrow().get(p.addr());
        match capacity {
            // SAFETY: `p` is live by the caller's promise, and in the table with `capacity`.
            Some(capacity) => unsafe { self.realloc_large(p, capacity, new) },
            // SAFETY: `p` is live by the caller's promise; not in the table, it came from the base and has at most
            // 32 KiB.
            None if new <= SMALL_MAX => opaque(unsafe { libc::realloc(p.cast(), new) }),
            // SAFETY: `p` is live, of `old` bytes, by the caller's promise, and not in the table.
            None => unsafe { self.enter(p, old.min(SMALL_MAX), new) },
        }
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, old: usize, new: usize) -> Option<*mut u8> {
        // SAFETY: the caller's promise. The model's own realloc takes null, which is in no table and of no bytes, and no bytes.
        Some(unsafe { self.realloc(p, old, new) })
    }

    #[inline]
    unsafe fn free(&self, p: *mut u8) {
        self.forget(p);
        // SAFETY: `p` is live by the caller's promise, and every block comes from the base.
        unsafe { libc::free(p.cast()) }
    }

    #[inline]
    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: no preconditions; glibc takes any size with any power of two.
        let base = |size| unsafe { libc::aligned_alloc(align, size) };
        if size <= SMALL_MAX {
            opaque(base(size))
        } else {
            self.large(size, base)
        }
    }

    #[inline]
    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        let capacity = self.table.borrow().get(p.addr());
        // SAFETY: `p` is live by the caller's promise; not in the table, it came from the base.
        Some(capacity.unwrap_or_else(|| unsafe { libc::malloc_usable_size(p.cast()) }))
    }

    fn trim(&self) -> bool {
        // SAFETY: no preconditions.
        unsafe { libc::malloc_trim(0) };
        true
    }

    /// `allocated` and `mapped` are the base's; the model's own figures are the extra ones:
    /// `rule_moves` and `rule_copied_bytes` over blocks that were under the rule before the call, `rule_entries` and
    /// `rule_entry_bytes` over blocks that came under it, `rule_capacity_bytes` under it now.
    fn stats(&self) -> SelfStats {
        // SAFETY: no preconditions.
        let info = unsafe { libc::mallinfo2() };
        let tally = self.tally.get();
        SelfStats {
            allocated: Some((info.uordblks + info.hblkhd) as u64),
            mapped: Some((info.arena + info.hblkhd) as u64),
            resident: None,
            extra: vec![
                ("rule_moves", tally.moves),
                ("rule_copied_bytes", tally.copied),
                ("rule_entries", tally.entries),
                ("rule_entry_bytes", tally.entry_bytes),
                ("rule_capacity_bytes", tally.capacity),
            ],
        }
    }

    fn receipt(&self) -> Receipt {
        // SAFETY: returns a pointer to a static string that ends in 0.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy();
        Receipt {
            allocator: "realloc policy model of google-perftools <= 0.97".into(),
            version: format!("heaplab {} over glibc {version}", env!("CARGO_PKG_VERSION")),
            build: vec![(
                "source".into(),
                "this project's own; no code of google-perftools".into(),
            )],
            knobs: vec![("granule".into(), self.granule.to_string())],
            facts: vec![
                ("base".into(), "glibc malloc".into()),
                (
                    "base M_MMAP_THRESHOLD".into(),
                    format!("{BASE_MMAP_THRESHOLD} (accepted by mallopt)"),
                ),
                (
                    "base M_TRIM_THRESHOLD".into(),
                    format!(
                        "{BASE_TRIM_THRESHOLD}, the maximum: never trims (accepted by mallopt)"
                    ),
                ),
                ("rule applies above".into(), SMALL_MAX.to_string()),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(knobs: &[(&str, &str)]) -> Tcmalloc2007 {
        let knobs: Vec<_> = knobs
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        Tcmalloc2007::open("tcmalloc-2007", &knobs).expect("opens")
    }

    /// One block grown by realloc in steps of 70 until it has at least `to` bytes; returns moves past 32 KiB.
    fn grow(heap: &Tcmalloc2007, to: usize) -> u64 {
        let (mut p, mut size, mut moves) = (heap.malloc(70), 70, 0);
        while size < to {
            // SAFETY: `p` is live and of `size` bytes.
            let q = unsafe { heap.realloc(p, size, size + 70) };
            assert!(!q.is_null());
            size += 70;
            moves += u64::from(q != p && size > SMALL_MAX);
            p = q;
        }
        // SAFETY: `p` is live.
        unsafe { heap.free(p) };
        moves
    }

    #[test]
    fn growth_copies_exactly_what_the_rule_says() {
        // With 4096: capacities 9, 10, ... 1025 pages, the first by entry; each move copies the old capacity.
        let heap = open(&[]);
        assert_eq!(grow(&heap, 4 << 20), 1017);
        let tally = heap.tally.get();
        assert_eq!((tally.moves, tally.entries), (1016, 1));
        assert_eq!(tally.copied, 2_149_433_344);
        assert_eq!(
            tally.copied,
            (9..=1024).map(|pages| pages * 4096).sum::<u64>()
        );
        assert_eq!(
            tally.entry_bytes, 32_760,
            "the last multiple of 70 below 32 KiB"
        );
        assert_eq!(tally.capacity, 0);
    }

    #[test]
    fn a_granule_of_8192_halves_it() {
        let heap = open(&[("granule", "8KiB")]);
        grow(&heap, 4 << 20);
        assert_eq!(
            heap.tally.get().copied,
            (5..=512).map(|granules| granules * 8192).sum::<u64>()
        );
        assert!(
            heap.receipt()
                .knobs
                .contains(&("granule".into(), "8192".into()))
        );
    }

    #[test]
    fn a_block_stays_exactly_while_its_capacity_does() {
        let heap = open(&[]);
        let (a, b) = (40_960, 45_056);
        let p = heap.malloc(a);
        // SAFETY: each call gets the live block and its size; the last frees it.
        unsafe {
            assert_eq!(heap.realloc(p, a, a - 4095), p, "same capacity, smaller");
            assert_eq!(heap.realloc(p, a - 4095, a), p, "same capacity, larger");
            assert_eq!(heap.usable(p), Some(a));
            let q = heap.realloc(p, a, a + 1);
            assert_eq!(heap.usable(q), Some(b));
            let r = heap.realloc(q, a + 1, a);
            assert_eq!(heap.usable(r), Some(a), "shrinking by one granule moves");
            let tally = heap.tally.get();
            assert_eq!((tally.moves, tally.copied), (2, 2 * a as u64));
            let s = heap.realloc(r, a, 100);
            let tally = heap.tally.get();
            assert_eq!(
                (tally.moves, tally.copied),
                (3, 2 * a as u64 + 100),
                "leaving the rule moves too"
            );
            assert_eq!((tally.capacity, tally.entries), (0, 0));
            heap.free(s);
        }
    }

    #[test]
    fn calloc_and_aligned_blocks_are_under_the_rule_too() {
        let heap = open(&[]);
        let p = heap.calloc(1000, 41);
        let q = heap.aligned(8192, 33_000);
        // SAFETY: both are live, of these sizes.
        unsafe {
            assert_eq!(heap.usable(p), Some(45_056));
            assert_eq!(heap.usable(q), Some(36_864));
            assert_eq!(heap.realloc(p, 41_000, 45_056), p);
            assert_eq!(heap.realloc(q, 33_000, 36_864), q);
            assert_eq!(heap.tally.get().capacity, 45_056 + 36_864);
            heap.free(p);
            heap.free(q);
        }
        assert_eq!(heap.tally.get().capacity, 0);
    }

    #[test]
    fn a_granule_that_is_none_is_refused() {
        for wrong in ["0", "4095", "1024", "12288", "2MiB", "x"] {
            let knobs = [("granule".to_string(), wrong.to_string())];
            assert!(
                matches!(
                    Tcmalloc2007::open("tcmalloc-2007", &knobs),
                    Err(Refused::Knob(_))
                ),
                "{wrong}"
            );
        }
    }
}
