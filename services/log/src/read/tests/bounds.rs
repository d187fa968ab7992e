//! The memory of reads of unsealed records.

use tokio::sync::Semaphore;

use super::*;

/// Bytes that all reads of these tests may hold.
const BYTES_MAX: usize = 100 * 1024;

/// A stream with 40 unsealed batches of a record of 10 KB, and reads that may hold a few of them.
async fn unsealed() -> (LogFixture, Arc<OpenStream>) {
    let mut fixture = LogFixture::new();
    fixture.logs.read_bytes = Arc::new(Semaphore::new(BYTES_MAX));
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
    assert_eq!(fixture.logs.read_bytes.available_permits(), BYTES_MAX);

    let (_, first) = fixture.logs.read(&stream, within(0, 6)).await.unwrap();
    let second = fixture.logs.read(&stream, within(0, 6)).await.map(drop);
    assert!(matches!(second, Err(LogError::Busy)), "{second:?}");
    drop(first);
    assert_eq!(fixture.read(&stream, within(0, 6)).await.unwrap().len(), 6);
    assert_eq!(fixture.logs.read_bytes.available_permits(), BYTES_MAX);

    // Sealed, they are read with little memory.
    fixture.logs.flush(&stream).await.unwrap();
    assert_eq!(fixture.read_all(&stream).await.unwrap().len(), 40);
}

#[tokio::test]
async fn a_limited_read_holds_what_it_returns() {
    let (mut fixture, stream) = unsealed().await;
    // More than the spare bytes of a limited read are dropped while they are collected.
    for part in 0..18_u64 {
        let records: Vec<_> = (0..100)
            .map(|number| record((100 + part * 100 + number) * SECOND, &"y".repeat(10_000)))
            .collect();
        fixture.append(&stream, &records).await.unwrap();
    }
    fixture.logs.read_bytes = Arc::new(Semaphore::new(17 * 1024 * 1024));
    let all = fixture.read_all(&stream).await;
    assert!(matches!(all, Err(LogError::Busy)), "more than 18 MB: {:?}", all.map(|all| all.len()));

    for is_backward in [false, true] {
        let plan = ReadPlan { limit: 3, is_backward, ..plan() };
        let found = fixture.read(&stream, plan).await.unwrap();
        let seconds: Vec<_> =
            found.iter().map(|record| (record.time_unix_nano - START) / SECOND).collect();
        assert_eq!(seconds, if is_backward { [1_899, 1_898, 1_897] } else { [0, 1, 2] });
    }
    assert_eq!(fixture.logs.read_bytes.available_permits(), 17 * 1024 * 1024);
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
