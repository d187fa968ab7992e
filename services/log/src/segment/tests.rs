use std::{collections::BTreeMap, ops::Range, sync::Arc};

use object_store::{ObjectStoreExt as _, path::Path};
use proptest::{collection, option, prelude::*};
use trestle_kv::Direction;
use trestle_objects::ObjectArea;
use trestle_proto::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{AnyValue, InstrumentationScope, any_value::Value},
};

use super::{schema::SegmentSizes, source::SegmentSource as _, *};
use crate::{
    batch::{BatchView, EncodedBatch, RecordTimes, batch_of_append},
    record::{RecordFields, UnsealedRow},
    row::{Property, RequiredEquality, RowFields, RowPredicate, ValueRef},
    samples::{self, NOW},
};

mod damage;
mod filters;
mod old_files;
mod series;

/// Records with one origin, as they are appended.
const TIMES: RecordTimes = RecordTimes { received: NOW, latest: NOW, oldest: 0 };

#[derive(Debug, Clone)]
struct SampleBatch {
    records: Vec<Record>,
    resource: BTreeMap<String, AnyValue>,
    scope: Option<InstrumentationScope>,
}

impl SampleBatch {
    fn of(records: Vec<Record>) -> Self {
        Self { records, resource: BTreeMap::new(), scope: None }
    }

    fn batch(&self) -> EncodedBatch {
        let request = samples::append(&self.records, &self.resource, self.scope.as_ref());
        batch_of_append(&request, TIMES).expect("good records")
    }
}

fn appended() -> impl Strategy<Value = SampleBatch> {
    let records = collection::vec(samples::record(), 1..8);
    (records, samples::attributes(), option::of(samples::scope()))
        .prop_map(|(records, resource, scope)| SampleBatch { records, resource, scope })
}

fn promoted() -> Vec<PromotedColumn> {
    let kinds = [
        ("a", PromotedType::String),
        ("b", PromotedType::Int64),
        ("c", PromotedType::Double),
        ("aa", PromotedType::Bool),
        ("$bytes", PromotedType::String),
    ];
    let column = |(position, (key, kind)): (u16, (&str, PromotedType))| PromotedColumn {
        key: key.to_owned(),
        kind,
        is_indexed: position < 2,
        position,
    };
    (0..).zip(kinds).map(column).collect()
}

/// Sizes of which few rows have several row groups and many pages.
const SIZES: SegmentSizes = SegmentSizes { group_rows: 4_096, page_rows: 1_024, first_rows: 100 };

fn small_parts(schema: SegmentSchema) -> SegmentSchema {
    SegmentSchema { sizes: SIZES, ..schema }
}

/// The segments of appends, whose sequences follow each other from `first`.
fn seal(schema: &SegmentSchema, appends: &[SampleBatch], first: u64) -> Vec<WrittenSegment> {
    let batches: Vec<_> = appends.iter().map(SampleBatch::batch).collect();
    let mut sequence = first;
    let mut rows = Vec::new();
    for batch in &batches {
        let view = BatchView::parse(&batch.bytes).expect("a batch");
        rows.extend(view.rows(sequence).map(|row| row.expect("a row")));
        sequence += u64::from(batch.records);
    }
    write_segments(schema, rows).expect("segments")
}

/// What reads return of appends: time, sequence and record, in order.
fn expected(appends: &[SampleBatch], first: u64) -> Vec<(u64, u64, Record)> {
    let records =
        appends.iter().flat_map(|append| append.records.iter().map(move |record| (record, append)));
    let mut rows: Vec<_> = (first..)
        .zip(records)
        .map(|(sequence, (record, append))| {
            let (resource, scope) = (&append.resource, append.scope.as_ref());
            let record = samples::returned(record, resource, scope, sequence);
            (record.time_unix_nano, sequence, record)
        })
        .collect();
    rows.sort_by_key(|(time, sequence, _)| (*time, *sequence));
    rows
}

/// A segment in memory, at `path`.
async fn stored(area: &ObjectArea, path: &str, segment: &WrittenSegment) -> Arc<ObjectSource> {
    area.store.put(&Path::from(path), segment.bytes.clone().into()).await.expect("written");
    let size = segment.bytes.len() as u64;
    let checksums = segment.checksums.clone();
    Arc::new(ObjectSource::new(area.clone(), path.to_owned(), size, checksums))
}

async fn reader_of(segment: &WrittenSegment, read: SegmentRead) -> SegmentReader {
    let source = stored(&ObjectArea::in_memory(), "1.parquet", segment).await;
    SegmentReader::new(Arc::clone(&source) as _, metadata_of(&source).await, read)
}

/// The metadata of a segment, which is read in small chunks.
async fn metadata_of(source: &ObjectSource) -> metadata::CachedMetadata {
    let mut metadata = load_metadata(source).await.expect("metadata");
    metadata.schema = Arc::new(small_parts((*metadata.schema).clone()));
    metadata
}

async fn rows_of(segment: &WrittenSegment, read: SegmentRead) -> Vec<SealedRow> {
    let mut reader = reader_of(segment, read).await;
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row().await.expect("a row") {
        rows.push(row);
    }
    rows
}

fn all(window: Range<u64>, direction: Direction) -> SegmentRead {
    SegmentRead { window, direction, fields: RecordFields::ALL, predicate: None }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// Whether rows are those records, in the same order.
fn same(rows: &[SealedRow], records: &[(u64, u64, Record)]) -> bool {
    use prost::Message as _;
    rows.len() == records.len()
        && rows.iter().zip(records).all(|(row, (time, sequence, record))| {
            (row.time, row.sequence) == (*time, *sequence)
                && samples::canonical(&row.record) == record.encode_to_vec()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn segments_return_the_records_of_their_day(
        appends in collection::vec(appended(), 1..4),
        has_columns in any::<bool>(),
    ) {
        let schema = SegmentSchema::new(if has_columns { promoted() } else { Vec::new() });
        let segments = seal(&schema, &appends, 5);

        let rows = block_on(async {
            let mut rows = Vec::new();
            for segment in &segments {
                let found = rows_of(segment, all(0..u64::MAX, Direction::Forward)).await;
                let times = found.iter().map(|row| row.time);
                assert_eq!(times.clone().min(), Some(segment.min_time));
                assert_eq!(times.max(), Some(segment.max_time));
                let sequences = found.iter().map(|row| row.sequence);
                assert_eq!(sequences.clone().min(), Some(segment.min_sequence));
                assert_eq!(sequences.max(), Some(segment.max_sequence));
                assert_eq!(segment.rows, found.len() as u64);
                assert_eq!(day_of(segment.min_time), day_of(segment.max_time));
                rows.extend(found);
            }
            rows
        });

        prop_assert!(same(&rows, &expected(&appends, 5)));
    }

    #[test]
    fn a_window_returns_what_a_scan_would(
        appends in collection::vec(appended(), 1..4),
        bounds in (NOW - 50_010..NOW + 10, NOW - 50_010..NOW + 10),
        is_backward in any::<bool>(),
    ) {
        let (start, end) = (bounds.0.min(bounds.1), bounds.0.max(bounds.1));
        let direction = if is_backward { Direction::Backward } else { Direction::Forward };
        let mut expected = expected(&appends, 0);
        expected.retain(|(time, _, _)| (start..end).contains(time));
        let segments = seal(&SegmentSchema::new(promoted()), &appends, 0);
        let mut rows = block_on(async {
            let mut rows = Vec::new();
            for segment in &segments {
                rows.push(rows_of(segment, all(start..end, direction)).await);
            }
            rows
        });
        if is_backward {
            expected.reverse();
            rows.reverse();
        }

        prop_assert!(same(&rows.concat(), &expected));
    }

    #[test]
    fn merged_segments_have_the_rows_of_all(
        appends in collection::vec(appended(), 2..5),
        had_columns in any::<bool>(),
    ) {
        let old = SegmentSchema::new(if had_columns { promoted() } else { Vec::new() });
        let new = SegmentSchema::new(promoted().split_off(1));
        // Those of the same day: times before it are of another one.
        let mut appends = appends;
        for record in appends.iter_mut().flat_map(|append| &mut append.records) {
            record.time_unix_nano = record.time_unix_nano.max(NOW - 50_000);
        }
        let mut first = 0;
        let mut segments = Vec::new();
        for append in &appends {
            segments.extend(seal(&old, std::slice::from_ref(append), first));
            first += append.records.len() as u64;
        }

        let rows = block_on(async {
            let mut readers = Vec::new();
            for segment in &segments {
                readers.push(reader_of(segment, SegmentRead::whole()).await);
            }
            let merged = merge_segments(readers, &new).await.expect("merged");
            rows_of(&merged, all(0..u64::MAX, Direction::Forward)).await
        });

        prop_assert!(same(&rows, &expected(&appends, 0)));
    }
}

/// Records a second apart, of a few services.
fn many(count: u64) -> Vec<Record> {
    let text = |text: String| AnyValue { value: Some(Value::StringValue(text)) };
    let record = |at: u64| Record {
        time_unix_nano: NOW - (count - at) * 100_000,
        severity_number: if at.is_multiple_of(100) { 17 } else { 9 },
        body: Some(text(format!("request {at} took {} ms", at * 7 % 1_000))),
        attributes: BTreeMap::from([
            ("a".to_owned(), text(format!("host-{}", at % 10))),
            ("b".to_owned(), AnyValue { value: Some(Value::IntValue((at % 1_000) as i64)) }),
            ("path".to_owned(), text(format!("/items/{at}"))),
        ]),
        trace_id: u128::from(at + 1).to_be_bytes().to_vec().into(),
        ..Record::default()
    };
    (0..count).map(record).collect()
}

/// How many rows: more than a row group.
const LARGE_ROWS: u64 = 5_000;

/// A segment of two row groups and several pages.
fn large() -> (WrittenSegment, Vec<(u64, u64, Record)>) {
    large_of(&many(LARGE_ROWS))
}

fn large_of(records: &[Record]) -> (WrittenSegment, Vec<(u64, u64, Record)>) {
    let appends: Vec<_> =
        records.chunks(1_700).map(|records| SampleBatch::of(records.to_vec())).collect();
    let mut segments = seal(&small_parts(SegmentSchema::new(promoted())), &appends, 0);
    assert_eq!(segments.len(), 1);
    (segments.remove(0), expected(&appends, 0))
}

#[test]
fn a_large_segment_has_row_groups_and_pages() {
    let (segment, _) = large();
    let (groups, pages) = block_on(async {
        let source = stored(&ObjectArea::in_memory(), "1.parquet", &segment).await;
        let metadata = metadata_of(&source).await;
        let parquet = metadata.parquet();
        let pages = |group| {
            let index = parquet.page_index_for_row_group(group);
            index.offset_index(schema::column::TIME).unwrap().page_locations().len()
        };
        (parquet.num_row_groups(), (0..parquet.num_row_groups()).map(pages).collect::<Vec<_>>())
    });
    assert_eq!((groups, pages), (2, vec![4, 1]));
}

#[test]
fn reads_of_many_pages_are_complete_in_both_directions() {
    let (segment, mut expected) = large();
    let rows = block_on(rows_of(&segment, all(0..u64::MAX, Direction::Forward)));
    assert!(same(&rows, &expected), "all, forward");

    // From the second page of the first group into the second group.
    let window = expected[1_101].0..expected[4_901].0;
    let rows = block_on(rows_of(&segment, all(window.clone(), Direction::Forward)));
    assert!(same(&rows, &expected[1_101..4_901]), "a window, forward");

    let rows = block_on(rows_of(&segment, all(window, Direction::Backward)));
    expected.reverse();
    assert!(same(&rows, &expected[99..3_899]), "a window, backward");
}

#[test]
fn windows_at_the_bounds_of_pages_and_row_groups_are_exact() {
    let (segment, expected) = large();
    block_on(async {
        for at in [0, 1, 99, 100, 1_023, 1_024, 1_025, 2_048, 4_095, 4_096, 4_097, 4_998] {
            for (first, last) in [(at, at + 1), (at, at + 2)] {
                let window = expected[first].0..expected.get(last).map_or(u64::MAX, |it| it.0);
                let rows = rows_of(&segment, all(window.clone(), Direction::Forward)).await;
                assert!(same(&rows, &expected[first..last]), "{first} to {last}, forward");
                let mut rows = rows_of(&segment, all(window, Direction::Backward)).await;
                rows.reverse();
                assert!(same(&rows, &expected[first..last]), "{first} to {last}, backward");
            }
        }
        // Between two records, and outside of all.
        for window in [NOW..u64::MAX, 0..expected[0].0, expected[7].0 + 1..expected[8].0] {
            assert!(rows_of(&segment, all(window, Direction::Forward)).await.is_empty());
        }
    });
}

#[test]
fn a_small_window_reads_a_small_part() {
    // Bodies that do not compress: a page has more bytes than a frame.
    let mut records = many(LARGE_ROWS);
    for (record, at) in records.iter_mut().zip(1_u64..) {
        let digits = (0..160).map(|part| {
            format!("{:016x}", xxhash_rust::xxh3::xxh3_64_with_seed(b"", at * 160 + part))
        });
        record.body = Some(AnyValue { value: Some(Value::StringValue(digits.collect())) });
    }
    let (segment, expected) = large_of(&records);
    let window = expected[2_500].0..expected[2_600].0;
    block_on(async {
        let source = stored(&ObjectArea::in_memory(), "1.parquet", &segment).await;
        let metadata = metadata_of(&source).await;
        let before = source.bytes_read();
        let read = all(window, Direction::Forward);
        let mut reader = SegmentReader::new(Arc::clone(&source) as _, metadata, read);
        let mut rows = 0;
        while reader.next_row().await.unwrap().is_some() {
            rows += 1;
        }
        assert_eq!(rows, 100);
        assert!(reader.rows_scanned() <= 1_024, "{}", reader.rows_scanned());
        let read = source.bytes_read() - before;
        assert!(read < source.size() / 2, "{read} of {}", source.size());
    });
}

#[test]
fn projected_records_have_the_selected_fields_only() {
    let records = vec![samples_record()];
    let segments = seal(&SegmentSchema::new(promoted()), &[SampleBatch::of(records)], 3);
    let fields = RecordFields::from_names(["body", "sequence", "attributes"]).unwrap();
    let read = SegmentRead { fields, ..all(0..u64::MAX, Direction::Forward) };

    let rows = block_on(rows_of(&segments[0], read));

    let record: Record = prost::Message::decode(rows[0].record.as_ref()).unwrap();
    let expected = Record {
        body: samples_record().body,
        attributes: samples_record().attributes,
        sequence: 3,
        ..Record::default()
    };
    assert_eq!(record, expected);
}

fn samples_record() -> Record {
    many(1).remove(0)
}

#[test]
fn metadata_is_dropped_by_use_within_its_bytes() {
    let (small, _) = (seal(&SegmentSchema::new(vec![]), &[SampleBatch::of(many(1))], 0), ());
    block_on(async {
        let source = stored(&ObjectArea::in_memory(), "1.parquet", &small[0]).await;
        let metadata = load_metadata(source.as_ref()).await.unwrap();
        let cache = MetadataCache::new(metadata.memory_bytes() * 2);
        cache.put("1", metadata.clone());
        cache.put("2", metadata.clone());
        assert!(cache.get("1").is_some());
        cache.put("3", metadata.clone());

        let held = ["1", "2", "3"].map(|path| cache.get(path).is_some());
        assert_eq!(held, [true, false, true]);
    });
}
