//! Rows of a JSONL file: one object a line; blank lines and a byte order mark at the start are
//! skipped.

use std::io::{self, BufRead, BufReader, Read};

use super::{Position, ROW_BYTES_MAX, Row};
use crate::entity_json;

const BUFFER_BYTES: usize = 256 * 1024;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Reads entities line by line.
pub(crate) struct Reader {
    input: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    at: Position,
}

impl Reader {
    /// Reads on at `at`, where `input` must stand.
    pub(crate) fn new(input: Box<dyn Read + Send>, at: Position) -> Self {
        Self { input: BufReader::with_capacity(BUFFER_BYTES, input), line: Vec::new(), at }
    }

    pub(crate) fn position(&self) -> Position {
        self.at
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<Row>> {
        loop {
            self.line.clear();
            let limit = u64::try_from(ROW_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
            let read = self.input.by_ref().take(limit).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            if read > ROW_BYTES_MAX {
                return Err(super::too_long());
            }
            let first = self.at.byte == 0;
            self.at.byte = self.at.byte.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
            self.at.line = self.at.line.saturating_add(1);
            let text =
                if first { self.line.strip_prefix(BOM).unwrap_or(&self.line) } else { &self.line };
            let text = text.trim_ascii();
            if !text.is_empty() {
                self.at.row = self.at.row.saturating_add(1);
                return Ok(Some(Row { line: self.at.line, entity: entity_json::parse(text) }));
            }
        }
    }
}
