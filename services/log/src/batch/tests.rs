mod expansion;
mod formats;
mod logs;
mod metrics;
mod repairs;
mod spans;

use bytes::Bytes;
use proptest::prelude::*;
use prost::Message as _;
use trestle_model::fault::{Fault, Reason};
use trestle_proto::{
    log::v1::{AppendRecordsRequest, Record},
    opentelemetry::proto::{
        common::v1::{AnyValue, ArrayValue, any_value::Value},
        logs::v1::{ResourceLogs, SeverityNumber},
        metrics::v1::ResourceMetrics,
        trace::v1::ResourceSpans,
    },
};

use super::{check::RecordChecker, *};
use crate::{
    record::{RecordFields, UnsealedRow},
    samples::{self, NOW},
};

const TIMES: RecordTimes = RecordTimes { received: NOW, latest: NOW, oldest: 0 };
const DAY: u64 = 86_400_000_000_000;

/// The batch of resources in one stream, of at most so many bytes, and what it leaves out.
fn batch_within<T: ResourceItems>(
    resources: &[Bytes],
    bytes_max: usize,
) -> (Option<EncodedBatch>, Rejected) {
    let room = BatchRoom { bytes: bytes_max, ..BatchRoom::default() };
    let exported = export_within::<T>(resources, room).unwrap();
    (only(exported.batches), exported.rejected)
}

/// The one batch that is expected at most.
fn only(mut batches: Vec<EncodedBatch>) -> Option<EncodedBatch> {
    assert!(batches.len() <= 1, "{}", batches.len());
    batches.pop()
}

/// What becomes of resources in one stream.
fn export_within<T: ResourceItems>(
    resources: &[Bytes],
    room: BatchRoom,
) -> Result<ExportedBatches, Fault> {
    let mut streams = resources_by_stream::<T>(resources, |_| "all".to_owned()).unwrap();
    batches_of_resources::<T>(&streams.remove("all").unwrap_or_default(), TIMES, room)
}

fn batch_of<T: ResourceItems>(resources: &[Bytes]) -> (Option<EncodedBatch>, Rejected) {
    batch_within::<T>(resources, BATCH_BYTES_MAX)
}

/// The encoded form of a message with its marked text replaced by bytes that are not UTF-8.
fn not_utf8(message: &impl prost::Message) -> Bytes {
    let encoded = message.encode_to_vec();
    encoded.iter().map(|byte| if *byte == b'~' { 0xFF } else { *byte }).collect()
}

fn read_any<T: ResourceItems>(bytes: &Bytes) {
    if let Ok(streams) = resources_by_stream::<T>(std::slice::from_ref(bytes), stream_of_resource) {
        let read = |it: &Vec<_>| drop(batches_of_resources::<T>(it, TIMES, BatchRoom::default()));
        streams.values().for_each(read);
    }
}

fn check(record: &Record) -> Result<u64, RecordError> {
    RecordChecker::new(TIMES).check(&record.encode_to_vec())
}

fn text(value: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(value.to_owned())) }
}

fn nested(depth: usize) -> AnyValue {
    (1..depth).fold(text("x"), |inner, _| AnyValue {
        value: Some(Value::ArrayValue(ArrayValue { values: vec![inner] })),
    })
}

/// The rules, on a decoded record.
fn keeps_rules(record: &Record) -> bool {
    fn depth(value: &AnyValue) -> usize {
        1 + match &value.value {
            Some(Value::ArrayValue(list)) => list.values.iter().map(depth).max().unwrap_or(0),
            Some(Value::KvlistValue(map)) => {
                let values = map.values.iter().filter_map(|entry| entry.value.as_ref());
                values.map(depth).max().unwrap_or(0)
            }
            _ => 0,
        }
    }
    fn is_unique(value: &AnyValue) -> bool {
        match &value.value {
            Some(Value::ArrayValue(list)) => list.values.iter().all(is_unique),
            Some(Value::KvlistValue(map)) => {
                let keys: std::collections::BTreeSet<_> =
                    map.values.iter().map(|entry| &entry.key).collect();
                let mut values = map.values.iter().filter_map(|entry| entry.value.as_ref());
                keys.len() == map.values.len() && values.all(is_unique)
            }
            _ => true,
        }
    }
    let time = match (record.time_unix_nano, record.observed_time_unix_nano) {
        (0, 0) => NOW,
        (0, observed) => observed,
        (time, _) => time,
    };
    let is_id =
        |id: &[u8], length| id.is_empty() || id.len() == length && id.iter().any(|byte| *byte != 0);
    (1..=NOW + DAY).contains(&time)
        && (0..=24).contains(&record.severity_number)
        && is_id(&record.trace_id, 16)
        && is_id(&record.span_id, 8)
        && record.attributes.len() <= 256
        && record.attributes.keys().all(|key| (1..=256).contains(&key.len()))
        && record
            .attributes
            .values()
            .chain(&record.body)
            .all(|value| depth(value) <= 16 && is_unique(value))
        && (0..=2).contains(&record.temporality)
        && record.resource.is_empty()
        && record.scope.is_none()
        && record.sequence == 0
}

#[test]
fn records_at_the_limits_are_accepted() {
    let many = |count| (0..count).map(|at| (format!("k{at}"), text(""))).collect();
    let accepted = [
        Record::default(),
        Record { severity_number: SeverityNumber::Fatal4.into(), ..Record::default() },
        Record { trace_id: vec![1; 16].into(), span_id: vec![1; 8].into(), ..Record::default() },
        Record { attributes: many(256), ..Record::default() },
        Record { attributes: [("k".repeat(256), text(""))].into(), ..Record::default() },
        Record { body: Some(nested(16)), ..Record::default() },
        Record { time_unix_nano: 1, ..Record::default() },
        Record { time_unix_nano: NOW + DAY, ..Record::default() },
        Record { value: Some(f64::NAN), ..Record::default() },
    ];
    for record in accepted {
        assert!(keeps_rules(&record), "{record:?}");
        let result = check(&record);
        assert!(result.is_ok(), "{record:?}: {result:?}");
    }
    let largest = RECORD_BYTES - 8;
    let record = Record { body: Some(text(&"x".repeat(largest))), ..Record::default() };
    assert_eq!(record.encoded_len(), RECORD_BYTES, "the largest one");
    assert!(check(&record).is_ok());
}

const RECORD_BYTES: usize = 1024 * 1024;

#[test]
fn records_beyond_the_limits_are_rejected_by_field() {
    let many = |count| (0..count).map(|at| (format!("k{at}"), text(""))).collect();
    let rejected = [
        (Record { severity_number: 25, ..Record::default() }, "severity_number"),
        (Record { severity_number: -1, ..Record::default() }, "severity_number"),
        (Record { trace_id: vec![1; 15].into(), ..Record::default() }, "trace_id"),
        (Record { trace_id: vec![0; 16].into(), ..Record::default() }, "trace_id"),
        (Record { span_id: vec![1; 9].into(), ..Record::default() }, "span_id"),
        (Record { attributes: many(257), ..Record::default() }, "attributes"),
        (
            Record { attributes: [(String::new(), text(""))].into(), ..Record::default() },
            "attributes",
        ),
        (
            Record { attributes: [("k".repeat(257), text(""))].into(), ..Record::default() },
            "attributes",
        ),
        (Record { body: Some(nested(17)), ..Record::default() }, "body"),
        (Record { resource: [("a".to_owned(), text(""))].into(), ..Record::default() }, "resource"),
        (Record { scope: Some(Default::default()), ..Record::default() }, "scope"),
        (Record { sequence: 1, ..Record::default() }, "sequence"),
        (Record { temporality: 3, ..Record::default() }, "temporality"),
    ];
    for (record, field) in rejected {
        let error = check(&record).expect_err(field);
        assert_eq!((error.reason, error.field.as_str()), (Reason::InvalidRecord, field));
    }
    let large = Record { body: Some(text(&"x".repeat(RECORD_BYTES))), ..Record::default() };
    assert_eq!(check(&large).expect_err("too large").reason, Reason::RecordTooLarge);
    let late = Record { time_unix_nano: NOW + DAY + 1, ..Record::default() };
    let error = check(&late).expect_err("in the future");
    assert_eq!(
        (error.reason, error.field.as_str()),
        (Reason::RecordTimeOutOfRange, "time_unix_nano")
    );
    let old = Record { observed_time_unix_nano: NOW - 11, ..Record::default() };
    let times = RecordTimes { oldest: NOW - 10, ..TIMES };
    let error = RecordChecker::new(times).check(&old.encode_to_vec()).map(|_| ());
    let error = error.expect_err("past the retention");
    assert_eq!(error.field, "observed_time_unix_nano");
}

#[test]
fn a_key_and_a_field_occur_once() {
    let attribute = samples::entry(("k".to_owned(), text("a"))).encode_to_vec();
    let mut twice = Vec::new();
    trestle_proto::wire::put_bytes(&mut twice, 6, &attribute);
    trestle_proto::wire::put_bytes(&mut twice, 6, &attribute);
    let error = RecordChecker::new(TIMES).check(&twice).expect_err("a key twice");
    assert_eq!(error.to_string(), "attributes: has a key twice: key=`k`");

    let mut twice = Vec::new();
    trestle_proto::wire::put_fixed64(&mut twice, 1, NOW);
    trestle_proto::wire::put_fixed64(&mut twice, 1, 0);
    let error = RecordChecker::new(TIMES).check(&twice).expect_err("a field twice");
    assert_eq!(error.field, "time_unix_nano");
}

#[test]
fn an_append_with_a_bad_record_names_it() {
    let bad = Record { trace_id: vec![1; 3].into(), ..Record::default() };
    let request = samples::append(&[Record::default(), bad], &Default::default(), None);

    let error = batch_of_append(&request, TIMES).expect_err("a bad record");

    assert_eq!(error.to_string(), "records[1].trace_id: has 3 bytes, not 16");
    let empty = AppendRecordsRequest::default();
    let error = batch_of_append(&empty, TIMES).expect_err("no record");
    assert_eq!((error.reason, error.field.as_str()), (Reason::OutOfRangeInput, "records"));
    let many = samples::append(&vec![Record::default(); 10_001], &Default::default(), None);
    assert!(batch_of_append(&many, TIMES).is_err());
    let many = samples::append(&vec![Record::default(); 10_000], &Default::default(), None);
    assert_eq!(batch_of_append(&many, TIMES).map(|batch| batch.records), Ok(10_000));
}

#[test]
fn a_bad_resource_or_scope_is_named() {
    let resource = [(String::new(), text(""))].into();
    let request = samples::append(&[Record::default()], &resource, None);
    let error = batch_of_append(&request, TIMES).expect_err("a bad resource");
    assert_eq!(error.field, "resource");

    let mut request = samples::append(&[Record::default()], &Default::default(), None);
    request.scope = Some(Bytes::from_static(b"\x0A\x01\xFF"));
    let error = batch_of_append(&request, TIMES).expect_err("a bad scope");
    assert_eq!(error.to_string(), "scope: text is not UTF-8");
}

#[test]
fn malformed_batches_are_errors() {
    let request = samples::append(&[Record::default()], &Default::default(), None);
    let batch = batch_of_append(&request, TIMES).unwrap();

    assert!(BatchView::parse(&[]).is_err());
    assert!(BatchView::parse(&[3]).is_err());
    assert!(BatchView::parse(batch.bytes.get(..5).unwrap()).is_err());
    let cut_off = batch.bytes.get(..batch.bytes.len() - 1).unwrap();
    assert!(BatchView::parse(cut_off).unwrap().rows(0).any(|row| row.is_err()));
}

/// Whether a field was rejected for its wire type.
fn is_wire_type(accepted: &Result<u64, RecordError>) -> bool {
    accepted.as_ref().is_err_and(|error| error.rule.starts_with("wire type"))
}

proptest! {
    #[test]
    fn a_batch_returns_its_records(
        records in proptest::collection::vec(samples::record(), 1..6),
        resource in samples::attributes(),
        scope in proptest::option::of(samples::scope()),
    ) {
        let request = samples::append(&records, &resource, scope.as_ref());
        let batch = batch_of_append(&request, TIMES).unwrap();
        let view = BatchView::parse(&batch.bytes).unwrap();

        let rows = view.rows(7).collect::<Result<Vec<_>, _>>().unwrap();

        prop_assert_eq!(rows.len(), records.len());
        prop_assert_eq!(rows.iter().map(|row| row.time).min(), Some(batch.min_time));
        prop_assert_eq!(rows.iter().map(|row| row.time).max(), Some(batch.max_time));
        for ((row, record), sequence) in rows.iter().zip(&records).zip(7..) {
            let expected = samples::returned(record, &resource, scope.as_ref(), sequence);
            prop_assert_eq!(row.time, expected.time_unix_nano);
            let read = UnsealedRow::parse(*row).unwrap().encode(RecordFields::ALL).unwrap();
            prop_assert_eq!(samples::canonical(&read), expected.encode_to_vec());
        }
    }

    #[test]
    fn mutated_records_are_accepted_only_if_they_decode_and_keep_the_rules(
        record in samples::record(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..3),
    ) {
        let mut encoded = record.encode_to_vec();
        for (at, byte) in changes {
            if !encoded.is_empty() {
                let at = at % encoded.len();
                encoded[at] = byte;
            }
        }
        let accepted = RecordChecker::new(TIMES).check(&encoded);

        match Record::decode(encoded.as_slice()) {
            Ok(decoded) if accepted.is_ok() => {
                prop_assert!(keeps_rules(&decoded), "{:?}", decoded);
            }
            // Of the same length: without unknown and repeated fields.
            // Prost reads the entry of a map whatever its wire type is.
            Ok(decoded) if decoded.encoded_len() == encoded.len() && !is_wire_type(&accepted) => {
                prop_assert!(!keeps_rules(&decoded), "{:?}: {:?}", accepted, decoded);
            }
            Ok(_) => {}
            Err(error) => prop_assert!(accepted.is_err(), "{error}"),
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = RecordChecker::new(TIMES).check(&bytes);
        let bytes = Bytes::from(bytes);
        read_any::<ResourceLogs>(&bytes);
        read_any::<ResourceMetrics>(&bytes);
        read_any::<ResourceSpans>(&bytes);
        if let Ok(view) = BatchView::parse(&bytes) {
            view.rows(0).for_each(drop);
        }
    }
}
