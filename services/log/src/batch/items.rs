//! Items of exports that are decoded, metrics and spans. What is stored of an item is several records, all of them or
//! none.

use std::collections::{BTreeMap, BTreeSet};

use prost::{Message, Name};
use trestle_model::fault::Reason;
use trestle_proto::{
    PARTS_MAX, are_too_many,
    opentelemetry::proto::common::v1::{AnyValue, KeyValue, any_value::Value},
    wire::put_bytes,
};

use super::{
    RecordError, RecordTimes,
    encode::BATCH_BYTES_MAX,
    export::ExportEncoder,
    repair::{AdmittedRecord, Leniency, admit_owned},
    rules::FRAME_BYTES_MAX,
};
use crate::record::ATTRIBUTES;

/// Decodes an item.
///
/// # Errors
/// An item that is malformed, such as by text that is not UTF-8, or has too many parts: it would take many times its
/// bytes.
pub(super) fn decoded<T: Message + Name + Default>(item: &[u8]) -> Result<T, RecordError> {
    if are_too_many::<T>(item) {
        let rule = format!(
            "has over {PARTS_MAX} elements in its repeated fields, or many fields that are unknown or there twice"
        );
        return Err(RecordError {
            reason: Reason::RecordTooLarge,
            ..RecordError::invalid("", rule)
        });
    }
    T::decode(item).map_err(|error| {
        let text = error.to_string();
        // The library begins its texts with what follows from the place of the item.
        let rule = text.trim_start_matches("failed to decode Protobuf message: ");
        RecordError::invalid("", rule)
    })
}

impl ExportEncoder<'_> {
    /// Adds the records that `write` makes of an item, or of a data point: all or none.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn add_records(
        &mut self,
        write: impl FnOnce(&mut ItemRecords) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let (times, left_out) = (self.times, self.left_out);
        let mut item = ItemRecords { times, left_out, records: Vec::new(), bytes: 0 };
        write(&mut item)?;
        self.batch.add_all(&item.records)
    }
}

/// The records of one item.
pub(super) struct ItemRecords {
    times: RecordTimes,
    left_out: u64,
    records: Vec<AdmittedRecord<'static>>,
    bytes: usize,
}

impl ItemRecords {
    /// The record without what is invalid and optional in it.
    ///
    /// # Errors
    /// A rule that the record violates.
    pub(super) fn admit(&self, record: Vec<u8>) -> Result<AdmittedRecord<'static>, RecordError> {
        admit_owned(self.times, record, Leniency::InvalidParts, self.left_out)
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Too many bytes: each record of an item may repeat its attributes.
    pub(super) fn push(&mut self, admitted: AdmittedRecord<'static>) -> Result<(), RecordError> {
        self.bytes += admitted.record.len() + FRAME_BYTES_MAX;
        if self.bytes > BATCH_BYTES_MAX {
            let rule = format!("has records of over {BATCH_BYTES_MAX} bytes");
            return Err(RecordError {
                reason: Reason::RecordTooLarge,
                ..RecordError::invalid("", rule)
            });
        }
        self.records.push(admitted);
        Ok(())
    }
}

/// What precedes a key of the client that is one of ours, as Prometheus has it.
const EXPORTED: &str = "exported_";

/// Writes the attributes of a record, ours first: what is past the limit is left out. A key of the client that is
/// `reserved` for ours is `exported_KEY`.
pub(super) fn put_attributes<'k>(
    out: &mut Vec<u8>,
    attributes: &[KeyValue],
    reserved: &[&str],
    ours: impl IntoIterator<Item = (&'k str, Value)>,
) {
    for (key, value) in ours {
        put_bytes(out, ATTRIBUTES, &entry(key, value).encode_to_vec());
    }
    // A point may have a reserved key a million times.
    let mut exported: BTreeMap<&str, String> = BTreeMap::new();
    for attribute in attributes {
        let key = attribute.key.as_str();
        let encoded = match reserved.contains(&key) {
            false => attribute.encode_to_vec(),
            true => {
                let name = exported.entry(key);
                let name = name.or_insert_with(|| exported_key(key, attributes, reserved));
                KeyValue { key: name.clone(), ..attribute.clone() }.encode_to_vec()
            }
        };
        put_bytes(out, ATTRIBUTES, &encoded);
    }
}

/// The key under which a client's attribute with a reserved key is stored: one that no other has.
fn exported_key(key: &str, attributes: &[KeyValue], reserved: &[&str]) -> String {
    let others = attributes.iter().map(|other| other.key.as_str());
    let others: BTreeSet<_> = others.filter(|other| other.starts_with(EXPORTED)).collect();
    let mut name = format!("{EXPORTED}{key}");
    while reserved.contains(&name.as_str()) || others.contains(name.as_str()) {
        name.insert_str(0, EXPORTED);
    }
    name
}

/// A named value.
pub(super) fn entry(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}
