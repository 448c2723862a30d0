//! What is observed of heaps whose answers are known.

use contract::suite::behaviour::{
    Aligned, Behaviour, Errno, Given, Instead, NoBytes, NotAligned, ToNothing, observe,
};
use contract::{Capabilities, Heap, Receipt, SelfStats, opaque};

/// How a heap over the C library's behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As the C library does.
    Plain,
    /// No block for no bytes; realloc to no bytes gives a block; errno is left alone; a free sets it; calloc does not
    /// clear; 4 KiB is the largest alignment.
    Otherwise,
    /// One request for an alignment of 256 is not kept, and there is no realloc as C has it.
    Misaligns,
    /// An alignment of more than 4 KiB ends the process.
    Aborts,
}

struct Over(Way);

fn with_errno(errno: i32) {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = errno };
}

impl Over {
    /// A call that is not to leave its own errno behind.
    fn quietly(&self, call: impl FnOnce() -> *mut u8) -> *mut u8 {
        // SAFETY: the thread's own errno.
        let before = unsafe { *libc::__errno_location() };
        let p = call();
        if self.0 == Way::Otherwise {
            with_errno(before);
        }
        p
    }
}

// SAFETY: blocks are the C library's own.
unsafe impl Heap for Over {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: true,
        sized: false,
        usable: true,
        trim: false,
        contents: true,
    };

    fn malloc(&self, size: usize) -> *mut u8 {
        if size == 0 && self.0 == Way::Otherwise {
            return std::ptr::null_mut();
        }
        // SAFETY: no preconditions.
        self.quietly(|| opaque(unsafe { libc::malloc(size) }))
    }

    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        if self.0 == Way::Otherwise {
            return count
                .checked_mul(size)
                .map_or(std::ptr::null_mut(), |bytes| self.malloc(bytes));
        }
        // SAFETY: no preconditions.
        opaque(unsafe { libc::calloc(count, size) })
    }

    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.quietly(|| opaque(unsafe { libc::realloc(p.cast(), new) }))
    }

    unsafe fn realloc_as_c(&self, p: *mut u8, old: usize, new: usize) -> Option<*mut u8> {
        let new = if self.0 == Way::Otherwise {
            new.max(1)
        } else {
            new
        };
        // SAFETY: the caller's promise; the C library takes null and no bytes.
        (self.0 != Way::Misaligns).then(|| unsafe { self.realloc(p, old, new) })
    }

    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { libc::free(p.cast()) };
        if self.0 == Way::Otherwise {
            with_errno(7);
        }
    }

    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        match self.0 {
            Way::Otherwise if align > 4096 => return std::ptr::null_mut(),
            Way::Aborts if align > 4096 => std::process::abort(),
            _ => {}
        }
        // SAFETY: no preconditions; any power of two.
        let p = self.quietly(|| opaque(unsafe { libc::aligned_alloc(align, size) }));
        if self.0 == Way::Misaligns && align == 256 && size == 48 && !p.is_null() {
            return p.wrapping_add(8);
        }
        p
    }

    unsafe fn usable(&self, p: *mut u8) -> Option<usize> {
        // SAFETY: the caller's promise.
        (self.0 != Way::Otherwise).then(|| unsafe { libc::malloc_usable_size(p.cast()) })
    }

    fn trim(&self) -> bool {
        false
    }

    fn stats(&self) -> SelfStats {
        SelfStats::default()
    }

    fn receipt(&self) -> Receipt {
        Receipt::default()
    }
}

fn seen(way: Way) -> Behaviour {
    let mut questions = Vec::new();
    let seen = observe(&Over(way), |question| questions.push(question));
    assert!(questions.contains(&"alignments"), "{questions:?}");
    seen.expect("the C library serves small sizes")
}

/// glibc's answers, as its manual has them: blocks at multiples of 16, chunks of 16 bytes with 8 for the size.
#[test]
fn the_c_library() {
    let seen = seen(Way::Plain);
    assert_eq!(seen.malloc_zero, NoBytes::Own);
    assert_eq!(
        seen.realloc_zero,
        [(100, ToNothing::Frees), (100_000, ToNothing::Frees)]
    );
    assert_eq!(seen.realloc_null, Some(Given::Block));
    assert_eq!(seen.calloc_overflow, Given::Null);
    let of_freed = seen.calloc_of_freed.expect("it keeps contents");
    assert!(
        of_freed.reused > 0 && of_freed.not_zero == 0,
        "{of_freed:?}"
    );
    assert_eq!(seen.refusals.len(), 8);
    for refusal in &seen.refusals {
        assert_eq!(refusal.errno, Some(Errno::NoMemory), "{refusal:?}");
    }
    assert_eq!(seen.errno_of_free, None);
    assert_eq!(seen.aligned.up_to, 64 << 20);
    assert_eq!(seen.aligned.first_failure, None);
    assert!(seen.alignment.iter().all(|(_, alignment)| *alignment == 16));
    // Other tests use the same heap, and what they leave may be a chunk larger.
    let least = |size| {
        let told = seen.usable.iter().find(|(of, _)| *of == size);
        told.and_then(|(_, told)| *told).map(|(least, _)| least)
    };
    assert_eq!([1, 24, 32].map(least), [Some(24), Some(24), Some(40)]);
}

#[test]
fn another_way() {
    let seen = seen(Way::Otherwise);
    assert_eq!(seen.malloc_zero, NoBytes::Null);
    assert_eq!(seen.realloc_zero[0].1, ToNothing::Block(None));
    let of_freed = seen.calloc_of_freed.expect("it keeps contents");
    assert!(of_freed.not_zero > 0, "{of_freed:?}");
    assert!(of_freed.to_string().starts_with("NOT ZERO"), "{of_freed}");
    for refusal in &seen.refusals {
        assert_eq!(refusal.errno, Some(Errno::Untouched), "{refusal:?}");
    }
    assert_eq!(seen.errno_of_free, Some((1, 7)));
    assert_eq!(seen.aligned.up_to, 4096);
    let failure = seen.aligned.first_failure.expect("beyond 4 KiB");
    assert_eq!((failure.align, failure.instead), (8192, Instead::Null));
    assert!(seen.usable.iter().all(|(_, told)| told.is_none()));
}

#[test]
fn what_is_misaligned_or_ends_the_process_is_told_by_its_request() {
    let misaligned = seen(Way::Misaligns);
    let failure = NotAligned {
        align: 256,
        size: 48,
        instead: Instead::Misaligned,
    };
    let aligned = Aligned {
        up_to: 128,
        first_failure: Some(failure),
    };
    assert_eq!(misaligned.aligned, aligned);
    assert_eq!(misaligned.realloc_null, None);
    assert_eq!(misaligned.realloc_zero[0].1, ToNothing::NotAsked);

    let aborts = seen(Way::Aborts).aligned;
    assert_eq!(aborts.up_to, 4096);
    let failure = aborts.first_failure.expect("it aborts");
    assert_eq!(failure.to_string(), "aligned(8192, 1) aborts");
}
