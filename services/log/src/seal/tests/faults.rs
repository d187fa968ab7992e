//! Seals that are slow or fail: nothing is lost, nothing is returned twice, and no object remains.

use super::*;
use crate::sweep::ANNOUNCED_GRACE;

/// The backlog of a stream is full.
async fn fill_backlog(fixture: &LogFixture, id: crate::stream::StreamId) {
    use trestle_kv::{ChangeSpec, Writes, transact};

    use crate::stored::StoredForm as _;

    let mut spec = ChangeSpec::new(keys::stream_domain(id));
    let key = spec.read(keys::head(id));
    let filled = transact(&*fixture.logs.engine, spec, move |reads, _| {
        let head = Head::decode(reads.get(key).expect("a head"))?;
        let head = Head { unsealed_bytes: crate::append::BACKLOG_BYTES_MAX, ..head };
        let mut writes = Writes::new();
        writes.put(reads.key(key).clone(), head.encode());
        Ok::<_, LogError>((writes, ()))
    });
    filled.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_written_too_late_is_not_published_and_not_kept() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = fixture.plain_stream().await;
    fixture.append(&stream, &[record(1, "a")]).await.unwrap();
    store.plan([ObjectFault::Slow]);

    // The machine is suspended during the write, and the sweeper is the first to run after it.
    let suspended = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(fixture.count(StreamRow::Announced, stream.record.id).await, 1);
        fixture.advance(ANNOUNCED_GRACE + Duration::from_secs(1));
        fixture.sweep().await;
        assert_eq!(fixture.count(StreamRow::Announced, stream.record.id).await, 0);
    };
    let (sealed, ()) = tokio::join!(fixture.logs.flush(&stream), suspended);

    // By another object.
    assert_eq!(sealed.unwrap().segments, 1);
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["a"]);
    let page = fixture.logs.segments(&stream, 0..u64::MAX, 10, "").await.unwrap();
    let paths: Vec<_> = page.segments.into_iter().map(|segment| segment.path).collect();
    assert_eq!(fixture.objects().await, paths);
}

#[tokio::test(start_paused = true)]
async fn records_that_arrive_during_a_seal_are_for_the_next_one() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = fixture.plain_stream().await;
    fixture.append(&stream, &[record(1, "a")]).await.unwrap();
    store.plan([ObjectFault::Slow]);

    let appended = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fixture.append(&stream, &[record(0, "b")]).await.unwrap();
    };
    let (sealed, ()) = tokio::join!(fixture.logs.flush(&stream), appended);

    assert_eq!(sealed.unwrap().records, 1);
    let head = fixture.head(stream.record.id).await.unwrap();
    assert_eq!((head.sealed_before, head.unsealed_records(), head.segments), (1, 1, 1));
    assert!(head.unsealed_bytes > 0);
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_deleted_during_a_seal_leaves_no_object() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = fixture.plain_stream().await;
    fixture.append(&stream, &[record(1, "a")]).await.unwrap();
    store.plan([ObjectFault::Slow]);

    let deleted = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (account, name) = (crate::fixture::account(), crate::fixture::name("web"));
        fixture.logs.delete(&account, &name).await.unwrap();
        fixture.advance(crate::sweep::STREAM_GRACE);
        fixture.sweep().await;
    };
    let (sealed, ()) = tokio::join!(fixture.logs.flush(&stream), deleted);

    assert!(matches!(sealed, Err(LogError::StreamNotFound(_))), "{sealed:?}");
    assert!(fixture.objects().await.is_empty());
}

#[tokio::test]
async fn a_full_backlog_rejects_appends_until_a_seal_succeeds() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let stream = fixture.plain_stream().await;
    fixture.append(&stream, &[record(1, "a")]).await.unwrap();
    fill_backlog(&fixture, stream.record.id).await;

    for _ in 0..3 {
        store.plan([ObjectFault::Failed]);
        assert!(fixture.logs.flush(&stream).await.is_err());
        let rejected = fixture.append(&stream, &[record(2, "b")]).await;
        assert!(matches!(rejected, Err(LogError::Backlog { .. })), "{rejected:?}");
    }
    fixture.logs.flush(&stream).await.unwrap();

    fixture.append(&stream, &[record(2, "b")]).await.unwrap();
    assert_eq!(texts(&fixture.read_all(&stream).await.unwrap()), ["a", "b"]);
}

#[tokio::test]
async fn one_stream_that_cannot_be_sealed_does_not_delay_others() {
    let store = Arc::new(FaultyObjects::default());
    let fixture = LogFixture::on_store(Arc::clone(&store) as _);
    let first = fixture.stream(rolling(1, 1_000_000)).await;
    let (account, name) = (crate::fixture::account(), crate::fixture::name("other"));
    fixture.logs.streams.create(&account, &name, rolling(1, 1_000_000)).await.unwrap();
    let second = fixture.logs.open(&account, &name).await.unwrap();
    fixture.append(&first, &[record(1, "a")]).await.unwrap();
    fixture.advance(Duration::from_secs(1));
    fixture.append(&second, &[record(1, "b")]).await.unwrap();
    fixture.advance(Duration::from_secs(2));
    store.plan([ObjectFault::Failed]);

    let failed = fixture.logs.seal_due().await;

    assert!(matches!(failed, Err(LogError::Objects)), "{failed:?}");
    assert_eq!(fixture.head(first.record.id).await.unwrap().segments, 0);
    assert_eq!(fixture.head(second.record.id).await.unwrap().segments, 1);
    fixture.logs.seal_due().await.unwrap();
    assert_eq!(fixture.head(first.record.id).await.unwrap().segments, 1);
}

/// A batch with a record of each of these days.
fn batch_of_days(days: &[u64]) -> Bytes {
    let record = |day: &u64| trestle_proto::log::v1::Record {
        time_unix_nano: (day + 1) * DAY_NANOS,
        ..Default::default()
    };
    let records: Vec<_> = days.iter().map(record).collect();
    let request = crate::samples::append(&records, &Default::default(), None);
    let times = crate::batch::RecordTimes { received: START, latest: START, oldest: 0 };
    crate::batch::batch_of_append(&request, times).unwrap().bytes
}

#[test]
fn a_seal_has_batches_of_a_bounded_number_of_days() {
    let batches = [batch_of_days(&[1, 2]), batch_of_days(&[2, 3]), batch_of_days(&[4, 5, 6])];
    let input = SealInput {
        range: SealedRange {
            from: 10,
            before: 17,
            bytes: batches.iter().map(|batch| batch.len() as u64).sum(),
        },
        batches: [10, 12, 14].into_iter().zip(batches.iter().cloned()).collect(),
    };
    let chosen = |days_max| {
        let (range, rows) = first_rows(&input, days_max).unwrap();
        assert_eq!((range.from, range.before), (10, 10 + rows.len() as u64), "{days_max}");
        let sealed = input.batches.iter().filter(|(first, _)| *first < range.before);
        let bytes: u64 = sealed.map(|(_, batch)| batch.len() as u64).sum();
        assert_eq!(range.bytes, bytes, "{days_max}");
        rows.len()
    };

    // At least the first batch, whatever it has: an append is bounded itself.
    assert_eq!([1, 2, 3, 5].map(chosen), [2, 2, 4, 4]);
    assert_eq!(first_rows(&input, 6).unwrap().0, input.range);
}
