//! Encoded records to columns.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    ArrayRef, RecordBatch,
    builder::{
        BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, Float64Builder, Int32Builder,
        Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
    },
};
use arrow_schema::ArrowError;
use foldhash::fast::FixedState;
use trestle_proto::wire::MalformedMessage;

use super::{
    schema::{PromotedType, SegmentSchema, UTC},
    write_error::WriteSegmentError,
};
use crate::{
    batch::BatchRow,
    json::{write_entry, write_object, write_scope},
    record::{RESOURCE, RecordView, entries_of, split_entry, temporality_name, value_of},
};

/// Nanoseconds of a microsecond.
pub(super) const MICROSECOND: u64 = 1_000;

/// The column of a promoted attribute while it is built.
enum PromotedBuilder {
    String(StringBuilder),
    Int64(Int64Builder),
    Double(Float64Builder),
    Bool(BooleanBuilder),
}

/// Builds the columns of some rows.
pub(super) struct ColumnBuilders {
    schema: SegmentSchema,
    time: TimestampMicrosecondBuilder,
    time_ns: Int32Builder,
    observed_time: Int64Builder,
    sequence: Int64Builder,
    severity_number: Int32Builder,
    severity_text: StringBuilder,
    event_name: StringBuilder,
    body: StringBuilder,
    body_value: BinaryBuilder,
    attributes: StringBuilder,
    resource: StringBuilder,
    scope: StringBuilder,
    trace_id: FixedSizeBinaryBuilder,
    span_id: FixedSizeBinaryBuilder,
    flags: Int64Builder,
    dropped: Int64Builder,
    value: Float64Builder,
    start_time: Int64Builder,
    temporality: StringBuilder,
    is_monotonic: BooleanBuilder,
    unit: StringBuilder,
    promoted: Vec<PromotedBuilder>,
    origins: OriginTexts,
    json: String,
    bytes: usize,
}

/// JSON of the resources and scopes of the rows so far: few, and each with many rows.
#[derive(Default)]
struct OriginTexts {
    resources: HashMap<Vec<u8>, String, FixedState>,
    scopes: HashMap<Vec<u8>, String, FixedState>,
}

/// Most texts that are kept. One more, and all are forgotten.
const ORIGIN_TEXTS_MAX: usize = 1_024;

impl ColumnBuilders {
    pub(super) fn new(schema: &SegmentSchema) -> Self {
        let promoted = schema.promoted.iter().map(|column| match column.kind {
            PromotedType::String => PromotedBuilder::String(StringBuilder::new()),
            PromotedType::Int64 => PromotedBuilder::Int64(Int64Builder::new()),
            PromotedType::Double => PromotedBuilder::Double(Float64Builder::new()),
            PromotedType::Bool => PromotedBuilder::Bool(BooleanBuilder::new()),
        });
        Self {
            time: TimestampMicrosecondBuilder::new().with_timezone(UTC),
            time_ns: Int32Builder::new(),
            observed_time: Int64Builder::new(),
            sequence: Int64Builder::new(),
            severity_number: Int32Builder::new(),
            severity_text: StringBuilder::new(),
            event_name: StringBuilder::new(),
            body: StringBuilder::new(),
            body_value: BinaryBuilder::new(),
            attributes: StringBuilder::new(),
            resource: StringBuilder::new(),
            scope: StringBuilder::new(),
            trace_id: FixedSizeBinaryBuilder::new(16),
            span_id: FixedSizeBinaryBuilder::new(8),
            flags: Int64Builder::new(),
            dropped: Int64Builder::new(),
            value: Float64Builder::new(),
            start_time: Int64Builder::new(),
            temporality: StringBuilder::new(),
            is_monotonic: BooleanBuilder::new(),
            unit: StringBuilder::new(),
            promoted: promoted.collect(),
            origins: OriginTexts::default(),
            json: String::new(),
            bytes: 0,
            schema: schema.clone(),
        }
    }

    /// Number of rows so far.
    pub(super) fn rows(&self) -> usize {
        arrow_array::builder::ArrayBuilder::len(&self.sequence)
    }

    /// Bytes of their records and origins.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A record that is malformed. The builders are of no use then.
    pub(super) fn push(&mut self, row: &BatchRow<'_>) -> Result<(), WriteSegmentError> {
        let record = RecordView::parse(row.record)?;
        let micros = i64::try_from(row.time / MICROSECOND).unwrap_or(i64::MAX);
        self.time.append_value(micros);
        self.time_ns.append_value((row.time % MICROSECOND).try_into().unwrap_or_default());
        let observed = record.observed_time;
        self.observed_time.append_option((observed != 0).then_some(observed.cast_signed()));
        self.sequence.append_value(row.sequence.cast_signed());
        self.severity_number.append_option((record.severity != 0).then_some(record.severity));
        append_text(&mut self.severity_text, record.severity_text);
        append_text(&mut self.event_name, record.event_name);
        self.push_body(record.body)?;
        self.push_attributes(&record)?;
        self.push_origin(row, &record)?;
        append_id(&mut self.trace_id, record.trace_id)?;
        append_id(&mut self.span_id, record.span_id)?;
        self.flags.append_option((record.flags != 0).then_some(record.flags.into()));
        let dropped = record.dropped_attributes_count;
        self.dropped.append_option((dropped != 0).then_some(dropped.into()));
        self.push_point(&record);
        self.bytes += row.record.len() + row.resource.len() + row.scope.len();
        Ok(())
    }

    fn push_point(&mut self, record: &RecordView<'_>) {
        self.value.append_option(record.value);
        let start = record.start_time;
        self.start_time.append_option((start != 0).then_some(start.cast_signed()));
        append_text(&mut self.temporality, temporality_name(record.temporality));
        self.is_monotonic.append_option(record.is_monotonic);
        append_text(&mut self.unit, record.unit);
    }

    fn push_body(&mut self, body: Option<&[u8]>) -> Result<(), MalformedMessage> {
        let text = match body.map(value_of).transpose()?.flatten() {
            Some((1, text)) => Some(text.text()?),
            _ => None,
        };
        self.body.append_option(text);
        self.body_value.append_option(body.filter(|_| text.is_none()));
        Ok(())
    }

    fn push_attributes(&mut self, record: &RecordView<'_>) -> Result<(), MalformedMessage> {
        self.json.clear();
        self.json.push('{');
        let promoted = &self.schema.promoted;
        let mut is_set = 0_u32;
        for entry in record.attributes() {
            let (key, value) = split_entry(entry?)?;
            let column = promoted.iter().position(|column| column.key == key);
            let is_promoted = match column.and_then(|at| self.promoted.get_mut(at)) {
                Some(builder) => builder.append(value)?,
                None => false,
            };
            match column {
                Some(at) if is_promoted => is_set |= 1 << (at & 31),
                _ => write_entry(&mut self.json, 1, key, value)?,
            }
        }
        for (at, builder) in self.promoted.iter_mut().enumerate() {
            if is_set & (1 << (at & 31)) == 0 {
                builder.append_null();
            }
        }
        self.json.push('}');
        self.attributes.append_option(Some(self.json.as_str()).filter(|json| json.len() > 2));
        Ok(())
    }

    fn push_origin(
        &mut self,
        row: &BatchRow<'_>,
        record: &RecordView<'_>,
    ) -> Result<(), MalformedMessage> {
        let OriginTexts { resources, scopes } = &mut self.origins;
        if row.resource.is_empty() {
            // A record that was read has its resource in itself.
            self.json.clear();
            write_object(&mut self.json, entries_of(row.record, RESOURCE))?;
            append_object(&mut self.resource, &self.json);
        } else {
            let write = |json: &mut String| write_object(json, entries_of(row.resource, 1));
            append_object(&mut self.resource, cached(resources, row.resource, write)?);
        }
        let scope = if row.scope.is_empty() { record.scope } else { row.scope };
        let write = |json: &mut String| write_scope(json, scope);
        append_object(&mut self.scope, cached(scopes, scope, write)?);
        Ok(())
    }

    /// The columns of the rows so far, which are removed.
    ///
    /// # Errors
    /// Columns that do not match the schema.
    pub(super) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.time.finish()),
            Arc::new(self.time_ns.finish()),
            Arc::new(self.observed_time.finish()),
            Arc::new(self.sequence.finish()),
            Arc::new(self.severity_number.finish()),
            Arc::new(self.severity_text.finish()),
            Arc::new(self.event_name.finish()),
            Arc::new(self.body.finish()),
            Arc::new(self.body_value.finish()),
            Arc::new(self.attributes.finish()),
            Arc::new(self.resource.finish()),
            Arc::new(self.scope.finish()),
            Arc::new(self.trace_id.finish()),
            Arc::new(self.span_id.finish()),
            Arc::new(self.flags.finish()),
            Arc::new(self.dropped.finish()),
            Arc::new(self.value.finish()),
            Arc::new(self.start_time.finish()),
            Arc::new(self.temporality.finish()),
            Arc::new(self.is_monotonic.finish()),
            Arc::new(self.unit.finish()),
        ];
        columns.extend(self.promoted.iter_mut().map(PromotedBuilder::finish));
        self.bytes = 0;
        RecordBatch::try_new(Arc::clone(&self.schema.arrow), columns)
    }
}

impl PromotedBuilder {
    /// Adds the encoded value; does not where it has another type.
    fn append(&mut self, any_value: &[u8]) -> Result<bool, MalformedMessage> {
        match (self, value_of(any_value)?) {
            (Self::String(builder), Some((1, value))) => builder.append_value(value.text()?),
            (Self::Bool(builder), Some((2, value))) => builder.append_value(value.varint()? != 0),
            (Self::Int64(builder), Some((3, value))) => {
                builder.append_value(value.varint()?.cast_signed());
            }
            (Self::Double(builder), Some((4, value))) => {
                builder.append_value(f64::from_bits(value.fixed64()?));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn append_null(&mut self) {
        match self {
            Self::String(builder) => builder.append_null(),
            Self::Int64(builder) => builder.append_null(),
            Self::Double(builder) => builder.append_null(),
            Self::Bool(builder) => builder.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::String(builder) => Arc::new(builder.finish()),
            Self::Int64(builder) => Arc::new(builder.finish()),
            Self::Double(builder) => Arc::new(builder.finish()),
            Self::Bool(builder) => Arc::new(builder.finish()),
        }
    }
}

fn append_text(builder: &mut StringBuilder, text: &str) {
    builder.append_option(Some(text).filter(|text| !text.is_empty()));
}

fn append_object(builder: &mut StringBuilder, json: &str) {
    builder.append_option(Some(json).filter(|json| json.len() > 2));
}

fn append_id(builder: &mut FixedSizeBinaryBuilder, id: &[u8]) -> Result<(), ArrowError> {
    if id.is_empty() {
        builder.append_null();
        return Ok(());
    }
    builder.append_value(id)
}

/// The JSON of an encoded resource or scope.
fn cached<'c>(
    texts: &'c mut HashMap<Vec<u8>, String, FixedState>,
    encoded: &[u8],
    write: impl FnOnce(&mut String) -> Result<(), MalformedMessage>,
) -> Result<&'c str, MalformedMessage> {
    if !texts.contains_key(encoded) {
        if texts.len() == ORIGIN_TEXTS_MAX {
            texts.clear();
        }
        let mut json = String::new();
        write(&mut json)?;
        texts.insert(encoded.to_vec(), json);
    }
    Ok(texts.get(encoded).map(String::as_str).unwrap_or_default())
}
