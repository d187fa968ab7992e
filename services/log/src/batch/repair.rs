//! Encoded records, resources and scopes without what violates a rule: what is invalid and optional is left out alone
//! and counted, and the rest is kept. The checker decides what needs a repair, and checks the result again.

use std::{borrow::Cow, collections::BTreeMap};

use trestle_proto::{
    opentelemetry::proto::common::v1::KeyValue,
    wire::{
        FieldValue, MalformedMessage, MessageReader, put_bytes, put_field, put_message, put_varint,
    },
};

use super::{
    RecordError, RecordTimes,
    check::{OriginKind, RecordChecker, SEVERITY_MAX, check_id_bytes},
    rules::{
        ATTRIBUTE_KEY_BYTES_MAX, ATTRIBUTES_MAX, FRAME_BYTES_MAX, ORIGIN_BYTES_MAX, SPAN_ID_BYTES,
        TRACE_ID_BYTES, VALUE_DEPTH_MAX,
    },
};
use crate::record::{ATTRIBUTES, TEMPORALITY_MAX, entries_of, split_entry, value_of};

/// The number of the dropped attributes in a record.
const DROPPED: u32 = 7;

/// What a repair may leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leniency {
    /// Of a key that is there twice all values but the last.
    RepeatedKeys,
    /// That, and every other part that is optional and invalid.
    InvalidParts,
}

/// A record that keeps every rule.
pub(super) struct AdmittedRecord<'r> {
    /// The record as it arrived, or repaired.
    pub(super) record: Cow<'r, [u8]>,
    /// Its effective time.
    pub(super) time: u64,
}

/// The record without the parts that `leniency` allows to leave out. `left_out` values of its resource are counted in
/// it.
///
/// # Errors
/// A rule that the record still violates.
pub(super) fn admit_record<'r>(
    checker: &mut RecordChecker<'r>,
    record: &'r [u8],
    leniency: Leniency,
    left_out: u64,
) -> Result<AdmittedRecord<'r>, RecordError> {
    let violated = match checker.check(record) {
        Ok(time) if left_out == 0 => {
            return Ok(AdmittedRecord { record: Cow::Borrowed(record), time });
        }
        checked => checked.err(),
    };
    let repaired = repair_record(record, leniency, left_out);
    let repaired = repaired
        .map_err(|malformed| violated.unwrap_or_else(|| RecordError::malformed("", malformed)))?;
    let time = RecordChecker::new(checker.times()).check(&repaired)?;
    Ok(AdmittedRecord { record: Cow::Owned(repaired), time })
}

/// The same of a record that was made of an item.
///
/// # Errors
/// A rule that the record still violates.
pub(super) fn admit_owned(
    times: RecordTimes,
    record: Vec<u8>,
    leniency: Leniency,
    left_out: u64,
) -> Result<AdmittedRecord<'static>, RecordError> {
    let admitted = admit_record(&mut RecordChecker::new(times), &record, leniency, left_out)?;
    let (time, repaired) = match admitted {
        AdmittedRecord { record: Cow::Borrowed(_), time } => (time, None),
        AdmittedRecord { record: Cow::Owned(repaired), time } => (time, Some(repaired)),
    };
    Ok(AdmittedRecord { record: Cow::Owned(repaired.unwrap_or(record)), time })
}

/// A resource or a scope that keeps every rule.
pub(super) struct AdmittedOrigin<'r> {
    /// The message as it arrived, or repaired.
    pub(super) message: Cow<'r, [u8]>,
    /// How many values were left out.
    pub(super) left_out: u64,
}

/// The resource or scope without the parts that `leniency` allows to leave out.
///
/// # Errors
/// A rule that it still violates.
pub(super) fn admit_origin<'r>(
    checker: &mut RecordChecker<'r>,
    origin: OriginKind,
    message: &'r [u8],
    leniency: Leniency,
) -> Result<AdmittedOrigin<'r>, RecordError> {
    let Err(violated) = checker.check_origin(origin, message) else {
        return Ok(AdmittedOrigin { message: Cow::Borrowed(message), left_out: 0 });
    };
    let Ok((repaired, left_out)) = repair_origin(origin, message, leniency) else {
        return Err(violated);
    };
    RecordChecker::new(checker.times()).check_origin(origin, &repaired)?;
    Ok(AdmittedOrigin { message: Cow::Owned(repaired), left_out })
}

fn repair_record(
    record: &[u8],
    leniency: Leniency,
    left_out: u64,
) -> Result<Vec<u8>, MalformedMessage> {
    let mut repair = Repair { leniency, left_out };
    let (mut entries, mut dropped) = (UniqueEntries::default(), 0_u64);
    let mut fields: Vec<(u32, FieldValue<'_>)> = Vec::new();
    let mut reader = MessageReader::new(record);
    while let Some((number, value)) = reader.next_field()? {
        match number {
            ATTRIBUTES => repair.add_attribute(&mut entries, value.bytes()?)?,
            DROPPED => dropped = value.varint()?,
            _ if leniency == Leniency::RepeatedKeys => fields.push((number, value)),
            // Of a field that is there twice protobuf reads the last.
            1..=3 | 5 | 8..=12 | 16 | 20..=23 => {
                fields.retain(|(other, _)| *other != number);
                if repair.is_valid(number, value)? {
                    fields.push((number, value));
                }
            }
            _ => {}
        }
    }
    let mut out = Vec::with_capacity(record.len());
    for (number, value) in fields {
        match number {
            5 => put_message(&mut out, 5, |out| {
                repair.put_value(out, value.bytes()?, VALUE_DEPTH_MAX)
            })?,
            _ => put_field(&mut out, number, value),
        }
    }
    for (key, value) in entries.entries {
        repair.put_entry(&mut out, ATTRIBUTES, (key, value), VALUE_DEPTH_MAX)?;
    }
    put_dropped(&mut out, DROPPED, dropped, repair.left_out);
    Ok(out)
}

/// The repaired message, and how many values it lacks.
fn repair_origin(
    origin: OriginKind,
    message: &[u8],
    leniency: Leniency,
) -> Result<(Vec<u8>, u64), MalformedMessage> {
    let mut repair = Repair { leniency, left_out: 0 };
    let (texts, attributes, dropped_number) = origin.fields();
    let (mut entries, mut dropped) = (UniqueEntries::default(), 0_u64);
    let mut out = Vec::with_capacity(message.len().min(ORIGIN_BYTES_MAX));
    let mut found: BTreeMap<u32, &str> = BTreeMap::new();
    let mut fields = MessageReader::new(message);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            text if texts.contains(&text) => drop(found.insert(text, value.text()?)),
            _ if number == attributes => repair.add_attribute(&mut entries, value.bytes()?)?,
            _ if number == dropped_number => dropped = value.varint()?,
            _ => {}
        }
    }
    for (number, text) in found {
        repair.put_bounded(&mut out, |_, out| {
            put_bytes(out, number, text.as_bytes());
            Ok(())
        })?;
    }
    for (key, value) in entries.entries {
        repair.put_bounded(&mut out, |repair, out| {
            repair.put_entry(out, attributes, (key, value), VALUE_DEPTH_MAX)
        })?;
    }
    put_dropped(&mut out, dropped_number, dropped, repair.left_out);
    Ok((out, repair.left_out))
}

fn put_dropped(out: &mut Vec<u8>, number: u32, dropped: u64, left_out: u64) {
    let dropped = dropped.saturating_add(left_out).min(u32::MAX.into());
    if dropped > 0 {
        put_varint(out, number, dropped);
    }
}

/// The entries of a list without those that are invalid, and how many these are.
pub(super) fn repair_entries(entries: &[KeyValue]) -> (Vec<KeyValue>, u64) {
    let mut repair = Repair { leniency: Leniency::InvalidParts, left_out: 0 };
    let mut unique = UniqueEntries::default();
    entries.iter().for_each(|entry| repair.add_valid(&mut unique, &entry.key, entry));
    (unique.entries.into_iter().map(|(_, entry)| entry.clone()).collect(), repair.left_out)
}

/// Entries with unique keys: of a key that is there twice, the last value at the place of the first.
struct UniqueEntries<'a, V = &'a [u8]> {
    entries: Vec<(&'a str, V)>,
    places: BTreeMap<&'a str, usize>,
}

impl<V> Default for UniqueEntries<'_, V> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: BTreeMap::new() }
    }
}

impl<'a, V> UniqueEntries<'a, V> {
    /// Replaces the value of a key that is there; returns the value where it is not.
    fn replace(&mut self, key: &str, value: V) -> Option<V> {
        match self.places.get(key).and_then(|place| self.entries.get_mut(*place)) {
            Some(entry) => {
                entry.1 = value;
                None
            }
            None => Some(value),
        }
    }

    fn push(&mut self, key: &'a str, value: V) {
        self.places.insert(key, self.entries.len());
        self.entries.push((key, value));
    }
}

/// Counts what is left out.
struct Repair {
    leniency: Leniency,
    left_out: u64,
}

impl Repair {
    fn add_attribute<'a>(
        &mut self,
        entries: &mut UniqueEntries<'a>,
        entry: &'a [u8],
    ) -> Result<(), MalformedMessage> {
        let (key, value) = split_entry(entry)?;
        self.add_valid(entries, key, value);
        Ok(())
    }

    fn add_valid<'a, V>(&mut self, entries: &mut UniqueEntries<'a, V>, key: &'a str, value: V) {
        let is_valid = self.leniency == Leniency::RepeatedKeys
            || (1..=ATTRIBUTE_KEY_BYTES_MAX).contains(&key.len())
                && (entries.entries.len() < ATTRIBUTES_MAX || entries.places.contains_key(key));
        match is_valid.then(|| entries.replace(key, value)) {
            Some(Some(value)) => entries.push(key, value),
            Some(None) | None => self.left_out += 1,
        }
    }

    /// Whether a field keeps its rule. An invalid id is an absent one, as OTLP has it; others are counted.
    fn is_valid(&mut self, number: u32, value: FieldValue<'_>) -> Result<bool, MalformedMessage> {
        let is_valid = match number {
            2 => value.varint()? <= SEVERITY_MAX,
            21 => value.varint()? <= TEMPORALITY_MAX,
            9 => return Ok(check_id_bytes("", value.bytes()?, TRACE_ID_BYTES).is_ok()),
            10 => return Ok(check_id_bytes("", value.bytes()?, SPAN_ID_BYTES).is_ok()),
            _ => true,
        };
        self.left_out += u64::from(!is_valid);
        Ok(is_valid)
    }

    fn put_entry(
        &mut self,
        out: &mut Vec<u8>,
        number: u32,
        (key, value): (&str, &[u8]),
        depth: usize,
    ) -> Result<(), MalformedMessage> {
        put_message(out, number, |out| {
            if !key.is_empty() {
                put_bytes(out, 1, key.as_bytes());
            }
            if value.is_empty() || !self.has_level(depth)? {
                return Ok(());
            }
            put_message(out, 2, |out| self.put_value(out, value, depth))
        })
    }

    /// Whether a value may have another level; one that has not is left out.
    fn has_level(&mut self, depth: usize) -> Result<bool, MalformedMessage> {
        let has_level = depth > 0;
        self.left_out += u64::from(!has_level);
        if !has_level && self.leniency == Leniency::RepeatedKeys {
            return Err(MalformedMessage("value is nested too deep"));
        }
        Ok(has_level)
    }

    /// Writes the content of an `AnyValue` of at most `depth` levels, without what is deeper.
    fn put_value(
        &mut self,
        out: &mut Vec<u8>,
        any_value: &[u8],
        depth: usize,
    ) -> Result<(), MalformedMessage> {
        let inner = depth.saturating_sub(1);
        match value_of(any_value)? {
            None => Ok(()),
            Some((5, list)) => put_message(out, 5, |out| {
                for value in entries_of(list.bytes()?, 1) {
                    let value = value?;
                    if self.has_level(inner)? {
                        put_message(out, 1, |out| self.put_value(out, value, inner))?;
                    }
                }
                Ok(())
            }),
            Some((6, map)) => {
                let mut entries = UniqueEntries::default();
                for entry in entries_of(map.bytes()?, 1) {
                    let (key, value) = split_entry(entry?)?;
                    match entries.replace(key, value) {
                        None => self.left_out += 1,
                        Some(value) => entries.push(key, value),
                    }
                }
                put_message(out, 6, |out| {
                    let mut entries = entries.entries.into_iter();
                    entries.try_for_each(|entry| self.put_entry(out, 1, entry, inner))
                })
            }
            Some((number, value)) => {
                put_field(out, number, value);
                Ok(())
            }
        }
    }

    /// Writes a part of a resource or a scope, unless it has no room for it.
    fn put_bounded(
        &mut self,
        out: &mut Vec<u8>,
        put: impl FnOnce(&mut Self, &mut Vec<u8>) -> Result<(), MalformedMessage>,
    ) -> Result<(), MalformedMessage> {
        let start = out.len();
        put(self, out)?;
        let is_bounded = self.leniency == Leniency::InvalidParts;
        if is_bounded && out.len() > ORIGIN_BYTES_MAX - FRAME_BYTES_MAX {
            out.truncate(start);
            self.left_out += 1;
        }
        Ok(())
    }
}
