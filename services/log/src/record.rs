//! An encoded record, and what it has in its fields.

mod fields;
mod temporality;
#[cfg(test)]
mod tests;
mod unsealed;

use std::borrow::Cow;

pub(crate) use fields::RecordFields;
pub(crate) use temporality::{TEMPORALITY_MAX, temporality_name, temporality_number};
pub(crate) use unsealed::UnsealedRow;

use trestle_proto::wire::{FieldValue, MalformedMessage, MessageReader};

use crate::row::ValueRef;

/// The fields of an encoded record, borrowed from it. Attributes are read where they are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordView<'a> {
    pub(crate) time: u64,
    pub(crate) observed_time: u64,
    pub(crate) severity: i32,
    pub(crate) severity_text: &'a str,
    /// The encoded `AnyValue`.
    pub(crate) body: Option<&'a [u8]>,
    pub(crate) dropped_attributes_count: u32,
    pub(crate) flags: u32,
    pub(crate) trace_id: &'a [u8],
    pub(crate) span_id: &'a [u8],
    pub(crate) event_name: &'a str,
    pub(crate) value: Option<f64>,
    pub(crate) start_time: u64,
    pub(crate) temporality: u64,
    pub(crate) is_monotonic: Option<bool>,
    pub(crate) unit: &'a str,
    /// The encoded scope, of a record that was read.
    pub(crate) scope: &'a [u8],
    /// The whole record.
    pub(crate) encoded: &'a [u8],
}

impl<'a> RecordView<'a> {
    /// # Errors
    /// A record that is malformed.
    pub(crate) fn parse(encoded: &'a [u8]) -> Result<Self, MalformedMessage> {
        let mut view = Self { encoded, ..Self::default() };
        let mut fields = MessageReader::new(encoded);
        while let Some((number, value)) = fields.next_field()? {
            match number {
                1 => view.time = value.fixed64()?,
                2 => view.severity = value.varint()?.try_into().unwrap_or_default(),
                3 => view.severity_text = value.text()?,
                5 => view.body = Some(value.bytes()?),
                #[expect(clippy::cast_possible_truncation, reason = "as protobuf reads a uint32")]
                7 => view.dropped_attributes_count = value.varint()? as u32,
                8 => view.flags = value.fixed32()?,
                9 => view.trace_id = value.bytes()?,
                10 => view.span_id = value.bytes()?,
                11 => view.observed_time = value.fixed64()?,
                12 => view.event_name = value.text()?,
                16 => view.value = Some(f64::from_bits(value.fixed64()?)),
                18 => view.scope = value.bytes()?,
                20 => view.start_time = value.fixed64()?,
                21 => view.temporality = value.varint()?,
                22 => view.is_monotonic = Some(value.varint()? != 0),
                23 => view.unit = value.text()?,
                _ => {}
            }
        }
        Ok(view)
    }

    /// The encoded entries of the attributes.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = Result<&'a [u8], MalformedMessage>> {
        entries_of(self.encoded, ATTRIBUTES)
    }
}

/// The number of the attributes in a record.
pub(crate) const ATTRIBUTES: u32 = 6;
/// The number of the resource in a record that is returned.
pub(crate) const RESOURCE: u32 = 17;

/// The encoded `KeyValue` messages that are the fields `number` of a message.
pub(crate) fn entries_of(
    message: &[u8],
    number: u32,
) -> impl Iterator<Item = Result<&[u8], MalformedMessage>> {
    MessageReader::new(message).fields().filter_map(move |field| match field {
        Ok((found, value)) if found == number => Some(value.bytes()),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

/// The key and the encoded value of a `KeyValue`. An absent value is an empty one.
pub(crate) fn split_entry(entry: &[u8]) -> Result<(&str, &[u8]), MalformedMessage> {
    let (mut key, mut any_value): (&str, &[u8]) = ("", &[]);
    let mut fields = MessageReader::new(entry);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            1 => key = value.text()?,
            2 => any_value = value.bytes()?,
            _ => {}
        }
    }
    Ok((key, any_value))
}

/// The encoded value of the entry of a key among the fields `number`; none where the message is malformed before it.
pub(crate) fn find_entry<'a>(message: &'a [u8], number: u32, key: &str) -> Option<&'a [u8]> {
    let mut entries = entries_of(message, number).map_while(Result::ok);
    entries.find_map(|entry| {
        let (found, value) = split_entry(entry).ok()?;
        (found == key).then_some(value)
    })
}

/// The field of an `AnyValue` that is set.
pub(crate) fn value_of(
    any_value: &[u8],
) -> Result<Option<(u32, FieldValue<'_>)>, MalformedMessage> {
    let mut fields = MessageReader::new(any_value);
    let mut found = None;
    while let Some((number, value)) = fields.next_field()? {
        if (1..=7).contains(&number) {
            found = Some((number, value));
        }
    }
    Ok(found)
}

/// What a filter sees of an encoded `AnyValue`.
pub(crate) fn any_value_ref(any_value: &[u8]) -> Option<ValueRef<'_>> {
    match value_of(any_value).ok()?? {
        (1, value) => value.text().ok().map(|text| ValueRef::Str(Cow::Borrowed(text))),
        (2, value) => value.varint().ok().map(|value| ValueRef::Bool(value != 0)),
        (3, value) => value.varint().ok().map(|value| ValueRef::Int(value.cast_signed())),
        (4, value) => value.fixed64().ok().map(|bits| ValueRef::Double(f64::from_bits(bits))),
        (7, value) => value.bytes().ok().map(|bytes| ValueRef::Bytes(Cow::Borrowed(bytes))),
        _ => None,
    }
}
