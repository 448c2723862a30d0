//! All that measures the operating system: clocks, mappings, `/proc`, resource usage, traces of system calls.
//!
//! Two kinds of module. What a child uses inside or around its measured region ([`clock`], [`limits`], [`mapping`],
//! [`markers`], [`counting`], [`usage`]) obeys one invariant, NO-MALLOC: it never enters the C library's allocator, which may be
//! the very heap under test. It makes its system calls through rustix, which issues them itself, or through C
//! wrappers that do nothing but the call. What only the parent uses ([`callgrind`], [`machine`],
//! [`resident`], [`strace`]) may allocate.
//!
//! This is the only place of the harness that reads a clock or `/proc`, and, with the children's glue, the only one
//! that holds `unsafe`.

#[cfg(test)]
mod alone;
pub mod callgrind;
pub mod clock;
pub mod counting;
pub mod limits;
pub mod machine;
pub mod mapping;
pub mod markers;
pub mod resident;
pub mod strace;
pub mod usage;
