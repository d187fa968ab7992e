//! A bound on the bytes of a row.

use std::io::{self, Read};

use super::ROW_BYTES_MAX;
use crate::lines::too_long;

/// Fails reads beyond a budget, so that a file of one endless row cannot fill the memory.
pub(super) struct RowBudget<R> {
    inner: R,
    left: u64,
    /// Bytes read in all.
    pub(super) total: u64,
    /// The last byte read.
    pub(super) last: u8,
    /// Whether the first line ends in `\r\n`; false until then.
    pub(super) crlf: bool,
    first_line: bool,
}

impl<R> RowBudget<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, left: ROW_BYTES_MAX, total: 0, last: 0, crlf: false, first_line: true }
    }

    /// Allows one more row.
    pub(super) fn renew(&mut self) {
        self.left = ROW_BYTES_MAX;
    }
}

impl<R: Read> Read for RowBudget<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let bytes = buffer.get(..read).unwrap_or_default();
        if self.first_line
            && let Some(end) = bytes.iter().position(|byte| *byte == b'\n')
        {
            let before = end.checked_sub(1).and_then(|at| bytes.get(at));
            self.crlf = before.copied().unwrap_or(self.last) == b'\r';
            self.first_line = false;
        }
        self.last = bytes.last().copied().unwrap_or(self.last);
        let bytes = u64::try_from(read).unwrap_or(u64::MAX);
        self.total += bytes;
        self.left = self.left.checked_sub(bytes).ok_or_else(|| too_long(ROW_BYTES_MAX))?;
        Ok(read)
    }
}
