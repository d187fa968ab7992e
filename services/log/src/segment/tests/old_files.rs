//! Segments that older versions wrote: files without the columns of data points.

use trestle_proto::opentelemetry::proto::common::v1::{KeyValue, KeyValueList};

use super::*;

/// Of two log records, with the promoted attribute `host`.
const LOGS: &[u8] = include_bytes!("fixtures/logs.parquet");
/// Of two data points, ordered by series, with the same.
const POINTS: &[u8] = include_bytes!("fixtures/points.parquet");
/// 2026-11-25T08:00:00Z.
const TIME: u64 = 1_795_593_600_000_000_000;

fn file(bytes: &'static [u8]) -> WrittenSegment {
    let bytes = bytes::Bytes::from_static(bytes);
    let checksums = checksums::checksums_of(&bytes);
    let (min_time, max_time) = (TIME, TIME + 1_000_000_000);
    let (rows, min_sequence, max_sequence) = (2, 0, 1);
    WrittenSegment { bytes, checksums, rows, min_time, max_time, min_sequence, max_sequence }
}

fn value(kind: Value) -> AnyValue {
    AnyValue { value: Some(kind) }
}

fn text(text: &str) -> AnyValue {
    value(Value::StringValue(text.to_owned()))
}

fn host() -> PromotedColumn {
    let (key, kind) = ("host".to_owned(), PromotedType::String);
    PromotedColumn { key, kind, is_indexed: true, position: 0 }
}

fn resource() -> BTreeMap<String, AnyValue> {
    [("service.name".to_owned(), text("web"))].into()
}

fn logs() -> Vec<(u64, u64, Record)> {
    let scope = Some(InstrumentationScope { name: "s".to_owned(), ..Default::default() });
    let first = Record {
        time_unix_nano: TIME + 1,
        severity_number: 9,
        severity_text: "INFO".to_owned(),
        body: Some(text("log 0")),
        attributes: [("host".to_owned(), text("a")), ("n".to_owned(), value(Value::IntValue(0)))]
            .into(),
        trace_id: vec![7; 16].into(),
        flags: 1,
        resource: resource(),
        scope: scope.clone(),
        ..Record::default()
    };
    let list = [value(Value::IntValue(1)), value(Value::DoubleValue(2.5))];
    let list =
        value(Value::ArrayValue(trestle_proto::opentelemetry::proto::common::v1::ArrayValue {
            values: list.into(),
        }));
    let entry = KeyValue { key: "k".to_owned(), value: Some(list) };
    let second = Record {
        time_unix_nano: TIME + 1_000_000_000,
        body: Some(value(Value::KvlistValue(KeyValueList { values: vec![entry] }))),
        attributes: [
            ("host".to_owned(), value(Value::IntValue(7))),
            ("n".to_owned(), value(Value::IntValue(1))),
        ]
        .into(),
        dropped_attributes_count: 3,
        resource: resource(),
        scope,
        sequence: 1,
        ..Record::default()
    };
    [first, second].map(|record| (record.time_unix_nano, record.sequence, record)).into()
}

fn points() -> Vec<(u64, u64, Record)> {
    let point = |at: u64| Record {
        time_unix_nano: TIME + at * 1_000_000_000,
        event_name: "m".to_owned(),
        value: Some(at as f64 + 0.5),
        attributes: [("host".to_owned(), text("a")), ("unit".to_owned(), text("s"))].into(),
        resource: resource(),
        sequence: at,
        ..Record::default()
    };
    (0..2).map(|at| (TIME + at * 1_000_000_000, at, point(at))).collect()
}

#[test]
fn a_file_without_columns_of_data_points_is_read() {
    for (bytes, expected) in [(LOGS, logs()), (POINTS, points())] {
        let rows = block_on(rows_of(&file(bytes), all(0..u64::MAX, Direction::Forward)));
        assert!(same(&rows, &expected), "{expected:?}");
    }
}

#[test]
fn a_filter_finds_promoted_attributes_of_an_old_file_and_no_unit() {
    use crate::filter::LogFilter;

    for (filter, count) in [
        ("attributes/host eq 'a'", 2),
        ("attributes/unit eq 's' and value gt 1", 1),
        ("unit eq 's'", 0),
        ("temporality eq 'delta' or is_monotonic eq true", 0),
    ] {
        let predicate: Arc<dyn RowPredicate> = Arc::new(LogFilter::parse(filter).unwrap().unwrap());
        let read =
            SegmentRead { predicate: Some(predicate), ..all(0..u64::MAX, Direction::Forward) };
        let rows = block_on(rows_of(&file(POINTS), read));
        assert_eq!(rows.len(), count, "{filter}");
    }
}

#[test]
fn an_old_file_and_a_new_one_are_merged() {
    let mut expected = points();
    let new = Record {
        sequence: 2,
        time_unix_nano: TIME + 2_000_000_000,
        start_time_unix_nano: TIME,
        temporality: 1,
        is_monotonic: Some(false),
        unit: "s".to_owned(),
        ..points().remove(0).2
    };
    expected.push((new.time_unix_nano, 2, new.clone()));
    let appended = Record { resource: BTreeMap::new(), sequence: 0, ..new };
    let batch = SampleBatch { resource: resource(), ..SampleBatch::of(vec![appended]) };
    let schema = SegmentSchema::new(vec![host()]);
    let sealed = seal(&schema, &[batch], 2).remove(0);

    let rows = block_on(async {
        let mut readers = Vec::new();
        for segment in [file(POINTS), sealed] {
            readers.push(reader_of(&segment, SegmentRead::whole()).await);
        }
        let merged = merge_segments(readers, &schema).await.expect("merged");
        rows_of(&merged, all(0..u64::MAX, Direction::Forward)).await
    });

    assert!(same(&rows, &expected));
}
