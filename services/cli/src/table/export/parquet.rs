//! Entities as a file of Parquet. One row group is in memory at a time.

use std::{
    collections::HashMap,
    io::{self, Write},
    sync::Arc,
};

use arrow_array::{
    ArrayRef, RecordBatch,
    builder::{
        BinaryBuilder, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
        TimestampMicrosecondBuilder, TimestampNanosecondBuilder,
    },
};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use parquet::{
    arrow::{ArrowWriter, arrow_writer::ArrowWriterOptions},
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
};
use trestle_proto::table::v1::{Entity, value::Kind};

use super::columns::{ColumnForm, ParquetColumn, UTC, micros, nanos};
use crate::edm::{self, EdmType};

/// How large the parts of a file are. Tests have smaller ones.
#[derive(Debug, Clone, Copy)]
struct FileSizes {
    /// Rows of a row group: what a reader opens at once.
    group_rows: usize,
    /// Bytes of its values, of few rows if they are large.
    group_bytes: usize,
    /// Rows that are handed to the encoder at once.
    chunk_rows: usize,
    /// The same in bytes.
    chunk_bytes: usize,
}

impl FileSizes {
    /// Those of every file that is exported.
    const EXPORTED: Self = Self {
        group_rows: 64 * 1024,
        group_bytes: 64 * 1024 * 1024,
        chunk_rows: 8 * 1024,
        chunk_bytes: 8 * 1024 * 1024,
    };
}

/// What a value takes in memory, also one that is absent: a table may have many properties, each of few entities.
const CELL_BYTES: usize = 8;

/// Writes entities, row group by row group.
pub(super) struct ParquetWriter<W: Write + Send> {
    parquet: ArrowWriter<W>,
    schema: Arc<Schema>,
    partition_key: StringBuilder,
    row_key: StringBuilder,
    timestamp: Option<TimestampNanosecondBuilder>,
    columns: Vec<PropertyBuilder>,
    /// The place of each property in `columns`.
    indices: HashMap<String, usize>,
    sizes: FileSizes,
    /// Rows in the builders.
    rows: usize,
    /// Bytes of their values.
    bytes: usize,
    /// Rows of the row group that the encoder has.
    group_rows: usize,
    group_bytes: usize,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// A writer of these properties, beside the keys.
    pub(super) fn new(out: W, columns: &[ParquetColumn], with_timestamp: bool) -> io::Result<Self> {
        Self::sized(out, columns, with_timestamp, FileSizes::EXPORTED)
    }

    fn sized(
        out: W,
        columns: &[ParquetColumn],
        with_timestamp: bool,
        sizes: FileSizes,
    ) -> io::Result<Self> {
        let mut fields = vec![
            Field::new("PartitionKey", DataType::Utf8, false),
            Field::new("RowKey", DataType::Utf8, false),
        ];
        let time = DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()));
        fields.extend(with_timestamp.then(|| Field::new("Timestamp", time, true)));
        fields.extend(columns.iter().map(|it| Field::new(it.name(), it.data_type(), true)));
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder()
            .set_created_by("trestle".to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(sizes.group_rows));
        // Other engines need no schema of Arrow.
        let options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_skip_arrow_metadata(true);
        let parquet = ArrowWriter::try_new_with_options(out, Arc::clone(&schema), options);
        let names = columns.iter().map(|column| column.name().to_owned());
        Ok(Self {
            parquet: parquet.map_err(broken)?,
            schema,
            partition_key: StringBuilder::new(),
            row_key: StringBuilder::new(),
            timestamp: with_timestamp.then(nanos_builder),
            indices: names.zip(0..).collect(),
            columns: columns.iter().cloned().map(PropertyBuilder::new).collect(),
            sizes,
            rows: 0,
            bytes: 0,
            group_rows: 0,
            group_bytes: 0,
        })
    }

    /// Writes an entity; fails for a value that the first pass over the table did not find a column for.
    pub(super) fn write(&mut self, entity: &Entity) -> io::Result<()> {
        self.partition_key.append_value(&entity.partition_key);
        self.row_key.append_value(&entity.row_key);
        if let Some(timestamp) = &mut self.timestamp {
            timestamp.append_option(entity.timestamp.as_ref().and_then(nanos));
        }
        self.rows += 1;
        self.bytes += entity.partition_key.len() + entity.row_key.len();
        for property in &entity.properties {
            let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) else {
                continue;
            };
            let found = self.indices.get(&property.name);
            let builder = found.and_then(|index| self.columns.get_mut(*index));
            let bytes = builder.and_then(|builder| builder.append(kind, self.rows));
            self.bytes += bytes.ok_or_else(|| changed(entity, &property.name, kind))?;
        }
        for builder in &mut self.columns {
            if builder.rows < self.rows {
                builder.append_null();
            }
        }
        self.bytes += CELL_BYTES * (self.columns.len() + 2);
        if self.rows >= self.sizes.chunk_rows || self.bytes >= self.sizes.chunk_bytes {
            self.write_chunk()?;
        }
        Ok(())
    }

    /// Writes the end of the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.write_chunk()?;
        // Not `into_inner`, which loses the kind of an error: a reader that is gone is none.
        self.parquet.finish().map(drop).map_err(broken)
    }

    /// Hands the rows so far to the encoder, and ends the row group if it is large enough.
    fn write_chunk(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.group_rows += self.rows;
        self.group_bytes += self.bytes;
        let batch = self.batch().map_err(io::Error::other)?;
        self.parquet.write(&batch).map_err(broken)?;
        if self.group_bytes >= self.sizes.group_bytes || self.group_rows >= self.sizes.group_rows {
            self.parquet.flush().map_err(broken)?;
            (self.group_rows, self.group_bytes) = (0, 0);
        }
        Ok(())
    }

    /// The columns of the rows so far, which are removed.
    fn batch(&mut self) -> Result<RecordBatch, ArrowError> {
        let keys = [&mut self.partition_key, &mut self.row_key];
        let mut columns: Vec<_> = keys.map(|key| Arc::new(key.finish()) as ArrayRef).into();
        let timestamp = self.timestamp.as_mut();
        columns.extend(timestamp.map(|times| Arc::new(times.finish()) as ArrayRef));
        columns.extend(self.columns.iter_mut().map(PropertyBuilder::finish));
        (self.rows, self.bytes) = (0, 0);
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

/// The column of a property while it is built.
struct PropertyBuilder {
    column: ParquetColumn,
    values: ValueBuilder,
    /// Rows that it has a value or a null for.
    rows: usize,
}

enum ValueBuilder {
    Text(StringBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Double(Float64Builder),
    Boolean(BooleanBuilder),
    Binary(BinaryBuilder),
    Micros(TimestampMicrosecondBuilder),
    Nanos(TimestampNanosecondBuilder),
}

impl PropertyBuilder {
    fn new(column: ParquetColumn) -> Self {
        let values = match column.form {
            ColumnForm::Text => ValueBuilder::Text(StringBuilder::new()),
            ColumnForm::Int32 => ValueBuilder::Int32(Int32Builder::new()),
            ColumnForm::Int64 => ValueBuilder::Int64(Int64Builder::new()),
            ColumnForm::Double => ValueBuilder::Double(Float64Builder::new()),
            ColumnForm::Boolean => ValueBuilder::Boolean(BooleanBuilder::new()),
            ColumnForm::Binary => ValueBuilder::Binary(BinaryBuilder::new()),
            ColumnForm::Micros => {
                ValueBuilder::Micros(TimestampMicrosecondBuilder::new().with_timezone(UTC))
            }
            ColumnForm::Nanos => ValueBuilder::Nanos(nanos_builder()),
        };
        Self { column, values, rows: 0 }
    }

    /// Adds the value of a row, the last so far; its bytes, and none where it does not belong in the column.
    fn append(&mut self, kind: &Kind, row: usize) -> Option<usize> {
        if self.rows >= row || !self.column.has(EdmType::of(kind)) {
            return None;
        }
        self.rows = row;
        match (&mut self.values, kind) {
            (ValueBuilder::Text(values), kind) => {
                let text = edm::format_value(kind).ok()?;
                values.append_value(&text);
                return Some(text.len());
            }
            (ValueBuilder::Binary(values), Kind::BinaryValue(bytes)) => {
                values.append_value(bytes);
                return Some(bytes.len());
            }
            (ValueBuilder::Int32(values), Kind::Int32Value(number)) => values.append_value(*number),
            (ValueBuilder::Int64(values), Kind::Int64Value(number)) => values.append_value(*number),
            (ValueBuilder::Double(values), Kind::DoubleValue(number)) => {
                values.append_value(*number);
            }
            (ValueBuilder::Boolean(values), Kind::BooleanValue(truth)) => {
                values.append_value(*truth);
            }
            (ValueBuilder::Micros(values), Kind::DatetimeValue(at)) => {
                values.append_value(micros(at)?);
            }
            (ValueBuilder::Nanos(values), Kind::DatetimeValue(at)) => {
                values.append_value(nanos(at)?);
            }
            _ => return None,
        }
        Some(0)
    }

    fn append_null(&mut self) {
        self.rows += 1;
        match &mut self.values {
            ValueBuilder::Text(values) => values.append_null(),
            ValueBuilder::Int32(values) => values.append_null(),
            ValueBuilder::Int64(values) => values.append_null(),
            ValueBuilder::Double(values) => values.append_null(),
            ValueBuilder::Boolean(values) => values.append_null(),
            ValueBuilder::Binary(values) => values.append_null(),
            ValueBuilder::Micros(values) => values.append_null(),
            ValueBuilder::Nanos(values) => values.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        self.rows = 0;
        match &mut self.values {
            ValueBuilder::Text(values) => Arc::new(values.finish()),
            ValueBuilder::Int32(values) => Arc::new(values.finish()),
            ValueBuilder::Int64(values) => Arc::new(values.finish()),
            ValueBuilder::Double(values) => Arc::new(values.finish()),
            ValueBuilder::Boolean(values) => Arc::new(values.finish()),
            ValueBuilder::Binary(values) => Arc::new(values.finish()),
            ValueBuilder::Micros(values) => Arc::new(values.finish()),
            ValueBuilder::Nanos(values) => Arc::new(values.finish()),
        }
    }
}

fn nanos_builder() -> TimestampNanosecondBuilder {
    TimestampNanosecondBuilder::new().with_timezone(UTC)
}

fn changed(entity: &Entity, property: &str, kind: &Kind) -> io::Error {
    io::Error::other(format!(
        "value has no column, the table changed during the export: property=`{property}`, \
         type=`{}`, partition_key=`{}`, row_key=`{}`; repeat the export",
        EdmType::of(kind).name(),
        entity.partition_key,
        entity.row_key
    ))
}

/// The error of the output, or of the encoder.
fn broken(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests;
