//! Rows of a CSV file in the shape of Storage Explorer: `PartitionKey,RowKey,Name,Name@type,…`.
//!
//! An empty type cell means that the property is absent, so an absent property and an empty string
//! differ. A column without a type column contains strings, or the type set for it; there an empty
//! cell of another type than string means absent. `Timestamp` and columns that begin with `odata.`
//! are ignored.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, Cursor, Read, Write},
};

use csv::{ByteRecord, ReaderBuilder, WriterBuilder};
use trestle_proto::table::v1::{Entity, Property, Value};

use super::{CsvHeader, FilePosition, Row, budget::RowBudget};
use crate::{
    datetime, edm,
    edm::EdmType,
    entity_json::TypeAnnotations,
    field_error::FieldError,
    row_mapping::{PARTITION_KEY, ROW_KEY, RowMapping},
};

const BUFFER_BYTES: usize = 256 * 1024;
const TYPE_SUFFIX: &str = "@type";

type CsvInput = RowBudget<Box<dyn Read + Send>>;

/// The content of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    PartitionKey,
    RowKey,
    /// Both keys.
    Keys,
    Ignored,
    /// A property whose type is in another column.
    Typed {
        name: String,
        type_at: usize,
    },
    /// A property of one type.
    Plain {
        name: String,
        edm: EdmType,
    },
}

/// Reads entities record by record.
pub(super) struct CsvReader {
    input: csv::Reader<CsvInput>,
    columns: Vec<Column>,
    mapping: RowMapping,
    record: ByteRecord,
    /// The offset at which `input` starts.
    base: FilePosition,
    rows: u64,
    /// Whether the lines of the part that was read before end in `\r\n`.
    crlf: bool,
}

impl CsvReader {
    /// Reads the header; rows follow.
    pub(super) fn new(input: Box<dyn Read + Send>, mapping: &RowMapping) -> io::Result<Self> {
        let mut input = open(input);
        let mut header = ByteRecord::new();
        input.read_byte_record(&mut header).map_err(broken)?;
        let columns = columns(&header, mapping)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let base = FilePosition::default();
        let mapping = mapping.clone();
        Ok(Self { input, columns, mapping, record: header, base, rows: 0, crlf: false })
    }

    /// Continues at `at` in `rest`, which must start there, with the header that was read before.
    pub(super) fn resume(self, rest: Box<dyn Read + Send>, at: FilePosition) -> Self {
        // The parser drops a byte order mark at its very start. Here one would be content, so a
        // blank line, which the parser skips, goes before it.
        let crlf = self.input.get_ref().crlf;
        let input = open(Box::new(Cursor::new(b"\n").chain(rest)));
        let base = FilePosition {
            byte: at.byte.saturating_sub(1),
            line: at.line.saturating_sub(1),
            row: at.row,
        };
        Self { input, base, rows: at.row, crlf, ..self }
    }

    pub(super) fn position(&self) -> FilePosition {
        let at = self.input.position();
        FilePosition {
            byte: self.base.byte.saturating_add(at.byte()),
            line: self.base.line.saturating_add(at.line().saturating_sub(1)),
            row: self.rows,
        }
    }

    pub(super) fn read(&mut self) -> io::Result<Option<Row>> {
        self.input.get_mut().renew();
        match self.input.read_byte_record(&mut self.record) {
            Ok(false) => return Ok(None),
            Ok(true) => {}
            Err(error) => return Err(broken(error)),
        }
        self.rows = self.rows.saturating_add(1);
        Ok(Some(Row { line: self.first_line(), entity: self.entity() }))
    }

    /// The line on which the record begins: counted back from its end, because the parser records the
    /// start before it skips blank lines. Of `\r\n` it has consumed only the first half by then.
    fn first_line(&self) -> u64 {
        let breaks = self.record.as_slice().iter().filter(|byte| **byte == b'\n').count();
        let at = self.input.position();
        let input = self.input.get_ref();
        let cut = at.byte() == input.total && input.last != b'\n';
        let ended = u64::from(!(self.crlf || input.crlf || cut));
        self.position()
            .line
            .saturating_add(1)
            .saturating_sub(u64::try_from(breaks).unwrap_or(u64::MAX))
            .saturating_sub(ended)
    }

    fn entity(&self) -> Result<Entity, FieldError> {
        if self.record.len() != self.columns.len() {
            return Err(FieldError::new(
                "",
                "",
                format!(
                    "row has {} cells, the header has {}",
                    self.record.len(),
                    self.columns.len()
                ),
            ));
        }
        let mut entity = Entity::default();
        for (column, cell) in self.columns.iter().zip(&self.record) {
            match column {
                Column::PartitionKey => entity.partition_key = text(PARTITION_KEY, cell)?.into(),
                Column::RowKey => entity.row_key = text(ROW_KEY, cell)?.into(),
                Column::Keys => {
                    entity.partition_key = text(PARTITION_KEY, cell)?.into();
                    entity.row_key.clone_from(&entity.partition_key);
                }
                Column::Ignored => {}
                Column::Typed { name, type_at } => {
                    let edm = self.record.get(*type_at).unwrap_or_default();
                    if let Some(edm) = cell_type(name, cell, edm)? {
                        entity.properties.push(property(name, edm, cell)?);
                    }
                }
                Column::Plain { name, edm } => {
                    if *edm == EdmType::String || !cell.is_empty() {
                        entity.properties.push(property(name, *edm, cell)?);
                    }
                }
            }
        }
        self.mapping.complete(&mut entity);
        Ok(entity)
    }
}

fn open(input: Box<dyn Read + Send>) -> csv::Reader<CsvInput> {
    ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(BUFFER_BYTES)
        .from_reader(RowBudget::new(input))
}

fn broken(error: csv::Error) -> io::Error {
    let text = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, text),
    }
}

/// The type in a type cell; `None` when the property is absent.
fn cell_type(name: &str, cell: &[u8], edm: &[u8]) -> Result<Option<EdmType>, FieldError> {
    let type_column = format!("{name}{TYPE_SUFFIX}");
    let edm = text(&type_column, edm)?;
    if !edm.is_empty() {
        let parsed = edm::parse_type(edm);
        return parsed.map(Some).map_err(|rule| FieldError::new(type_column, edm, rule));
    }
    if cell.is_empty() {
        return Ok(None);
    }
    let rule = format!("has a value, but its cell in `{type_column}` is empty");
    Err(FieldError::new(name, text(name, cell)?, rule))
}

fn property(name: &str, edm: EdmType, cell: &[u8]) -> Result<Property, FieldError> {
    let cell = text(name, cell)?;
    let kind = edm::parse_value(edm, cell).map_err(|rule| FieldError::new(name, cell, rule))?;
    Ok(Property { name: name.to_owned(), value: Some(Value { kind: Some(kind) }) })
}

fn text<'a>(name: &str, cell: &'a [u8]) -> Result<&'a str, FieldError> {
    std::str::from_utf8(cell)
        .map_err(|_| FieldError::new(name, String::from_utf8_lossy(cell), "must be UTF-8"))
}

fn columns(header: &ByteRecord, mapping: &RowMapping) -> Result<Vec<Column>, FieldError> {
    let names: Vec<&str> =
        header.iter().map(|cell| text("header", cell)).collect::<Result<_, _>>()?;
    let fail = |name: &str, rule: &str| FieldError::new("header", name, rule);
    let mut sorted = names.clone();
    sorted.sort_unstable();
    if let Some([name, _]) = sorted.windows(2).find(|pair| pair.first() == pair.last()) {
        return Err(fail(name, "column occurs twice"));
    }
    let keys = [&mapping.partition_key, &mapping.row_key];
    for key in keys.iter().filter_map(|source| source.column()) {
        if !names.contains(&key) {
            return Err(fail(key, "column is required"));
        }
    }
    names.iter().try_for_each(|name| mapping.check(name))?;
    for (name, _) in &mapping.types {
        if !names.contains(&name.as_str()) {
            return Err(fail(name, "no such column, but a type is given for it"));
        }
        if names.contains(&format!("{name}{TYPE_SUFFIX}").as_str()) {
            return Err(fail(name, "has a type column, so no type may be given for it"));
        }
        if keys.iter().any(|source| source.is_column(name)) {
            return Err(fail(name, "is a key, so no type may be given for it"));
        }
    }
    names.iter().map(|name| column(name, &names, mapping)).collect()
}

fn column(name: &str, names: &[&str], mapping: &RowMapping) -> Result<Column, FieldError> {
    match (mapping.partition_key.is_column(name), mapping.row_key.is_column(name)) {
        (true, true) => return Ok(Column::Keys),
        (true, false) => return Ok(Column::PartitionKey),
        (false, true) => return Ok(Column::RowKey),
        (false, false) => {}
    }
    Ok(match name {
        "Timestamp" => Column::Ignored,
        _ if name.starts_with("odata.") => Column::Ignored,
        "" => return Err(FieldError::new("header", "", "a column has no name")),
        _ => {
            if let Some(owner) = name.strip_suffix(TYPE_SUFFIX) {
                if !names.contains(&owner) {
                    let rule = format!("type column without a column `{owner}`");
                    return Err(FieldError::new("header", name, rule));
                }
                return Ok(Column::Ignored);
            }
            let type_column = format!("{name}{TYPE_SUFFIX}");
            let name = name.to_owned();
            match names.iter().position(|other| *other == type_column) {
                Some(type_at) => Column::Typed { name, type_at },
                None => {
                    let given = mapping.types.iter().find(|(other, _)| *other == name);
                    Column::Plain { name, edm: given.map_or(EdmType::String, |(_, edm)| *edm) }
                }
            }
        }
    })
}

/// Writes entities record by record under a fixed header.
pub(super) struct CsvWriter<W: Write> {
    out: csv::Writer<W>,
    header: CsvHeader,
    /// The index of each property in the columns of the header.
    indices: HashMap<String, usize>,
}

impl<W: Write> CsvWriter<W> {
    pub(super) fn new(out: W, header: CsvHeader) -> io::Result<Self> {
        let out = WriterBuilder::new().buffer_capacity(BUFFER_BYTES).from_writer(out);
        let indices = header.columns.iter().cloned().zip(0..).collect();
        let mut writer = Self { out, header, indices };
        if writer.header.is_written {
            writer.write_header()?;
        }
        Ok(writer)
    }

    /// Cells of a property: its value, and its type if that is written.
    fn property_cells(&self) -> usize {
        match self.header.types {
            TypeAnnotations::Written => 2,
            TypeAnnotations::Omitted => 1,
        }
    }

    fn write_header(&mut self) -> io::Result<()> {
        let mut cells = vec![Cow::Borrowed("PartitionKey"), Cow::Borrowed("RowKey")];
        cells.extend(self.header.with_timestamp.then_some(Cow::Borrowed("Timestamp")));
        for name in &self.header.columns {
            cells.push(Cow::Borrowed(name));
            if self.header.types == TypeAnnotations::Written {
                cells.push(Cow::Owned(format!("{name}{TYPE_SUFFIX}")));
            }
        }
        self.out.write_record(cells.iter().map(|cell| cell.as_bytes())).map_err(broken)
    }

    pub(super) fn write(&mut self, entity: &Entity) -> io::Result<()> {
        let mut cells: Vec<Cow<'_, str>> =
            vec![entity.partition_key.as_str().into(), entity.row_key.as_str().into()];
        if self.header.with_timestamp {
            let at = entity.timestamp.as_ref().and_then(datetime::format);
            cells.push(at.unwrap_or_default().into());
        }
        let (fixed, width) = (cells.len(), self.property_cells());
        let all = self.header.columns.len().saturating_mul(width);
        cells.resize(fixed.saturating_add(all), "".into());
        for property in &entity.properties {
            let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) else {
                continue;
            };
            let column = self.indices.get(&property.name);
            let column = column.ok_or_else(|| no_column(entity, &property.name))?;
            let at = fixed.saturating_add(column.saturating_mul(width));
            let mut cells = cells.iter_mut().skip(at).take(width);
            if let Some(value) = cells.next() {
                *value = edm::format_value(kind).map_err(io::Error::other)?;
            }
            if let Some(edm) = cells.next() {
                *edm = EdmType::of(kind).name().into();
            }
        }
        self.out.write_record(cells.iter().map(|cell| cell.as_bytes())).map_err(broken)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn no_column(entity: &Entity, property: &str) -> io::Error {
    io::Error::other(format!(
        "property has no column, the table changed during the export: property=`{property}`, \
         partition_key=`{}`, row_key=`{}`; repeat the export",
        entity.partition_key, entity.row_key
    ))
}
