//! Rows of a JSONL file: one object a line; blank lines are skipped.

use std::io::{self, Read};

use super::{FilePosition, ROW_BYTES_MAX, Row};
use crate::{entity_json, lines::Lines};

/// Reads entities line by line.
pub(super) struct JsonlReader(Lines);

impl JsonlReader {
    /// Continues at `at`, where `input` must start.
    pub(super) fn new(input: Box<dyn Read + Send>, at: FilePosition) -> Self {
        Self(Lines::new(input, at, ROW_BYTES_MAX))
    }

    pub(super) fn position(&self) -> FilePosition {
        self.0.at
    }

    pub(super) fn read(&mut self) -> io::Result<Option<Row>> {
        loop {
            let Some(line) = self.0.read_line()? else { return Ok(None) };
            let text = line.trim_ascii();
            if !text.is_empty() {
                let entity = entity_json::parse(text);
                self.0.at.row += 1;
                return Ok(Some(Row { line: self.0.at.line, entity }));
            }
        }
    }
}
