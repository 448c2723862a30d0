//! Where callgrind counts: from the begin to the end of the measured region. Obeys NO-MALLOC.
//!
//! A program asks valgrind by a sequence of instructions that changes nothing: a register turned round to where it was,
//! and exchanged with itself. valgrind translates all code before it runs and knows the sequence; a processor runs it in
//! a few nanoseconds, outside the timed region. So a child is the same program under valgrind and without it.

/// callgrind's requests are those of a tool, numbered from its letters.
const CALLGRIND: u64 = (b'C' as u64) << 24 | (b'T' as u64) << 16;
const START: u64 = CALLGRIND + 4;
const STOP: u64 = CALLGRIND + 5;

/// Under callgrind: counts from here on.
pub fn begin() {
    ask(START);
}

/// Under callgrind: counts no longer.
pub fn end() {
    ask(STOP);
}

#[cfg(target_arch = "x86_64")]
fn ask(what: u64) {
    // The request and its five arguments, of which these have none.
    let request = [what, 0, 0, 0, 0, 0];
    // SAFETY: rdi is turned by 128 bits in all, so it is as before; rbx is exchanged with itself. valgrind reads the
    // request behind rax, which lives until afterwards, and writes an answer into rdx.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0u64 => _,
            options(nostack),
        );
    }
}

/// The sequence is another one on each architecture; the harness does not count elsewhere.
#[cfg(not(target_arch = "x86_64"))]
fn ask(_what: u64) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_valgrind_nothing_happens() {
        begin();
        end();
        assert_eq!((START, STOP), (0x4354_0004, 0x4354_0005));
    }
}
