//! One heap at a time.

use contract::Refused;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether a heap whose state is the process's is open.
#[derive(Debug)]
pub(crate) struct Claim(AtomicBool);

/// While it lives the heap is open, on the thread where it was opened: it is neither `Send` nor `Sync`.
#[derive(Debug)]
pub(crate) struct Claimed {
    claim: &'static Claim,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Claim {
    pub const fn new() -> Self {
        Claim(AtomicBool::new(false))
    }

    /// Opens it, or says that somebody has it open.
    pub fn take(&'static self, name: &str) -> Result<Claimed, Refused> {
        // Whoever takes it sees what the one before left.
        if self.0.swap(true, Ordering::Acquire) {
            return Err(Refused::Unavailable(format!(
                "{name} is already open in this process; close it first"
            )));
        }
        Ok(Claimed {
            claim: self,
            _of_this_thread: PhantomData,
        })
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.claim.0.store(false, Ordering::Release);
    }
}
