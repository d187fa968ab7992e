//! The memory of reads of segments.

use trestle_model::fault::{Fault, Reason};
use trestle_rpc::layer::shares::SharePool;

use super::*;

const MIB: usize = 1024 * 1024;
/// Room for a chunk of 40 records of three segments.
const BYTES_MAX: usize = 1_250_000;

/// A stream with overlapping segments of records of 10 KB, and the pool that reads charge.
async fn sealed(
    segments: u64,
    records: u64,
    bytes_max: usize,
) -> (LogFixture, Arc<OpenStream>, Arc<SharePool>) {
    let mut fixture = LogFixture::new();
    let pool = SharePool::new("bytes of segments", bytes_max);
    fixture.logs.segment_bytes = Arc::clone(&pool);
    let stream = fixture.plain_stream().await;
    let text = "x".repeat(10_000);
    for segment in 0..segments {
        let of = |at: u64| record((at * segments + segment) * SECOND, &text);
        for part in (0..records).collect::<Vec<_>>().chunks(500) {
            let batch: Vec<_> = part.iter().map(|at| of(*at)).collect();
            fixture.append(&stream, &batch).await.unwrap();
        }
        fixture.logs.flush(&stream).await.unwrap();
    }
    (fixture, stream, pool)
}

#[tokio::test]
async fn reads_of_segments_hold_a_bounded_number_of_bytes_and_release_them() {
    let (fixture, stream, pool) = sealed(2, 40, BYTES_MAX).await;
    let (_, mut first) = fixture.logs.read(&stream, plan()).await.unwrap();
    assert_eq!(first.next(2, MIB).await.unwrap().expect("rows").len(), 2);
    let held = BYTES_MAX - pool.free();
    assert!((800_000..1_000_000).contains(&held), "a chunk of each segment: {held}");

    let (_, mut second) = fixture.logs.read(&stream, plan()).await.unwrap();
    let fault = Fault::from(second.next(1, MIB).await.expect_err("too many bytes"));
    assert_eq!(fault.reason, Reason::ServerBusy);
    assert!(fault.retry_after.is_some() && fault.message.contains("bytes of segments"));
    drop(second);
    assert_eq!(BYTES_MAX - pool.free(), held);

    drop(first);
    assert_eq!(pool.free(), BYTES_MAX);
    assert_eq!(fixture.read_all(&stream).await.unwrap().len(), 80);
    assert_eq!(pool.free(), BYTES_MAX);
}

#[tokio::test]
async fn a_read_without_bytes_for_what_is_ahead_reads_it_when_it_is_next() {
    for is_backward in [false, true] {
        // A chunk has 4 MiB.
        let (fixture, stream, pool) = sealed(1, 1_000, 7 * MIB).await;
        let (_, mut rows) =
            fixture.logs.read(&stream, ReadPlan { is_backward, ..plan() }).await.unwrap();
        let (mut count, mut most) = (0, 0);
        while let Some(more) = rows.next(50, MIB).await.unwrap() {
            count += more.len();
            most = most.max(7 * MIB - pool.free());
        }
        assert_eq!(count, 1_000);
        assert!((4_000_000..7 * MIB).contains(&most), "{most}");
        drop(rows);
        assert_eq!(pool.free(), 7 * MIB);
    }
}
