//! Items of exports that are decoded, metrics and spans. What is stored of an item is several records, all of them or
//! none.

use prost::Message;
use trestle_proto::opentelemetry::proto::common::v1::{AnyValue, KeyValue, any_value::Value};

use super::{
    RecordError, RecordTimes,
    check::RecordChecker,
    encode::{BATCH_BYTES_MAX, FRAME_BYTES_MAX},
    export::ExportEncoder,
};
use crate::{record::ATTRIBUTES, wire::put_bytes};

/// Decodes an item.
///
/// # Errors
/// An item that is malformed, such as by text that is not UTF-8.
pub(super) fn decoded<T: Message + Default>(item: &[u8]) -> Result<T, RecordError> {
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
        let mut item = ItemRecords { times: self.times, records: Vec::new(), bytes: 0 };
        write(&mut item)?;
        self.batch.push_all(&item.records)
    }
}

/// The records of one item, with their times.
pub(super) struct ItemRecords {
    times: RecordTimes,
    records: Vec<(u64, Vec<u8>)>,
    bytes: usize,
}

impl ItemRecords {
    /// Adds an encoded record.
    ///
    /// # Errors
    /// A rule that the record violates, or too many bytes: each record of an item may repeat its attributes.
    pub(super) fn push(&mut self, record: Vec<u8>) -> Result<(), RecordError> {
        self.bytes += record.len() + FRAME_BYTES_MAX;
        if self.bytes > BATCH_BYTES_MAX {
            let rule = format!("has records of over {BATCH_BYTES_MAX} bytes");
            return Err(RecordError::invalid("", rule));
        }
        let time = RecordChecker::new(self.times).check(&record)?;
        self.records.push((time, record));
        Ok(())
    }
}

/// Writes the attributes of a record. Those of the client have precedence over ours of the same key.
pub(super) fn put_attributes<'k>(
    out: &mut Vec<u8>,
    attributes: &[KeyValue],
    ours: impl IntoIterator<Item = (&'k str, Value)>,
) {
    for attribute in attributes {
        put_bytes(out, ATTRIBUTES, &attribute.encode_to_vec());
    }
    for (key, value) in ours {
        if attributes.iter().all(|attribute| attribute.key != key) {
            put_bytes(out, ATTRIBUTES, &entry(key, value).encode_to_vec());
        }
    }
}

/// A named value.
pub(super) fn entry(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}
