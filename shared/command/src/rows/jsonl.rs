//! Rows of a JSONL file: one object a line; blank lines are skipped.

use std::io::{self, Read};

use super::{FilePosition, ROW_BYTES_MAX, Row};
use crate::{entity_json, lines::Lines, row_mapping::RowMapping};

/// Reads entities line by line.
pub(super) struct JsonlReader {
    lines: Lines,
    mapping: RowMapping,
}

impl JsonlReader {
    /// Continues at `at`, where `input` must start.
    pub(super) fn new(input: Box<dyn Read + Send>, at: FilePosition) -> Self {
        Self { lines: Lines::new(input, at, ROW_BYTES_MAX), mapping: RowMapping::default() }
    }

    /// The same with other keys, and constants.
    pub(super) fn mapped(self, mapping: RowMapping) -> Self {
        Self { mapping, ..self }
    }

    pub(super) fn position(&self) -> FilePosition {
        self.lines.at
    }

    pub(super) fn read(&mut self) -> io::Result<Option<Row>> {
        loop {
            let Some(line) = self.lines.read_line()? else { return Ok(None) };
            let text = line.trim_ascii();
            if !text.is_empty() {
                let entity = entity_json::parse_mapped(text, &self.mapping);
                self.lines.at.row += 1;
                return Ok(Some(Row { line: self.lines.at.line, entity }));
            }
        }
    }
}
