//! A text with its lines, found before anything is measured.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::slice;

/// What is left of a text, and the length in bytes of each line in it.
///
/// It is checked once, when it is made, so that a measured loop may take line after line without asking whether it
/// still lies in the text.
///
/// Invariant IN-TEXT: the `lengths` are not 0 and add up to the bytes that are left from `at` on, all of them in one
/// text that is borrowed for `'t`.
#[derive(Debug, Clone)]
pub struct Lines<'t> {
    at: NonNull<u8>,
    lengths: &'t [u32],
    end: NonNull<u8>,
    text: PhantomData<&'t [u8]>,
}

impl<'t> Lines<'t> {
    /// The lines of `text`, whose `lengths` are not 0 and add up to its own; `None` if they do not.
    #[must_use]
    pub fn new(text: &'t [u8], lengths: &'t [u32]) -> Option<Self> {
        let total: u128 = lengths.iter().map(|length| u128::from(*length)).sum();
        let ends = text.as_ptr_range().end.cast_mut();
        (total == text.len() as u128 && !lengths.contains(&0)).then_some(Lines {
            at: NonNull::from(text).cast(),
            lengths,
            end: NonNull::new(ends)?,
            text: PhantomData,
        })
    }

    /// Bytes that are left.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.end.as_ptr() as usize - self.at.as_ptr() as usize
    }

    /// Whether no line is left.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The next line, which stays the next.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<&'t [u8]> {
        // SAFETY: IN-TEXT: so many bytes of the text are left, and it is borrowed for 't.
        self.lengths
            .first()
            .map(|length| unsafe { slice::from_raw_parts(self.at.as_ptr(), *length as usize) })
    }

    /// Goes past the next line, if there is one.
    #[inline]
    pub fn pass(&mut self) {
        if let Some((length, rest)) = self.lengths.split_first() {
            // SAFETY: IN-TEXT: the line lies in the text, so its end does or is the text's.
            self.at = unsafe { self.at.add(*length as usize) };
            self.lengths = rest;
        }
    }

    /// The address of the next line, and the lengths of the next `most` lines or of all that are left.
    #[inline]
    pub(crate) fn next(&self, most: usize) -> (*const u8, &'t [u32]) {
        (
            self.at.as_ptr(),
            &self.lengths[..most.min(self.lengths.len())],
        )
    }

    /// Goes on to the line at `at`, whose length is at `length`; both may be where the last one ends.
    ///
    /// # Safety
    /// They were reached from what [`next`](Lines::next) gave, going past as many lengths as lines.
    #[inline]
    pub(crate) unsafe fn go_on(&mut self, at: *const u8, length: *const u32) {
        let end = self.lengths.as_ptr_range().end;
        // SAFETY: the caller's promise: `at` lies in the text and is not null, `length` in the lengths or at their end.
        unsafe {
            self.at = NonNull::new_unchecked(at.cast_mut());
            self.lengths = slice::from_raw_parts(length, end.offset_from_unsigned(length));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_must_add_up_and_not_be_0() {
        assert!(Lines::new(b"a\nbc\n", &[2, 3]).is_some());
        assert!(Lines::new(b"", &[]).is_some_and(|lines| lines.is_empty()));
        for wrong in [&[2, 2][..], &[2, 4], &[2, 0, 3], &[], &[u32::MAX, 6]] {
            assert!(Lines::new(b"a\nbc\n", wrong).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn line_after_line() {
        let mut lines = Lines::new(b"a\nbc\n", &[2, 3]).expect("they add up");
        assert_eq!((lines.first(), lines.bytes()), (Some(&b"a\n"[..]), 5));
        lines.pass();
        assert_eq!((lines.first(), lines.bytes()), (Some(&b"bc\n"[..]), 3));
        lines.pass();
        assert_eq!(
            (lines.first(), lines.bytes(), lines.is_empty()),
            (None, 0, true)
        );
        lines.pass();
        assert!(lines.is_empty());
    }
}
