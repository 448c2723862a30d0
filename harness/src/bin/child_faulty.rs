//! The test child: every way in which a child can go wrong, one arm each, so that every outcome is proved.

use contract::{Arm, Capabilities, Heap, Receipt, Refused, SelfStats};
use std::cell::Cell;
use std::time::Duration;

/// A heap over the C library's that goes wrong in the way its arm names.
struct Faulty {
    fault: Fault,
    calls: Cell<u32>,
}

#[derive(PartialEq)]
enum Fault {
    Null,
    Flip,
    Slow,
}

/// Calls of malloc that succeed before `faulty-null` starts to fail: the warm-up.
const BEFORE_NULL: u32 = 1;
/// A whole number of calls of realloc after which `faulty-flip` flips a byte.
const FLIP_AT: u32 = 100;

// SAFETY: blocks are the C library's own, handed through unchanged.
unsafe impl Heap for Faulty {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: false,
        trim: false,
        contents: true,
    };

    fn malloc(&self, size: usize) -> *mut u8 {
        self.calls.set(self.calls.get() + 1);
        if self.fault == Fault::Null && self.calls.get() > BEFORE_NULL {
            return std::ptr::null_mut();
        }
        // SAFETY: malloc takes any size.
        unsafe { libc::malloc(size).cast() }
    }

    fn calloc(&self, count: usize, size: usize) -> *mut u8 {
        // SAFETY: calloc takes any product.
        unsafe { libc::calloc(count, size).cast() }
    }

    unsafe fn realloc(&self, p: *mut u8, _old: usize, new: usize) -> *mut u8 {
        self.calls.set(self.calls.get() + 1);
        if self.fault == Fault::Slow {
            std::thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: `p` is a live block of the C library, by the caller's promise.
        let to: *mut u8 = unsafe { libc::realloc(p.cast(), new).cast() };
        if self.fault == Fault::Flip && self.calls.get() == FLIP_AT && !to.is_null() {
            // SAFETY: the block holds `new` bytes, of which the first was written by its owner.
            unsafe { to.write(to.read() ^ 1) };
        }
        to
    }

    unsafe fn free(&self, p: *mut u8) {
        // SAFETY: `p` is a live block of the C library, by the caller's promise.
        unsafe { libc::free(p.cast()) }
    }

    fn aligned(&self, align: usize, size: usize) -> *mut u8 {
        // SAFETY: a bad alignment gives null.
        unsafe { libc::memalign(align, size).cast() }
    }

    unsafe fn usable(&self, _p: *mut u8) -> Option<usize> {
        None
    }

    fn trim(&self) -> bool {
        false
    }

    fn stats(&self) -> SelfStats {
        SelfStats::default()
    }

    fn receipt(&self) -> Receipt {
        Receipt {
            allocator: "faulty (a test child)".to_owned(),
            version: "0".to_owned(),
            ..Receipt::default()
        }
    }
}

impl Arm for Faulty {
    fn open(id: &str, _knobs: &[(String, String)]) -> Result<Self, Refused> {
        let heap = |fault| {
            Ok(Faulty {
                fault,
                calls: Cell::new(0),
            })
        };
        match id {
            "faulty-null" => heap(Fault::Null),
            "faulty-flip" => heap(Fault::Flip),
            "faulty-slow" => heap(Fault::Slow),
            "faulty-absent" => Err(Refused::Unavailable(
                "its library is not here: run scripts/setup".to_owned(),
            )),
            "faulty-hang" => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            "faulty-garbage" => {
                println!("Segmentation fault? No, just garbage.");
                std::process::exit(0)
            }
            "faulty-stale" => {
                println!("{}", stale());
                std::process::exit(0)
            }
            "faulty-killed" => end_by(libc::SIGKILL),
            _ => end_by(libc::SIGSEGV),
        }
    }
}

/// What a child built from other sources answers.
fn stale() -> String {
    serde_json::json!({
        "schema": heaplab::trial::SCHEMA,
        "receipt": { "source_hash": "0", "allocator": "", "version": "", "build": {}, "knobs": {}, "facts": {}, "debug_build": false },
        "outcome": { "kind": "unavailable", "why": "stale child: rebuild (cargo build --release)" },
        "metrics": {}, "files": [], "skipped": {},
        "checksum_ops": null, "checksum_contents": null, "input_hash": null, "moves": null
    })
    .to_string()
}

fn end_by(signal: i32) -> ! {
    // SAFETY: raising a signal in ourselves touches no memory of ours.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    std::process::abort()
}

heaplab::child!(
    "faulty-crash" => Faulty,
    "faulty-hang" => Faulty,
    "faulty-garbage" => Faulty,
    "faulty-killed" => Faulty,
    "faulty-null" => Faulty,
    "faulty-flip" => Faulty,
    "faulty-stale" => Faulty,
    "faulty-absent" => Faulty,
    "faulty-slow" => Faulty,
);
