//! The lines of an input, found before the clock starts: a table of their lengths.

use memchr::memchr_iter;
use std::fmt;

/// The largest input in bytes whose lines can be tabulated: a length must fit into 32 bits.
pub const LARGEST: u64 = u32::MAX as u64;

/// The input is larger than [`LARGEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "inputs of more than {LARGEST} bytes are not split into lines"
        )
    }
}
impl std::error::Error for TooLarge {}

/// Puts the length in bytes of every line of `input` into `table`, in order and newline included. A last line
/// without a newline is a line. The lengths add up to the input's. The table's old contents go, its capacity stays,
/// and it grows once at most.
///
/// # Errors
/// [`TooLarge`]; the table is then empty.
pub fn split(input: &[u8], table: &mut Vec<u32>) -> Result<(), TooLarge> {
    table.clear();
    if input.len() as u64 > LARGEST {
        return Err(TooLarge);
    }
    table.reserve_exact(count(input));
    let mut start = 0;
    for newline in memchr_iter(b'\n', input) {
        table.push((newline + 1 - start) as u32);
        start = newline + 1;
    }
    if start < input.len() {
        table.push((input.len() - start) as u32);
    }
    Ok(())
}

/// Number of lines of `input`, as [`split`] would find them.
pub fn count(input: &[u8]) -> usize {
    let unended = input.last().is_some_and(|&last| last != b'\n');
    memchr_iter(b'\n', input).count() + usize::from(unended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(input: &[u8]) -> Vec<u32> {
        let mut table = vec![9, 9, 9];
        split(input, &mut table).unwrap();
        table
    }

    #[test]
    fn lines_with_and_without_an_end() {
        for (input, wanted) in [
            (&b""[..], &[][..]),
            (b"\n", &[1]),
            (b"a", &[1]),
            (b"a\n", &[2]),
            (b"a\nb", &[2, 1]),
            (b"\n\nabc\r\n\0\xff", &[1, 1, 5, 2]),
        ] {
            assert_eq!(table(input), wanted, "{input:?}");
            assert_eq!(count(input), wanted.len(), "{input:?}");
        }
    }

    proptest! {
        #[test]
        fn as_the_standard_library_splits(input in prop::collection::vec(prop::sample::select(&b"\na\0"[..]), 0..300)) {
            let wanted: Vec<u32> = input.split_inclusive(|&b| b == b'\n').map(|line| line.len() as u32).collect();
            prop_assert_eq!(table(&input), wanted);
        }
    }
}
