//! The lines of a file, of bounded length, each with its position. A byte order mark is skipped.

use std::io::{self, BufRead as _, BufReader, Read};

use serde::{Deserialize, Serialize};

use crate::files::BYTE_ORDER_MARK;

const BUFFER_BYTES: usize = 256 * 1024;

/// A position between two rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilePosition {
    /// Bytes before it.
    pub byte: u64,
    /// Lines before it.
    pub line: u64,
    /// Rows before it.
    pub row: u64,
}

/// Reads line by line.
pub struct Lines {
    input: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    bytes_max: u64,
    /// Where the next line begins; rows are counted by the caller.
    pub at: FilePosition,
}

impl Lines {
    /// Lines from `at` on, where `input` must be, of up to `bytes_max` bytes with their ends.
    pub fn new(input: Box<dyn Read + Send>, at: FilePosition, bytes_max: u64) -> Self {
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        Self { input, line: Vec::new(), bytes_max, at }
    }

    /// The next line without its end; none at the end of the file. One that is too long is an error.
    ///
    /// # Errors
    /// The error of the input, or a line that is too long.
    pub fn read_line(&mut self) -> io::Result<Option<&[u8]>> {
        let read = self.fill()?;
        if read > self.bytes_max {
            return Err(too_long(self.bytes_max));
        }
        Ok(self.advanced(read))
    }

    /// The same, but one that is too long is skipped. It is an error within.
    ///
    /// # Errors
    /// The error of the input.
    pub fn read_line_or_skip(&mut self) -> io::Result<Option<io::Result<&[u8]>>> {
        let read = self.fill()?;
        if read > self.bytes_max {
            let rest = if self.line.ends_with(b"\n") { 0 } else { self.input.skip_until(b'\n')? };
            self.advanced(read.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX)));
            return Ok(Some(Err(too_long(self.bytes_max))));
        }
        Ok(self.advanced(read).map(Ok))
    }

    /// Reads a line, or the beginning of one that is too long, and returns its bytes.
    fn fill(&mut self) -> io::Result<u64> {
        self.line.clear();
        let mut bounded = self.input.by_ref().take(self.bytes_max.saturating_add(1));
        let read = bounded.read_until(b'\n', &mut self.line)?;
        Ok(u64::try_from(read).unwrap_or(u64::MAX))
    }

    /// The line that was read, and the position behind it; none where there was no byte.
    fn advanced(&mut self, bytes: u64) -> Option<&[u8]> {
        if bytes == 0 {
            return None;
        }
        let is_first = self.at.byte == 0;
        self.at.byte += bytes;
        self.at.line += 1;
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let unmarked = line.strip_prefix(BYTE_ORDER_MARK.as_bytes()).filter(|_| is_first);
        let line = unmarked.unwrap_or(line);
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// The error of a row that would not fit in memory.
pub fn too_long(bytes_max: u64) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("row is longer than {bytes_max} bytes"))
}

#[cfg(test)]
mod tests;
