//! The memory of reads of unsealed records.

use std::collections::BTreeMap;

use trestle_rpc::layer::shares::SharePool;

use super::*;

/// Bytes that all reads of these tests may hold.
const BYTES_MAX: usize = 100 * 1024;

/// A stream with 40 unsealed batches of a record of 10 KB, and reads that may hold a few of them.
async fn unsealed() -> (LogFixture, Arc<OpenStream>) {
    let mut fixture = LogFixture::new();
    fixture.logs.read_bytes = SharePool::new("bytes", BYTES_MAX);
    let stream = fixture.plain_stream().await;
    for number in 0..40 {
        let text = format!("{number:02}{}", "x".repeat(10_000));
        fixture.append(&stream, &[record(number * SECOND, &text)]).await.unwrap();
    }
    (fixture, stream)
}

#[tokio::test]
async fn reads_hold_a_bounded_number_of_unsealed_bytes_and_release_them() {
    let (fixture, stream) = unsealed().await;

    let all = fixture.read_all(&stream).await;
    assert!(matches!(all, Err(LogError::Busy)), "{all:?}");
    assert_eq!(fixture.logs.read_bytes.free(), BYTES_MAX);

    let (_, first) = fixture.logs.read(&stream, within(0, 6)).await.unwrap();
    let second = fixture.logs.read(&stream, within(0, 6)).await.map(drop);
    assert!(matches!(second, Err(LogError::Busy)), "{second:?}");
    drop(first);
    assert_eq!(fixture.read(&stream, within(0, 6)).await.unwrap().len(), 6);
    assert_eq!(fixture.logs.read_bytes.free(), BYTES_MAX);

    // Sealed, they are read with little memory.
    fixture.logs.flush(&stream).await.unwrap();
    assert_eq!(fixture.read_all(&stream).await.unwrap().len(), 40);
}

#[tokio::test]
async fn reads_of_one_account_leave_bytes_to_another() {
    let (fixture, stream) = unsealed().await;
    let mut held = Vec::new();
    while let Ok((_, rows)) = fixture.logs.read(&stream, within(0, 2)).await {
        held.push(rows);
    }

    let account = trestle_model::name::AccountName::parse("other").unwrap();
    let other = OpenStream { account, ..(*stream).clone() };
    let read = fixture.logs.read(&other, within(0, 2)).await.map(drop);

    assert_eq!(held.len(), 3, "three quarters of 100 KiB");
    assert!(read.is_ok(), "{read:?}");
}

/// Reads to the end, `between` the responses.
async fn read_with(
    fixture: &LogFixture,
    stream: &OpenStream,
    plan: ReadPlan,
    between: impl AsyncFn(usize),
) -> Vec<u64> {
    let (_, mut rows) = fixture.logs.read(stream, plan).await.unwrap();
    let mut seconds = Vec::new();
    while let Some(more) = rows.next(3, usize::MAX).await.unwrap() {
        assert!(fixture.logs.read_bytes.free() >= BYTES_MAX - fixture.logs.slice_bytes);
        seconds.extend(more.iter().map(|row| (row.time - START) / SECOND));
        between(seconds.len()).await;
    }
    seconds
}

#[tokio::test]
async fn a_read_holds_a_slice_of_what_is_unsealed() {
    let (mut fixture, stream) = unsealed().await;
    fixture.logs.slice_bytes = 50 * 1024;
    // Their times fall: the last batch has the first records.
    for part in 0..6 {
        let of = |number: u64| record((1_000 - part * 10 - number) * SECOND, &"y".repeat(8_000));
        fixture.append(&stream, &(0..10).map(of).collect::<Vec<_>>()).await.unwrap();
    }
    let expected: Vec<u64> = (0..40).chain(941..=1_000).collect();
    for is_backward in [false, true] {
        let plan = ReadPlan { is_backward, ..plan() };
        let mut found = read_with(&fixture, &stream, plan.clone(), async |_| {}).await;
        if is_backward {
            found.reverse();
        }
        assert_eq!(found, expected, "backward: {is_backward}");
        let limited = ReadPlan { limit: 33, ..plan };
        assert_eq!(read_with(&fixture, &stream, limited, async |_| {}).await.len(), 33);
        assert_eq!(fixture.logs.read_bytes.free(), BYTES_MAX);
    }
}

#[tokio::test]
async fn a_read_continues_in_segments_once_what_it_reads_is_sealed() {
    for is_backward in [false, true] {
        for sealed_after in [3, 18, 39] {
            let (mut fixture, stream) = unsealed().await;
            fixture.logs.slice_bytes = 50 * 1024;
            let plan = ReadPlan { is_backward, ..plan() };
            let seal = async |count: usize| {
                if count >= sealed_after && count < sealed_after + 3 {
                    fixture.append(&stream, &[record(15 * SECOND, "new")]).await.unwrap();
                    fixture.logs.flush(&stream).await.unwrap();
                    // The batches are deleted.
                    fixture.sweep().await;
                }
            };
            let mut found = read_with(&fixture, &stream, plan, seal).await;
            if is_backward {
                found.reverse();
            }
            assert_eq!(found, (0..40).collect::<Vec<_>>(), "{is_backward}, {sealed_after}");
            assert_eq!(fixture.logs.read_bytes.free(), BYTES_MAX);
        }
    }
}

#[tokio::test]
async fn a_resource_is_held_once_for_all_of_its_records() {
    let mut fixture = LogFixture::new();
    let stream = fixture.plain_stream().await;
    let texts: Vec<_> = (0..500_u64).map(|number| record(number % 7 * SECOND, "text")).collect();
    let resource = BTreeMap::from([("host".to_owned(), "h".repeat(20_000))]);
    for _ in 0..3 {
        let batch = fixture.batch_of(&stream, &texts, &resource);
        fixture.logs.append(vec![(Arc::clone(&stream), batch)]).await.unwrap();
    }
    fixture.logs.read_bytes = SharePool::new("bytes", 700 * 1024);

    // Each with its resource, the records have 30 MB.
    let all = fixture.read_all(&stream).await.unwrap();

    assert_eq!(all.len(), 1_500);
    assert!(all.iter().all(|record| record.resource.contains_key("host")));
    let positions = all.iter().map(|record| (record.time_unix_nano, record.sequence));
    assert!(positions.is_sorted());
}

#[tokio::test]
async fn a_filter_counts_only_what_matches() {
    let (fixture, stream) = unsealed().await;
    let filter = crate::filter::LogFilter::parse("startswith(body, '07')").unwrap().unwrap();
    let plan = ReadPlan { predicate: Some(Arc::new(filter)), ..plan() };
    let (_, mut rows) = fixture.logs.read(&stream, plan).await.unwrap();

    let found = rows.next(10, usize::MAX).await.unwrap().unwrap();

    assert_eq!(found.len(), 1);
    let cost = rows.cost();
    assert_eq!((cost.records_scanned, cost.records_returned, cost.segments), (40, 1, 0));
}

#[tokio::test]
async fn a_read_of_a_range_without_times_returns_nothing() {
    let (fixture, stream) = unsealed().await;
    let bounds = [(START, START), (START + 5, START), (u64::MAX, u64::MAX), (u64::MAX, 0)];
    for times in bounds.map(|(start, end)| start..end) {
        for is_backward in [false, true] {
            let plan = ReadPlan { times: times.clone(), is_backward, ..plan() };
            assert!(fixture.read(&stream, plan).await.unwrap().is_empty(), "{times:?}");
        }
    }
}
