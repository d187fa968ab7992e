//! A record of an unsealed batch, as filters and clients see it.

use std::borrow::Cow;

use trestle_proto::wire::{
    MalformedMessage, MessageReader, put_bytes, put_field, put_fixed64, put_varint,
};

use super::{
    ATTRIBUTES, RESOURCE, RecordFields, RecordView, any_value_ref, entries_of, find_entry,
    temporality_name,
};
use crate::{
    batch::BatchRow,
    row::{RowFields, ValueRef},
};

/// A row of a batch with its fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnsealedRow<'a> {
    row: BatchRow<'a>,
    record: RecordView<'a>,
}

impl<'a> UnsealedRow<'a> {
    /// # Errors
    /// A record that is malformed.
    pub(crate) fn parse(row: BatchRow<'a>) -> Result<Self, MalformedMessage> {
        Ok(Self { row, record: RecordView::parse(row.record)? })
    }

    /// The encoded `Record` that a read returns: with its effective time, resource, scope and sequence.
    ///
    /// # Errors
    /// A record that is malformed.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn encode(&self, fields: RecordFields) -> Result<bytes::Bytes, MalformedMessage> {
        let parts = [self.encode_own(fields)?, self.encode_origin(fields)?];
        Ok(parts.concat().into())
    }

    /// The part of it that the record does not share: all but the resource and the scope.
    ///
    /// # Errors
    /// A record that is malformed.
    pub(crate) fn encode_own(&self, fields: RecordFields) -> Result<Vec<u8>, MalformedMessage> {
        let (record, row) = (self.record.encoded, &self.row);
        let mut out = Vec::with_capacity(record.len() + 32);
        if fields.has(1) {
            put_fixed64(&mut out, 1, row.time);
        }
        let mut reader = MessageReader::new(record);
        while let Some((number, value)) = reader.next_field()? {
            // Fields that the contract lacks are not in segments either.
            if !fields.has(number) || !matches!(number, 2 | 3 | 5..=12 | 16 | 20..=23) {
                continue;
            }
            put_field(&mut out, number, value);
        }
        if fields.has(19) && row.sequence != 0 {
            put_varint(&mut out, 19, row.sequence);
        }
        Ok(out)
    }

    /// The resource and the scope of it, which the records of a group share.
    ///
    /// # Errors
    /// A resource that is malformed.
    pub(crate) fn encode_origin(&self, fields: RecordFields) -> Result<Vec<u8>, MalformedMessage> {
        let BatchRow { resource, scope, .. } = self.row;
        let mut out = Vec::new();
        if fields.has(RESOURCE) {
            for entry in entries_of(resource, 1) {
                put_bytes(&mut out, RESOURCE, entry?);
            }
        }
        if fields.has(18) && has_content(scope)? {
            put_bytes(&mut out, 18, scope);
        }
        Ok(out)
    }
}

/// Whether a scope has a field that is not empty. Segments have no other scope.
fn has_content(scope: &[u8]) -> Result<bool, MalformedMessage> {
    let mut fields = MessageReader::new(scope);
    while let Some((number, value)) = fields.next_field()? {
        let has_content = match number {
            1 | 2 => !value.bytes()?.is_empty(),
            3 => true,
            #[expect(clippy::cast_possible_truncation, reason = "as protobuf reads a uint32")]
            4 => value.varint()? as u32 != 0,
            _ => false,
        };
        if has_content {
            return Ok(true);
        }
    }
    Ok(false)
}

impl RowFields for UnsealedRow<'_> {
    fn time(&self) -> u64 {
        self.row.time
    }

    fn sequence(&self) -> u64 {
        self.row.sequence
    }

    fn severity(&self) -> i32 {
        self.record.severity
    }

    fn severity_text(&self) -> &str {
        self.record.severity_text
    }

    fn body(&self) -> Option<&str> {
        match any_value_ref(self.record.body?)? {
            ValueRef::Str(Cow::Borrowed(text)) => Some(text),
            _ => None,
        }
    }

    fn event_name(&self) -> &str {
        self.record.event_name
    }

    fn value(&self) -> Option<f64> {
        self.record.value
    }

    fn temporality(&self) -> &str {
        temporality_name(self.record.temporality)
    }

    fn is_monotonic(&self) -> Option<bool> {
        self.record.is_monotonic
    }

    fn unit(&self) -> &str {
        self.record.unit
    }

    fn trace_id(&self) -> &[u8] {
        self.record.trace_id
    }

    fn span_id(&self) -> &[u8] {
        self.record.span_id
    }

    fn attribute(&self, key: &str) -> Option<ValueRef<'_>> {
        find_entry(self.record.encoded, ATTRIBUTES, key).and_then(any_value_ref)
    }

    fn resource(&self, key: &str) -> Option<ValueRef<'_>> {
        find_entry(self.row.resource, 1, key).and_then(any_value_ref)
    }

    fn scope_name(&self) -> Cow<'_, str> {
        let mut fields = MessageReader::new(self.row.scope);
        while let Ok(Some((number, value))) = fields.next_field() {
            if number == 1 {
                return Cow::Borrowed(value.text().unwrap_or_default());
            }
        }
        Cow::Borrowed("")
    }
}
