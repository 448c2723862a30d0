//! The test child whose memory is known in advance to the byte: the proof of what the memory protocol reads.
//!
//! Its heap is made for one block. The first malloc after the warm-up maps and touches [`FULL`] OS pages, the free
//! gives back all but [`EMPTY`], and trimming all but [`TRIMMED`]. `schedule-spike` also holds 100 MiB more for 20 ms.

use contract::{Arm, Capabilities, Heap, Receipt, Refused, SelfStats};
use heaplab::probe::mapping::Mapping;
use std::cell::{Cell, RefCell};
use std::ptr;
use std::time::Duration;

const OS_PAGE: usize = 4096;
/// OS pages of the heap when the block is there, when it is freed, and after trimming.
const FULL: usize = 5000;
const EMPTY: usize = 1200;
const TRIMMED: usize = 300;
/// Bytes and duration of the spike.
const SPIKE: usize = 100 << 20;
const SPIKE_TIME: Duration = Duration::from_millis(20);

struct Schedule {
    spike: bool,
    /// The warm-up has been asked for.
    warm: Cell<bool>,
    /// The block lies in the first; the last goes with the free, the middle one with the trim.
    parts: RefCell<Vec<Mapping>>,
}

impl Schedule {
    /// Maps what the block comes with; null if the kernel refuses.
    fn fill(&self) -> *mut u8 {
        if self.spike {
            let spike = Mapping::new(SPIKE);
            std::thread::sleep(SPIKE_TIME);
            if spike.is_err() {
                return ptr::null_mut();
            }
        }
        let mut parts = self.parts.borrow_mut();
        for pages in [TRIMMED, EMPTY - TRIMMED, FULL - EMPTY] {
            match Mapping::new(pages * OS_PAGE) {
                Ok(part) => parts.push(part),
                Err(_) => return ptr::null_mut(),
            }
        }
        parts[0].as_mut_slice().as_mut_ptr()
    }
}

// SAFETY: the only block after the warm-up, of at most TRIMMED OS pages, is the first mapping, which lives on; the
// warm-up's lies in a mapping that nothing else uses. Every other request is refused.
unsafe impl Heap for Schedule {
    const CAPABILITIES: Capabilities = Capabilities {
        threads: false,
        sized: false,
        usable: false,
        trim: true,
        contents: true,
    };

    fn malloc(&self, size: usize) -> *mut u8 {
        if size > TRIMMED * OS_PAGE || !self.parts.borrow().is_empty() {
            return ptr::null_mut();
        }
        if self.warm.replace(true) {
            return self.fill();
        }
        let warm_up = Mapping::new(OS_PAGE);
        warm_up.map_or(ptr::null_mut(), |mapping| {
            Box::leak(Box::new(mapping)).as_mut_slice().as_mut_ptr()
        })
    }

    fn calloc(&self, _count: usize, _size: usize) -> *mut u8 {
        ptr::null_mut()
    }

    unsafe fn realloc(&self, _p: *mut u8, _old: usize, _new: usize) -> *mut u8 {
        ptr::null_mut()
    }

    unsafe fn free(&self, _p: *mut u8) {
        self.parts.borrow_mut().pop();
    }

    fn aligned(&self, _align: usize, _size: usize) -> *mut u8 {
        ptr::null_mut()
    }

    unsafe fn usable(&self, _p: *mut u8) -> Option<usize> {
        None
    }

    fn trim(&self) -> bool {
        self.parts.borrow_mut().pop();
        true
    }

    fn stats(&self) -> SelfStats {
        SelfStats::default()
    }

    fn receipt(&self) -> Receipt {
        Receipt {
            allocator: "schedule (a test child)".to_owned(),
            version: "0".to_owned(),
            ..Receipt::default()
        }
    }
}

impl Arm for Schedule {
    fn open(id: &str, _knobs: &[(String, String)]) -> Result<Self, Refused> {
        Ok(Schedule {
            spike: id == "schedule-spike",
            warm: Cell::new(false),
            parts: RefCell::new(Vec::new()),
        })
    }
}

heaplab::child!("schedule" => Schedule, "schedule-spike" => Schedule);
