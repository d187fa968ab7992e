//! Steps of the background work, with late records and failing stores.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use trestle_kv::CommitError;
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_objects::ObjectArea;
use trestle_objects::faulty::{FaultyObjects, ObjectFault};

use super::*;
use crate::{
    error::LogError,
    fixture::{START, account, name},
    keys::{self, StreamRow},
    layout::DAY_NANOS,
    stream::StreamId,
    streams::StreamSettingsChange,
    sweep::RESTORABLE,
};

fn with_retention(seconds: u64) -> StreamSettings {
    let retention = Some(Duration::from_secs(seconds));
    StreamSettings { retention, ..StreamSettings::default() }
}

#[tokio::test]
async fn a_late_record_keeps_its_time_and_does_not_delay_the_retention_of_others() {
    let fixture = LogFixture::new();
    let stream = fixture.stream(with_retention(1_000)).await;
    fixture.append(&stream, &[record(500 * SECOND, "new")]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    fixture.append(&stream, &[record(0, "late")]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["late", "new"]);

    fixture.advance(Duration::from_secs(1_001));
    fixture.sweep().await;
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["new"]);
    fixture.advance(Duration::from_secs(500));
    fixture.sweep().await;
    assert!(fixture.read_all(&stream).await.unwrap().is_empty());
    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((head.segments, head.segment_records, head.segment_bytes), (0, 0, 0));
    assert_eq!((head.next_sequence, head.snapshot), (2, 4));
}

#[tokio::test]
async fn segments_are_removed_by_the_retention_that_the_stream_has_then() {
    for is_deleted in [false, true] {
        let fixture = LogFixture::new();
        let read_before = fixture.stream(with_retention(100)).await;
        fixture.append(&read_before, &[record(0, "old")]).await.unwrap();
        fixture.logs.flush(&read_before).await.unwrap();
        fixture.advance(Duration::from_secs(101));
        let (streams, account) = (&fixture.logs.streams, &read_before.account);
        let extend = |retention| {
            let change = StreamSettingsChange { retention: Some(retention), ..Default::default() };
            streams.update(account, &read_before.name, change)
        };
        if is_deleted {
            // A stream of the same name is another one.
            streams.delete(account, &read_before.name).await.unwrap();
            fixture.stream(with_retention(10)).await;
        }
        let segments = || fixture.count(StreamRow::Segment, read_before.record.id);

        for longer in [Some(Duration::from_secs(1_000)), None] {
            if !is_deleted {
                extend(longer).await.unwrap();
            }
            fixture.sweeper.end_retention(&read_before).await.unwrap();
            assert_eq!(segments().await, 1, "{is_deleted} {longer:?}");
        }
        if !is_deleted {
            extend(Some(Duration::from_secs(100))).await.unwrap();
            fixture.sweeper.end_retention(&read_before).await.unwrap();
            assert_eq!(segments().await, 0);
        }
    }
}

#[tokio::test]
async fn unsealed_records_past_the_retention_are_removed_after_their_seal() {
    let fixture = LogFixture::new();
    let stream = fixture.stream(with_retention(100)).await;
    fixture.append(&stream, &[record(0, "old")]).await.unwrap();
    fixture.advance(Duration::from_secs(101));
    fixture.sweep().await;
    assert_eq!(fixture.read_all(&stream).await.unwrap().len(), 1, "a batch is never cut");

    fixture.logs.flush(&stream).await.unwrap();
    fixture.sweep().await;

    assert!(fixture.read_all(&stream).await.unwrap().is_empty());
}

#[tokio::test]
async fn streams_without_a_retention_keep_records_of_any_age() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let old = trestle_proto::log::v1::Record { time_unix_nano: 1, ..record(0, "1970") };
    fixture.append(&stream, &[old]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();

    fixture.advance(Duration::from_nanos(100 * 365 * DAY_NANOS));
    fixture.sweep().await;

    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["1970"]);
    assert!(fixture.objects().await[0].contains("/date=1970-01-01/"));
}

#[tokio::test]
async fn objects_that_cannot_be_deleted_are_deleted_later() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = fixture.stream(with_retention(100)).await;
    fixture.append(&stream, &[record(0, "old")]).await.unwrap();
    fixture.logs.flush(&stream).await.unwrap();
    fixture.advance(Duration::from_secs(101));
    fixture.sweep().await;
    fixture.advance(RESTORABLE + Duration::from_secs(1));

    store.plan([ObjectFault::Failed]);
    assert!(fixture.sweeper.tick().await.is_err());
    assert_eq!(fixture.count(StreamRow::Retired, stream.record.id).await, 1);
    assert_eq!(fixture.objects().await.len(), 1);

    fixture.sweep().await;
    assert_eq!(fixture.count(StreamRow::Retired, stream.record.id).await, 0);
    assert!(fixture.objects().await.is_empty());
}

#[tokio::test]
async fn one_stream_whose_work_fails_does_not_stop_that_of_others() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let first = fixture.stream(with_retention(100)).await;
    let (account, name) = (account(), name("zzz"));
    fixture.logs.streams.create(&account, &name, with_retention(100)).await.unwrap();
    let second = fixture.logs.open(&account, &name).await.unwrap();
    for stream in [&first, &second] {
        fixture.append(stream, &[record(0, "old")]).await.unwrap();
        fixture.logs.flush(stream).await.unwrap();
    }
    fixture.advance(Duration::from_secs(101));
    fixture.sweep().await;
    fixture.advance(RESTORABLE + Duration::from_secs(1));
    store.plan([ObjectFault::Failed]);

    assert!(fixture.sweeper.tick().await.is_err());

    assert_eq!(fixture.count(StreamRow::Retired, first.record.id).await, 1);
    assert_eq!(fixture.count(StreamRow::Retired, second.record.id).await, 0);
}

#[tokio::test]
async fn more_streams_than_a_tick_visits_are_visited_in_turn() {
    let fixture = LogFixture::new();
    let account = account();
    let mut streams = Vec::new();
    for number in 0..130 {
        let name = name(&format!("s{number:03}"));
        fixture.logs.streams.create(&account, &name, with_retention(100)).await.unwrap();
        streams.push(fixture.logs.open(&account, &name).await.unwrap());
    }
    for stream in &streams {
        fixture
            .append_as(stream, &[record(0, "old")], |batch| crate::append::NewBatch {
                request_id: Some("one".to_owned()),
                ..batch
            })
            .await
            .unwrap();
    }
    fixture.advance(crate::append::REQUEST_MEMORY + Duration::from_secs(1));

    // 64 at a time.
    let mut left = Vec::new();
    for _ in 0..3 {
        fixture.sweeper.tick().await.unwrap();
        let mut requests = 0;
        for stream in &streams {
            requests += fixture.count(StreamRow::Request, stream.record.id).await;
        }
        left.push(requests);
    }
    assert_eq!(left, [66, 2, 0]);
}

#[tokio::test]
async fn small_segments_of_late_records_are_merged_by_day() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let late = async |days: u64, count: u64| {
        for round in 0..count {
            let time_unix_nano = START - days * DAY_NANOS + round;
            let old = trestle_proto::log::v1::Record { time_unix_nano, ..record(0, "old") };
            fixture.append(&stream, &[old]).await.unwrap();
            fixture.logs.flush(&stream).await.unwrap();
        }
    };
    let segments = async || fixture.head(stream.record.id).await.unwrap().segments;
    late(100, 8).await;
    late(4, 8).await;
    late(5, 7).await;
    fixture.sweep().await;
    assert_eq!(segments().await, 1 + 1 + 7, "a day with too few is left alone");

    // A search that is at its end begins again with the next segment.
    fixture.sweep().await;
    late(5, 1).await;
    fixture.sweep().await;

    assert_eq!(segments().await, 3);
    assert_eq!(fixture.read_all(&stream).await.unwrap().len(), 24);
}

#[tokio::test]
async fn sealed_batches_are_deleted_in_steps_and_unsealed_ones_are_kept() {
    let fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let id = stream.record.id;
    for batches in [super::super::STEP.rows + 2, 3] {
        for _ in 0..batches {
            fixture.append(&stream, &[record(0, "sealed"), record(0, "with it")]).await.unwrap();
        }
        fixture.logs.flush(&stream).await.unwrap();
        fixture.append(&stream, &[record(0, "not sealed")]).await.unwrap();
        fixture.sweep().await;

        assert_eq!(fixture.count(StreamRow::Batch, id).await, 1);
    }
}

const MIB: u64 = 1024 * 1024;

/// Streams of a store on a disk with so many free bytes, which reserves 64 MiB.
struct SmallDisk {
    fixture: LogFixture,
    free: Arc<AtomicU64>,
    _folder: tempfile::TempDir,
}

impl SmallDisk {
    fn new() -> Self {
        let (folder, free) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(1 << 40)));
        let clock = crate::fixture::clock_at_start();
        let probed = Arc::clone(&free);
        let options = FjallOptions {
            min_free_bytes: 64 * MIB,
            tick: Duration::from_millis(5),
            clock: Arc::clone(&clock) as _,
            space_probe: Arc::new(move |_| Ok(probed.load(Ordering::SeqCst))),
            ..FjallOptions::new(folder.path().join("store"), crate::KEYSPACES.to_vec())
        };
        let engine = Arc::new(FjallEngine::open(options).unwrap());
        let (directory, disk) = (folder.path().join("log"), engine.disk_space());
        let area = ObjectArea::in_directory(&directory, Some(disk)).unwrap();
        let fixture = LogFixture::with_clock(area, engine, clock);
        Self { fixture, free, _folder: folder }
    }

    async fn becomes_short(&self, free_bytes: u64) {
        self.free.store(free_bytes, Ordering::SeqCst);
        while !self.fixture.logs.engine.status().is_space_short() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn is_full(error: &LogError) -> bool {
    matches!(error, LogError::Commit(CommitError::Full { .. }))
}

#[tokio::test]
async fn records_are_sealed_while_disk_space_is_short() {
    let disk = SmallDisk::new();
    let stream = disk.fixture.plain_stream().await;
    disk.fixture.append(&stream, &[record(0, "a"), record(1, "b")]).await.unwrap();
    disk.becomes_short(60 * MIB).await;
    let rejected = disk.fixture.append(&stream, &[record(2, "c")]).await;
    assert!(is_full(&rejected.unwrap_err()));

    let sealed = disk.fixture.logs.flush(&stream).await.unwrap();

    assert_eq!((sealed.records, sealed.segments), (2, 1));
    disk.fixture.sweep().await;
    assert_eq!(disk.fixture.count(StreamRow::Batch, stream.record.id).await, 0);
    assert_eq!(texts(&disk.fixture.read_all(&stream).await.unwrap()), ["a", "b"]);
}

#[tokio::test]
async fn a_seal_leaves_a_part_of_the_reserve_to_what_gives_back_space() {
    let disk = SmallDisk::new();
    let stream = disk.fixture.plain_stream().await;
    disk.fixture.append(&stream, &[record(0, "a")]).await.unwrap();
    disk.becomes_short(40 * MIB).await;

    let sealed = disk.fixture.logs.flush(&stream).await;

    assert!(sealed.is_err(), "{sealed:?}");
    disk.free.store(1 << 40, Ordering::SeqCst);
    while disk.fixture.logs.engine.status().is_space_short() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(disk.fixture.logs.flush(&stream).await.unwrap().records, 1);
}

#[tokio::test]
async fn a_shorter_retention_ends_while_disk_space_is_short() {
    let disk = SmallDisk::new();
    let fixture = &disk.fixture;
    let stream = fixture.stream(with_retention(1_000)).await;
    for second in 0..30 {
        fixture.append(&stream, &[record(second * SECOND, "old")]).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }
    fixture.advance(Duration::from_secs(200));
    disk.becomes_short(40 * MIB).await;
    let update = async |seconds: u64| {
        let retention = Some(Some(Duration::from_secs(seconds)));
        let change = StreamSettingsChange { retention, ..StreamSettingsChange::default() };
        let updated = fixture.logs.streams.update(&stream.account, &stream.name, change).await;
        updated.map(|record| record.settings.retention)
    };
    assert!(is_full(&fixture.append(&stream, &[record(0, "new")]).await.unwrap_err()));
    assert!(is_full(&update(2_000).await.unwrap_err()), "a longer one frees nothing");

    assert_eq!(update(100).await.unwrap(), Some(Duration::from_secs(100)));
    fixture.sweep().await;

    assert_eq!(fixture.head(stream.record.id).await.unwrap().segments, 0);
    assert_eq!(fixture.count(StreamRow::Retired, stream.record.id).await, 30);
}

#[tokio::test]
async fn segments_that_can_be_restored_make_room_where_disk_space_becomes_short() {
    let disk = SmallDisk::new();
    let fixture = &disk.fixture;
    let stream = fixture.stream(with_retention(100)).await;
    for second in 0..30 {
        fixture.append(&stream, &[record(second * SECOND, "old")]).await.unwrap();
        fixture.logs.flush(&stream).await.unwrap();
    }
    fixture.advance(Duration::from_secs(200));
    fixture.sweep().await;
    assert_eq!(fixture.count(StreamRow::Expired, stream.record.id).await, 30);

    disk.becomes_short(40 * MIB).await;
    fixture.advance(Duration::from_secs(61));
    fixture.sweep().await;

    for row in [StreamRow::Expired, StreamRow::Retired] {
        assert_eq!(fixture.count(row, stream.record.id).await, 0);
    }
    assert!(fixture.objects().await.is_empty());
}

#[tokio::test]
async fn a_row_that_cannot_be_read_stops_the_work_on_its_own_stream_alone() {
    let fixture = LogFixture::new();
    let (damaged, good) = (fixture.plain_stream().await, name("zz"));
    fixture.append(&damaged, &[record(0, "a")]).await.unwrap();
    fixture.logs.flush(&damaged).await.unwrap();
    let page = fixture.logs.segments(&damaged, 0..u64::MAX, 10, "").await.unwrap();
    let segment = &page.segments[0];
    fixture.logs.streams.create(&account(), &good, StreamSettings::default()).await.unwrap();
    let good = fixture.logs.open(&account(), &good).await.unwrap();
    fixture.append(&good, &[record(0, "b")]).await.unwrap();
    fixture.logs.flush(&good).await.unwrap();
    fixture.logs.delete(&damaged.account, &damaged.name).await.unwrap();
    // A segment of a deleted stream, the mark of another one, and the record of a third.
    for row in [
        keys::segment(damaged.record.id, segment.max_time, segment.id),
        keys::deleted_stream(StreamId(0)),
        keys::stream(&account(), &name("aa")),
    ] {
        fixture.put(row, "garbage").await;
    }
    fixture.advance(crate::sweep::STREAM_GRACE * 2);
    fixture.sweeper.tick().await.unwrap_err();
    assert_eq!(fixture.count(StreamRow::Batch, good.record.id).await, 0, "it was swept");
    let totals = fixture.logs.totals().await.unwrap();
    assert_eq!((totals.streams, totals.segments), (1, 1), "the others are counted");
}
