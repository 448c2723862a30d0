//! The child stands still at a named phase until the harness has read its memory.
//!
//! Under the memory protocol standard input is a socket: after the orders, the child writes `NAME HELD` and a newline
//! into it, HELD being the bytes of its own heap, and waits for one byte. An exchange is two bare system calls and a
//! buffer on the stack, so it changes nothing in the heap under test.

use super::own_heap;
use rustix::io::{read, retry_on_intr, write};
use std::fmt::Write;
use std::io::{self, Stdin};
use std::os::fd::AsFd;

/// Before the first start of the measured region: what all memory is compared with, and from where on the peak counts.
pub const START: &str = "start";
/// Everything that the workload made is freed.
pub const EMPTY: &str = "empty";
/// After the allocator was asked to give free memory back.
pub const TRIMMED: &str = "trimmed";
/// The last exchange, after which nothing is measured: no phase of its own.
pub const END: &str = "end";
/// Longest line of an exchange, newline included.
pub const LONGEST: usize = 128;
/// Bytes of stack that are touched before the first phase: more than a measured loop needs.
const STACK: usize = 64 << 10;

/// The child's end of the exchange.
#[derive(Debug)]
pub struct Phases {
    harness: Stdin,
}

impl Phases {
    /// The exchange over standard input, from which the orders have been read. Touches what an exchange and the
    /// measured loops need of the stack, so that it does not come up in a later phase.
    pub fn new() -> Phases {
        touch_stack();
        Phases {
            harness: io::stdin(),
        }
    }

    /// Tells the harness that `name` is reached, and waits until it has looked.
    ///
    /// # Errors
    /// If nobody answers.
    pub fn reached(&self, name: &str) -> io::Result<()> {
        let mut line = Line::default();
        writeln!(line, "{name} {}", own_heap::held_bytes())
            .map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut left = &line.bytes[..line.len];
        while !left.is_empty() {
            let written = retry_on_intr(|| write(self.harness.as_fd(), left))?;
            left = &left[written..];
        }
        let mut answer = [0; 1];
        match retry_on_intr(|| read(self.harness.as_fd(), &mut answer))? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

impl Default for Phases {
    fn default() -> Self {
        Phases::new()
    }
}

#[inline(never)]
fn touch_stack() {
    let mut stack = [0u8; STACK];
    std::hint::black_box(&mut stack);
}

/// A line on the stack.
struct Line {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Default for Line {
    fn default() -> Self {
        Line {
            bytes: [0; LONGEST],
            len: 0,
        }
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + text.len());
        room.ok_or(std::fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}
