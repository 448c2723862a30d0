//! The two clocks of a trial, in nanoseconds. Both obey NO-MALLOC.

use rustix::time::{ClockId, clock_gettime};

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

#[cfg(test)]
mod tests {
    use super::*;

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
