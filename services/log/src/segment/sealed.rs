//! Rows of a segment as encoded records.

use std::{collections::HashMap, ops::Range};

use bytes::Bytes;
use foldhash::fast::FixedState;
use trestle_proto::wire::{put_bytes, put_fixed32, put_fixed64, put_message, put_varint};

use super::{row::SegmentRow, source::CorruptSegment};
use crate::{
    json::{MalformedJson, read_entries, read_scope},
    record::{ATTRIBUTES, RESOURCE, RecordFields, temporality_number},
    row::{RowFields as _, ValueRef},
};

/// Most bytes that are reserved before the size of records is known.
const RESERVED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A record of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedRow {
    /// The effective time, in nanoseconds since 1970.
    pub(crate) time: u64,
    /// The position in the stream.
    pub(crate) sequence: u64,
    /// The encoded `Record` with the requested fields.
    pub(crate) record: Bytes,
}

/// Encodes rows. Resources and scopes have few values, each of which is transcoded once.
#[derive(Default)]
pub(super) struct RowEncoder<'c> {
    out: Vec<u8>,
    rows: Vec<(u64, u64, Range<usize>)>,
    origins: HashMap<(u32, &'c str), Vec<u8>, FixedState>,
}

impl<'c> RowEncoder<'c> {
    /// For so many rows, which have about so many bytes each.
    pub(super) fn with_capacity(rows: usize, row_bytes: usize) -> Self {
        let out = Vec::with_capacity(rows.saturating_mul(row_bytes).min(RESERVED_BYTES_MAX));
        Self { out, rows: Vec::with_capacity(rows), ..Self::default() }
    }

    /// Adds a row.
    pub(super) fn push(
        &mut self,
        row: SegmentRow<'c>,
        fields: RecordFields,
    ) -> Result<(), CorruptSegment> {
        let start = self.out.len();
        put_plain(&mut self.out, row, fields);
        put_point(&mut self.out, row, fields);
        if fields.has(ATTRIBUTES) {
            put_attributes(&mut self.out, row)?;
        }
        let columns = row.columns;
        if fields.has(RESOURCE)
            && let Some(json) = row.text(columns.resource.as_ref())
        {
            self.put_origin(RESOURCE, json, |out| read_entries(json, RESOURCE, out))?;
        }
        if fields.has(18)
            && let Some(json) = row.text(columns.scope.as_ref())
        {
            self.put_origin(18, json, |out| put_message(out, 18, |out| read_scope(json, out)))?;
        }
        if fields.has(19) && row.sequence() != 0 {
            put_varint(&mut self.out, 19, row.sequence());
        }
        self.rows.push((row.time(), row.sequence(), start..self.out.len()));
        Ok(())
    }

    fn put_origin(
        &mut self,
        number: u32,
        json: &'c str,
        read: impl FnOnce(&mut Vec<u8>) -> Result<(), MalformedJson>,
    ) -> Result<(), MalformedJson> {
        if let Some(encoded) = self.origins.get(&(number, json)) {
            self.out.extend_from_slice(encoded);
            return Ok(());
        }
        let mut encoded = Vec::new();
        read(&mut encoded)?;
        self.out.extend_from_slice(&encoded);
        self.origins.insert((number, json), encoded);
        Ok(())
    }

    /// The rows, which share one buffer.
    pub(super) fn finish(self) -> Vec<SealedRow> {
        let out = Bytes::from(self.out);
        let rows = self.rows.into_iter();
        rows.map(|(time, sequence, range)| SealedRow { time, sequence, record: out.slice(range) })
            .collect()
    }
}

/// Writes the fields that are not made of JSON.
fn put_plain(out: &mut Vec<u8>, row: SegmentRow<'_>, fields: RecordFields) {
    let columns = row.columns;
    if fields.has(1) {
        put_fixed64(out, 1, row.time());
    }
    if fields.has(2) && row.severity() != 0 {
        put_varint(out, 2, i64::from(row.severity()).cast_unsigned());
    }
    let texts = [(3, &columns.severity_text), (12, &columns.event_name)];
    for (number, column) in texts {
        if fields.has(number)
            && let Some(text) = row.text(column.as_ref())
        {
            put_bytes(out, number, text.as_bytes());
        }
    }
    if fields.has(5) {
        put_body(out, row);
    }
    #[expect(clippy::cast_possible_truncation, reason = "was 32 bits before")]
    let unsigned = |column| row.int64(column).map(|value: i64| value.cast_unsigned() as u32);
    if fields.has(7)
        && let Some(dropped) = unsigned(columns.dropped.as_ref())
    {
        put_varint(out, 7, dropped.into());
    }
    if fields.has(8)
        && let Some(flags) = unsigned(columns.flags.as_ref())
    {
        put_fixed32(out, 8, flags);
    }
    for (number, id) in [(9, row.trace_id()), (10, row.span_id())] {
        if fields.has(number) && !id.is_empty() {
            put_bytes(out, number, id);
        }
    }
    if fields.has(11)
        && let Some(observed) = row.int64(columns.observed_time.as_ref())
    {
        put_fixed64(out, 11, observed.cast_unsigned());
    }
}

/// Writes the fields of data points.
fn put_point(out: &mut Vec<u8>, row: SegmentRow<'_>, fields: RecordFields) {
    if fields.has(16)
        && let Some(value) = row.value()
    {
        put_fixed64(out, 16, value.to_bits());
    }
    if fields.has(20)
        && let Some(start) = row.int64(row.columns.start_time.as_ref())
    {
        put_fixed64(out, 20, start.cast_unsigned());
    }
    let temporality = temporality_number(row.temporality());
    if fields.has(21) && temporality != 0 {
        put_varint(out, 21, temporality);
    }
    if fields.has(22)
        && let Some(is_monotonic) = row.is_monotonic()
    {
        put_varint(out, 22, is_monotonic.into());
    }
    if fields.has(23) && !row.unit().is_empty() {
        put_bytes(out, 23, row.unit().as_bytes());
    }
}

fn put_body(out: &mut Vec<u8>, row: SegmentRow<'_>) {
    let columns = row.columns;
    if let Some(text) = row.text(columns.body.as_ref()) {
        put_value(out, 5, &ValueRef::Str(text.into()));
        return;
    }
    let values = columns.body_value.as_ref();
    if let Some(values) = values.filter(|values| arrow_array::Array::is_valid(*values, row.index)) {
        put_bytes(out, 5, values.value(row.index));
    }
}

fn put_attributes(out: &mut Vec<u8>, row: SegmentRow<'_>) -> Result<(), MalformedJson> {
    for (key, value) in row.promoted() {
        let put: Result<(), MalformedJson> = put_message(out, ATTRIBUTES, |out| {
            put_bytes(out, 1, key.as_bytes());
            put_value(out, 2, &value);
            Ok(())
        });
        put?;
    }
    match row.text(row.columns.attributes.as_ref()) {
        Some(json) => read_entries(json, ATTRIBUTES, out),
        None => Ok(()),
    }
}

/// Writes an `AnyValue`.
fn put_value(out: &mut Vec<u8>, number: u32, value: &ValueRef<'_>) {
    let put: Result<(), std::convert::Infallible> = put_message(out, number, |out| {
        match value {
            ValueRef::Str(text) => put_bytes(out, 1, text.as_bytes()),
            ValueRef::Bool(value) => put_varint(out, 2, (*value).into()),
            ValueRef::Int(value) => put_varint(out, 3, value.cast_unsigned()),
            ValueRef::Double(value) => put_fixed64(out, 4, value.to_bits()),
            ValueRef::Bytes(bytes) => put_bytes(out, 7, bytes),
        }
        Ok(())
    });
    match put {
        Ok(()) => {}
    }
}
