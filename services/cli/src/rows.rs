//! Rows of a file: where a row stands, what is wrong with it, and readers and writers of both
//! formats.

use std::{
    fmt,
    io::{self, Read, Write},
    path::Path,
};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use trestle_proto::table::v1::Entity;

use crate::{edm::EdmType, entity_json::Meta};

pub(crate) mod csv;
pub(crate) mod jsonl;

/// Longest row that is read, in bytes. An entity of 1 MiB takes at most about 6 MiB of escaped
/// JSON.
pub(crate) const ROW_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest part of a value that an error repeats, in characters.
const QUOTED_CHARS_MAX: usize = 60;

/// How entities are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values with a type column for each property.
    Csv,
}

impl Format {
    /// The format that a file name stands for.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "jsonl" | "ndjson" | "json" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// A place between two rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Bytes before it.
    pub(crate) byte: u64,
    /// Lines before it.
    pub(crate) line: u64,
    /// Rows before it.
    pub(crate) row: u64,
}

/// A row that was read: an entity, or what is wrong with it.
#[derive(Debug)]
pub(crate) struct Row {
    /// First line of the row, from 1.
    pub(crate) line: u64,
    /// The entity, or the rule that the row breaks.
    pub(crate) entity: Result<Entity, FieldError>,
}

/// A field that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldError {
    field: String,
    value: String,
    rule: String,
}

impl FieldError {
    /// `field` and `value` may be empty where there is none to name.
    pub(crate) fn new(
        field: impl Into<String>,
        value: impl Into<String>,
        rule: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), value: value.into(), rule: rule.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "field=`{}`, ", self.field)?;
        }
        if !self.value.is_empty() {
            let mut chars = self.value.chars();
            let shown: String = chars.by_ref().take(QUOTED_CHARS_MAX).collect();
            let more = if chars.next().is_some() { "…" } else { "" };
            write!(f, "value=`{}{more}`: ", shown.escape_debug())?;
        }
        f.write_str(&self.rule)
    }
}

/// Reads rows one after the other, in memory that does not grow with the file.
pub(crate) enum RowReader {
    /// Of a JSONL file.
    Jsonl(jsonl::Reader),
    /// Of a CSV file.
    Csv(csv::Reader),
}

impl RowReader {
    /// The next row; `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Row>> {
        match self {
            Self::Jsonl(reader) => reader.next(),
            Self::Csv(reader) => reader.next(),
        }
    }

    /// Where the next row begins.
    pub(crate) fn position(&self) -> Position {
        match self {
            Self::Jsonl(reader) => reader.position(),
            Self::Csv(reader) => reader.position(),
        }
    }
}

/// Types given for columns without a type column.
pub(crate) type ColumnTypes = Vec<(String, EdmType)>;

/// Writes entities one after the other.
pub(crate) enum RowWriter<W: Write> {
    /// As JSONL.
    Jsonl { out: W, line: Vec<u8>, meta: Meta },
    /// As CSV.
    Csv(Box<csv::Writer<W>>),
}

impl<W: Write> RowWriter<W> {
    /// A writer of JSONL.
    pub(crate) fn jsonl(out: W, meta: Meta) -> Self {
        Self::Jsonl { out, line: Vec::new(), meta }
    }

    /// Writes an entity.
    pub(crate) fn write(&mut self, entity: &Entity) -> io::Result<()> {
        match self {
            Self::Jsonl { out, line, meta } => {
                line.clear();
                crate::entity_json::write(line, entity, *meta).map_err(io::Error::other)?;
                line.push(b'\n');
                out.write_all(line)
            }
            Self::Csv(writer) => writer.write(entity),
        }
    }

    /// Hands everything written so far to the output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Jsonl { out, .. } => out.flush(),
            Self::Csv(writer) => writer.flush(),
        }
    }
}

/// Refuses to read more than a budget, so that a file of one endless row cannot fill the memory.
pub(crate) struct Budget<R> {
    inner: R,
    left: usize,
    /// Bytes read in all.
    total: u64,
    /// The last byte read.
    last: u8,
    /// Whether the first line ends in `\r\n`; false until that is known.
    crlf: bool,
    first_line: bool,
}

impl<R> Budget<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, left: ROW_BYTES_MAX, total: 0, last: 0, crlf: false, first_line: true }
    }

    /// Allows one more row.
    pub(crate) fn renew(&mut self) {
        self.left = ROW_BYTES_MAX;
    }
}

impl<R: Read> Read for Budget<R> {
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
        self.total = self.total.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        self.left = self.left.checked_sub(read).ok_or_else(too_long)?;
        Ok(read)
    }
}

/// The error of a row longer than [`ROW_BYTES_MAX`].
pub(crate) fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("row is longer than {ROW_BYTES_MAX} bytes"))
}

#[cfg(test)]
pub(crate) mod tests;
