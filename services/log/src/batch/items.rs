//! Batches of exports that arrive decoded, of metrics and of spans. What is stored of an item is several records, all
//! of them or none.

use std::collections::BTreeMap;

use prost::Message;
use trestle_proto::opentelemetry::proto::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
};

use super::{
    EncodedBatch, RecordError, RecordTimes, Rejected,
    check::{OriginKind, RecordChecker},
    encode::{BATCH_BYTES_MAX, BatchEncoder, FRAME_BYTES_MAX},
};
use crate::{record::ATTRIBUTES, wire::put_bytes};

/// The items of one resource: a message such as `ResourceMetrics`.
pub(crate) trait ResourceItems {
    /// A metric or a span.
    type Item;

    fn resource(&self) -> Option<&Resource>;
    /// The items of each scope.
    fn scopes(&self) -> impl Iterator<Item = (Option<&InstrumentationScope>, &[Self::Item])>;
    /// How many are rejected where their scope is: data points or spans.
    fn count(items: &[Self::Item]) -> u64;
    /// Adds the records of the items of a scope.
    fn add(items: &[Self::Item], encoder: &mut ItemEncoder);
}

/// Distributes items to streams; `stream_of` names that of an encoded `Resource`.
pub(crate) fn items_by_stream<T: ResourceItems>(
    resources: Vec<T>,
    stream_of: impl Fn(&[u8]) -> String,
) -> BTreeMap<String, Vec<T>> {
    let mut streams = BTreeMap::<_, Vec<_>>::new();
    for of_resource in resources {
        // A resource without items creates no stream.
        if of_resource.scopes().any(|(_, items)| T::count(items) > 0) {
            let stream = stream_of(&encoded(of_resource.resource()));
            streams.entry(stream).or_default().push(of_resource);
        }
    }
    streams
}

/// The batch of the items of one stream, of at most so many bytes, and which data points or spans it leaves out.
pub(crate) fn batch_of_items<T: ResourceItems>(
    resources: &[T],
    times: RecordTimes,
    bytes_max: usize,
) -> (Option<EncodedBatch>, Rejected) {
    let batch = BatchEncoder::new(times.received, bytes_max);
    let mut encoder = ItemEncoder { times, batch, rejected: Rejected::default() };
    for of_resource in resources {
        let resource = encoded(of_resource.resource());
        encoder.batch.begin_resource(&resource);
        for (scope, items) in of_resource.scopes() {
            let scope = encoded(scope);
            if let Err((at, error)) = check_origins(times, &resource, &scope) {
                encoder.rejected.add(T::count(items), at, &error);
                continue;
            }
            encoder.batch.begin_group(&scope);
            T::add(items, &mut encoder);
        }
    }
    (encoder.batch.finish(), encoder.rejected)
}

fn encoded(message: Option<&impl Message>) -> Vec<u8> {
    message.map(Message::encode_to_vec).unwrap_or_default()
}

fn check_origins(
    times: RecordTimes,
    resource: &[u8],
    scope: &[u8],
) -> Result<(), (&'static str, RecordError)> {
    let mut checker = RecordChecker::new(times);
    let checked = checker.check_origin(OriginKind::Resource, resource);
    checked.map_err(|error| ("resource", error))?;
    let checked = checker.check_origin(OriginKind::Scope, scope);
    checked.map_err(|error| ("scope", error))
}

/// A batch of items, and which of them it leaves out.
pub(crate) struct ItemEncoder {
    times: RecordTimes,
    batch: BatchEncoder,
    rejected: Rejected,
}

impl ItemEncoder {
    /// Adds the records that `write` makes of an item, all or none; `at` is where the item is.
    pub(super) fn add(
        &mut self,
        at: impl FnOnce() -> String,
        write: impl FnOnce(&mut ItemRecords) -> Result<(), RecordError>,
    ) {
        let mut item = ItemRecords { times: self.times, records: Vec::new(), bytes: 0 };
        let added = write(&mut item).and_then(|()| self.batch.push_all(&item.records));
        if let Err(error) = added {
            self.rejected.add(1, &at(), &error);
        }
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
