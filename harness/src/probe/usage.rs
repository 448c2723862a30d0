//! What the kernel has counted for this process: getrusage. Obeys NO-MALLOC.
//!
//! `ru_maxrss` is left out on purpose: a child inherits its parent's, so it is no measure of the child.

use core::mem::MaybeUninit;

/// A snapshot of the kernel's counters, or the difference of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Nanoseconds in user mode (the kernel tells microseconds).
    pub user_ns: u64,
    /// Nanoseconds in the kernel (the kernel tells microseconds).
    pub system_ns: u64,
    /// Page faults that needed no reading from a disk.
    pub minflt: u64,
    /// Page faults that did.
    pub majflt: u64,
    /// Context switches that the process asked for, by waiting.
    pub nvcsw: u64,
    /// Context switches that the scheduler forced on it.
    pub nivcsw: u64,
}

impl Usage {
    /// The counters of all threads of this process, since it started.
    pub fn now() -> Usage {
        read(libc::RUSAGE_SELF)
    }

    /// The counters of the calling thread alone.
    pub fn of_this_thread() -> Usage {
        read(libc::RUSAGE_THREAD)
    }

    /// The sum of two differences.
    #[must_use]
    pub fn plus(&self, other: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            minflt: self.minflt + other.minflt,
            majflt: self.majflt + other.majflt,
            nvcsw: self.nvcsw + other.nvcsw,
            nivcsw: self.nivcsw + other.nivcsw,
        }
    }

    /// What has been added since `earlier`.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            minflt: self.minflt.saturating_sub(earlier.minflt),
            majflt: self.majflt.saturating_sub(earlier.majflt),
            nvcsw: self.nvcsw.saturating_sub(earlier.nvcsw),
            nivcsw: self.nivcsw.saturating_sub(earlier.nivcsw),
        }
    }
}

fn read(who: libc::c_int) -> Usage {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `raw` is a writable `rusage`; the C function is a bare system call. It fails only for a bad `who`,
    // of which there is none, and would leave the zeros.
    unsafe { libc::getrusage(who, raw.as_mut_ptr()) };
    // SAFETY: all zeros is a valid `rusage` and the kernel writes a valid one.
    let raw = unsafe { raw.assume_init() };
    Usage {
        user_ns: nanoseconds(raw.ru_utime),
        system_ns: nanoseconds(raw.ru_stime),
        minflt: raw.ru_minflt as u64,
        majflt: raw.ru_majflt as u64,
        nvcsw: raw.ru_nvcsw as u64,
        nivcsw: raw.ru_nivcsw as u64,
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::mapping::Mapping;

    #[test]
    fn fresh_pages_are_counted_as_minor_faults() {
        const PAGES: usize = 1000;
        // THP would take 512 OS pages by one fault.
        crate::probe::limits::disable_thp().unwrap();
        let mut mapping = Mapping::untouched(PAGES * rustix::param::page_size()).unwrap();
        let before = Usage::of_this_thread();
        let whole_before = Usage::now();
        mapping.as_mut_slice().fill(1);
        let thread = Usage::of_this_thread().since(&before).minflt;
        let process = Usage::now().since(&whole_before).minflt;
        assert!(
            (PAGES as u64..PAGES as u64 + 50).contains(&thread),
            "{thread} faults for {PAGES} OS pages"
        );
        assert!(
            process >= thread,
            "the process counts {process} faults, one of its threads {thread}"
        );
    }

    #[test]
    fn a_difference_never_goes_below_zero() {
        let small = Usage::default();
        let large = Usage {
            user_ns: 5,
            system_ns: 4,
            minflt: 3,
            majflt: 2,
            nvcsw: 1,
            nivcsw: 1,
        };
        assert_eq!(small.since(&large), Usage::default());
        assert_eq!(large.since(&small), large);
    }
}
