//! Rows of a file: the position and the error of a row, and readers and writers of both formats.

use std::{
    io::{self, Read, Write},
    path::Path,
};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use trestle_proto::table::v1::Entity;

use crate::{
    entity_json::{self, Meta, TypeAnnotations},
    errors::CliError,
    field_error::FieldError,
    files::InputFile,
    lines::FilePosition,
    row_mapping::RowMapping,
};

mod budget;
mod csv;
mod jsonl;

/// Longest row that is read, in bytes. An entity of 1 MiB takes at most about 6 MiB of escaped
/// JSON.
const ROW_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The format of entities in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values with a type column for each property.
    Csv,
}

impl Format {
    /// The explicit format, or that of the extension; JSONL for `-`.
    ///
    /// # Errors
    /// An extension that is not known, without `given`.
    pub fn of(path: &Path, given: Option<Self>) -> Result<Self, CliError> {
        let standard = || (path == Path::new("-")).then_some(Self::Jsonl);
        given.or_else(|| Self::named_by(path)).or_else(standard).ok_or_else(|| {
            let rule = "unknown extension: give --format jsonl or csv";
            CliError::Usage(format!("{rule}: `{}`", path.display()))
        })
    }

    /// The format of the extension.
    pub fn named_by(path: &Path) -> Option<Self> {
        match path.extension()?.to_ascii_lowercase().to_str()? {
            "jsonl" | "ndjson" | "json" => Some(Self::Jsonl),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// A row that was read: an entity, or its error.
#[derive(Debug)]
pub struct Row {
    /// First line of the row, from 1.
    pub line: u64,
    /// The entity, or the rule that the row breaks.
    pub entity: Result<Entity, FieldError>,
}

/// Reads rows one after the other, in memory that does not grow with the file.
pub struct RowReader(Reader);

enum Reader {
    Jsonl(jsonl::JsonlReader),
    Csv(csv::CsvReader),
}

impl RowReader {
    /// The rows of a file from `start` on.
    ///
    /// # Errors
    /// The error of the input, or a header of CSV that cannot be used.
    pub fn open(
        input: &InputFile,
        format: Format,
        mapping: &RowMapping,
        start: FilePosition,
    ) -> io::Result<Self> {
        if format == Format::Jsonl {
            let reader = jsonl::JsonlReader::new(input.open(start.byte)?, start);
            return Ok(Self(Reader::Jsonl(reader.mapped(mapping.clone()))));
        }
        let reader = csv::CsvReader::new(input.open(0)?, mapping)?;
        Ok(Self(Reader::Csv(match start == FilePosition::default() {
            true => reader,
            false => reader.resume(input.open(start.byte)?, start),
        })))
    }

    /// The rows of JSONL from `start` on, where `input` must be.
    #[must_use]
    pub fn jsonl(input: Box<dyn Read + Send>, start: FilePosition) -> Self {
        Self(Reader::Jsonl(jsonl::JsonlReader::new(input, start)))
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// The error of the input, or a row that is too long or malformed as a whole.
    pub fn read(&mut self) -> io::Result<Option<Row>> {
        match &mut self.0 {
            Reader::Jsonl(reader) => reader.read(),
            Reader::Csv(reader) => reader.read(),
        }
    }

    /// Where the next row begins.
    pub fn position(&self) -> FilePosition {
        match &self.0 {
            Reader::Jsonl(reader) => reader.position(),
            Reader::Csv(reader) => reader.position(),
        }
    }
}

/// The header of a CSV file that is written.
#[derive(Debug, Clone)]
pub struct CsvHeader {
    /// The properties.
    pub columns: Vec<String>,
    /// Whether the time of the last write is a column.
    pub with_timestamp: bool,
    /// Whether each property has a type column.
    pub types: TypeAnnotations,
    /// Whether it is written: the rest of a file has none.
    pub is_written: bool,
}

/// Writes entities one after the other.
pub struct RowWriter<W: Write>(Writer<W>);

enum Writer<W: Write> {
    Jsonl { out: W, line: Vec<u8>, meta: Meta, types: TypeAnnotations },
    Csv(Box<csv::CsvWriter<W>>),
}

impl<W: Write> RowWriter<W> {
    /// A writer of JSONL.
    pub fn jsonl(out: W, meta: Meta, types: TypeAnnotations) -> Self {
        Self(Writer::Jsonl { out, line: Vec::new(), meta, types })
    }

    /// A writer of CSV under a header, which is written where it is to be.
    ///
    /// # Errors
    /// The error of the output.
    pub fn csv(out: W, header: CsvHeader) -> io::Result<Self> {
        Ok(Self(Writer::Csv(Box::new(csv::CsvWriter::new(out, header)?))))
    }

    /// Writes an entity; fails for a property without a column too.
    ///
    /// # Errors
    /// The error of the output, or a property without a column.
    pub fn write(&mut self, entity: &Entity) -> io::Result<()> {
        match &mut self.0 {
            Writer::Jsonl { out, line, meta, types } => {
                line.clear();
                entity_json::write_with(line, entity, *meta, *types).map_err(io::Error::other)?;
                line.push(b'\n');
                out.write_all(line)
            }
            Writer::Csv(writer) => writer.write(entity),
        }
    }

    /// Flushes everything written so far to the output.
    ///
    /// # Errors
    /// The error of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Writer::Jsonl { out, .. } => out.flush(),
            Writer::Csv(writer) => writer.flush(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
