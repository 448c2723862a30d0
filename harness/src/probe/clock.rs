//! The two clocks of a trial, in nanoseconds, and sleep. All obey NO-MALLOC.

use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;

/// Nanoseconds of the monotonic clock since some fixed point in the past; only differences mean anything.
#[inline]
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds of processor time, user and system together, that all threads of this process have used.
#[inline]
pub fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Neither clock is ever negative, and 64 bits of nanoseconds last for 584 years.
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// Sleeps for `time`: the process uses no processor meanwhile. A signal does not cut it short.
pub fn sleep(time: Duration) {
    let mut left = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    };
    while let NanosleepRelativeResult::Interrupted(rest) = nanosleep(&left) {
        left = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::usage::Usage;

    #[test]
    fn a_sleep_takes_its_time_and_gives_the_processor_away() {
        let (wall, usage) = (monotonic_ns(), Usage::of_this_thread());
        sleep(Duration::from_millis(30));
        assert!(monotonic_ns() - wall >= 30_000_000);
        assert!(Usage::of_this_thread().since(&usage).nvcsw > 0);
    }

    #[test]
    fn never_runs_backwards() {
        let mut last = monotonic_ns();
        let mut last_cpu = process_cpu_ns();
        for _ in 0..10_000 {
            let now = monotonic_ns();
            assert!(now >= last, "the monotonic clock went from {last} to {now}");
            last = now;
            let now = process_cpu_ns();
            assert!(
                now >= last_cpu,
                "the process clock went from {last_cpu} to {now}"
            );
            last_cpu = now;
        }
    }

    #[test]
    fn a_busy_process_uses_processor_time() {
        let start = process_cpu_ns();
        let mut rounds = 0u64;
        while process_cpu_ns() == start {
            rounds += 1;
            assert!(rounds < 1_000_000_000, "the process clock stands still");
        }
    }
}
