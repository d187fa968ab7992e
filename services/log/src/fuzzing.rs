//! Bytes and texts that arrive from outside, for fuzz targets: each is read or rejected.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{ObjectStoreExt as _, path::Path};
use prost::Message as _;
use trestle_objects::ObjectArea;
use trestle_proto::{
    log::v1::AppendRecordsRequest,
    opentelemetry::proto::{
        logs::v1::ResourceLogs, metrics::v1::ResourceMetrics, trace::v1::ResourceSpans,
    },
};

use crate::{
    batch::{
        BatchRoom, BatchView, RecordTimes, ResourceItems, batch_of_append, batches_of_resources,
        resources_by_stream, stream_of_resource,
    },
    filter::LogFilter,
    json::{find_member, read_entries, read_scope},
    record::{RecordFields, UnsealedRow},
    segment::{
        ObjectSource, SegmentRead, SegmentReader, SegmentSchema, WrittenSegment, load_metadata,
        write_segments,
    },
};

/// When the bytes arrive, in nanoseconds since 1970.
pub const RECEIVED: u64 = 1_800_000_000_000_000_000;
const TIMES: RecordTimes = RecordTimes { received: RECEIVED, latest: RECEIVED, oldest: 0 };

/// The stored batches of encoded `ResourceLogs`, with their numbers of records. None where they are malformed.
#[must_use]
pub fn batches_of_logs(resource_logs: &[Vec<u8>]) -> Option<Vec<(Bytes, u32)>> {
    batches_of::<ResourceLogs>(resource_logs)
}

/// The same of encoded `ResourceMetrics`.
#[must_use]
pub fn batches_of_metrics(resource_metrics: &[Vec<u8>]) -> Option<Vec<(Bytes, u32)>> {
    batches_of::<ResourceMetrics>(resource_metrics)
}

/// The same of encoded `ResourceSpans`.
#[must_use]
pub fn batches_of_spans(resource_spans: &[Vec<u8>]) -> Option<Vec<(Bytes, u32)>> {
    batches_of::<ResourceSpans>(resource_spans)
}

fn batches_of<T: ResourceItems>(resources: &[Vec<u8>]) -> Option<Vec<(Bytes, u32)>> {
    let resources: Vec<_> = resources.iter().map(|it| Bytes::copy_from_slice(it)).collect();
    let streams = resources_by_stream::<T>(&resources, stream_of_resource).ok()?;
    let batches = |resources: &Vec<_>| {
        let exported = batches_of_resources::<T>(resources, TIMES, BatchRoom::default());
        exported.map(|exported| exported.batches).unwrap_or_default()
    };
    let batches = streams.values().flat_map(batches);
    Some(batches.map(|batch| (batch.bytes, batch.records)).collect())
}

/// The stored batch of an append of an encoded record, and of an encoded scope. None where it is rejected.
#[must_use]
pub fn batch_of_record(record: &[u8], scope: &[u8]) -> Option<Bytes> {
    let request = AppendRecordsRequest {
        records: vec![Bytes::copy_from_slice(record)],
        scope: Some(Bytes::copy_from_slice(scope)),
        ..AppendRecordsRequest::default()
    };
    batch_of_append(&request, TIMES).ok().map(|batch| batch.bytes)
}

/// The records of a stored batch, as reads return them before the seal.
///
/// # Errors
/// What is malformed.
pub fn unsealed_records(batch: &[u8]) -> Result<Vec<Bytes>, String> {
    let view = BatchView::parse(batch).map_err(|error| error.to_string())?;
    let rows = view.rows(0).map(|row| {
        let row = row.map_err(|error| error.to_string())?;
        let row = UnsealedRow::parse(row).map_err(|error| error.to_string())?;
        row.encode(RecordFields::ALL).map_err(|error| error.to_string())
    });
    rows.collect()
}

/// The objects of the segments of a stored batch, and the checksums of each.
///
/// # Errors
/// What is malformed.
pub fn segments(batch: &[u8]) -> Result<Vec<(Bytes, Bytes)>, String> {
    let view = BatchView::parse(batch).map_err(|error| error.to_string())?;
    let rows = view.rows(0).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let written = write_segments(&SegmentSchema::new(Vec::new()), rows);
    let written = written.map_err(|error| error.to_string())?;
    Ok(written
        .into_iter()
        .map(|WrittenSegment { bytes, checksums, .. }| (bytes, checksums))
        .collect())
}

/// The records of an object, as reads return them. The size and the checksums are those of the manifest.
///
/// # Errors
/// What is corrupt.
pub async fn sealed_records(
    object: Bytes,
    size: u64,
    checksums: Bytes,
) -> Result<Vec<Bytes>, String> {
    let area = ObjectArea::in_memory();
    let put = area.store.put(&Path::from("1"), object.into()).await;
    put.map_err(|error| error.to_string())?;
    let source = Arc::new(ObjectSource::new(area, "1".to_owned(), size, checksums));
    let metadata = load_metadata(&*source).await.map_err(|error| error.to_string())?;
    let read = SegmentRead { fields: RecordFields::ALL, ..SegmentRead::whole() };
    let mut reader = SegmentReader::new(source, metadata, read);
    let mut records = Vec::new();
    while let Some(row) = reader.next_row().await.map_err(|error| error.to_string())? {
        records.push(row.record);
    }
    Ok(records)
}

/// The canonical text of a filter of records, none for the empty one; or the position and the text of its error.
///
/// # Errors
/// Why it is rejected.
pub fn canonical_filter(text: &str) -> Result<Option<String>, (usize, String)> {
    match LogFilter::parse(text) {
        Ok(filter) => Ok(filter.map(|filter| filter.to_string())),
        Err(error) => Err((error.position, error.to_string())),
    }
}

/// Reads the JSON of a column. Returns whether it is well-formed.
#[must_use]
pub fn reads_json(json: &str, key: &str) -> bool {
    let _ = find_member(json, key);
    let scope = read_scope(json, &mut Vec::new()).is_ok();
    let mut entries = Vec::new();
    let is_read = read_entries(json, 1, &mut entries).is_ok();
    // What was read is a message.
    let list = trestle_proto::opentelemetry::proto::common::v1::KeyValueList::decode(&*entries);
    is_read && list.is_ok() || scope
}
