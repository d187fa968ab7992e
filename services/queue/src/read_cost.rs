//! The reads of an operation do not grow with the depth of a queue, nor with its invisible or delayed messages, nor
//! with the number of consumed ones.

use std::time::Duration;

use crate::{
    delivery::{CHECKPOINT_AFTER, LOAD},
    fixture::{Fixture, ScanCost, outgoing},
};

/// The visibility timeout of deliveries, in seconds.
const VISIBILITY_TIMEOUT: u64 = 60;

impl Fixture {
    async fn fill(&self, count: usize, delay: u64) {
        for _ in 0..count / 100 {
            self.send(vec![outgoing(delay); 100]).await;
        }
    }

    /// Receives and deletes messages, up to `max` at once; a tenth of a second passes for each.
    async fn consume(&self, count: usize, max: usize) {
        let mut left = count;
        while left > 0 {
            let received = self.receive(max.min(left), VISIBILITY_TIMEOUT).await;
            assert!(!received.is_empty(), "{left} remain");
            self.delete(&received).await;
            left -= received.len();
            self.clock
                .advance(Duration::from_millis(100) * u32::try_from(received.len()).expect("few"));
            // Checkpoints in the background can run.
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn counting_and_receiving_after_a_restart_read_few_rows_of_a_deep_queue() {
    let mut read = Vec::new();
    for depth in [5_000, 40_000] {
        let mut fixture = Fixture::new().await;
        fixture.fill(depth / 2, 0).await;
        fixture.fill(depth / 2, 3600).await;

        fixture.restart();
        assert_eq!(fixture.count().await, depth as u64);
        let counted = fixture.engine.take().rows;
        assert!(counted <= 1, "{counted} rows read to count {depth}");
        fixture.consume(1, 1).await;
        let first = fixture.engine.take().rows;
        fixture.consume(500, 1).await;
        read.push((first, fixture.engine.take().rows));
    }

    let bound = LOAD.rows;
    assert!(read.iter().all(|(first, _)| *first <= bound), "first receive, the others: {read:?}");
    assert!(read.iter().all(|(_, others)| *others == 0), "first receive, the others: {read:?}");
}

/// More than the index holds, so that it is loaded repeatedly.
#[tokio::test]
async fn reads_each_message_and_tombstone_of_a_queue_deeper_than_the_index_once() {
    const DEPTH: usize = 100_000;
    const CHECKPOINTS: usize = DEPTH / CHECKPOINT_AFTER * 2;
    let fixture = Fixture::new().await;
    fixture.fill(DEPTH, 0).await;

    fixture.consume(DEPTH, 50).await;

    let passed = fixture.engine.take();
    assert!((1..=DEPTH + CHECKPOINTS).contains(&passed.rows), "{passed:?}");
    // Of each one its body, and its slot while it was invisible.
    assert!(passed.marks <= 2 * DEPTH, "{passed:?}");
    assert_eq!(fixture.count().await, 0);
}

#[tokio::test]
async fn scans_pass_few_tombstones_of_consumed_messages() {
    for consumed in [1_000, 20_000] {
        let fixture = Fixture::new().await;
        // The index is complete from now on.
        assert_eq!(fixture.receive(1, VISIBILITY_TIMEOUT).await, []);
        fixture.fill(consumed, 0).await;
        fixture.consume(consumed, 50).await;
        fixture.count().await;
        fixture.engine.take();

        fixture.fill(100, 0).await;
        assert_eq!(fixture.peek(32).await.len(), 32);
        fixture.consume(100, 1).await;
        fixture.count().await;

        // A checkpoint may have been due.
        let passed = fixture.engine.take();
        assert!(
            passed.rows <= 2 && passed.marks <= CHECKPOINT_AFTER,
            "{passed:?} after {consumed}"
        );
    }
}

/// Some lie after the last checkpoint, and some have an unexpired visibility timeout.
#[tokio::test]
async fn a_restart_passes_few_tombstones_of_consumed_messages() {
    // Ten a second.
    const UNDER_WAY: u64 = VISIBILITY_TIMEOUT * 10;
    for consumed in [10_000, 40_000] {
        let mut fixture = Fixture::new().await;
        for _ in 0..consumed / 100 {
            fixture.fill(100, 0).await;
            fixture.consume(100, 50).await;
        }
        fixture.fill(100, 0).await;

        fixture.restart();
        fixture.consume(100, 1).await;
        fixture.count().await;

        let passed = fixture.engine.take();
        assert!(
            passed.marks <= 2 * (CHECKPOINT_AFTER + usize::try_from(UNDER_WAY).expect("few")),
            "{passed:?} after {consumed}"
        );
        assert!(passed.rows <= 200, "{passed:?} after {consumed}");
    }
}

#[tokio::test]
async fn clearing_a_deep_queue_reads_nothing_of_it() {
    let fixture = Fixture::new().await;
    fixture.fill(20_000, 0).await;
    fixture.engine.take();

    let cleared =
        fixture.messages.queues.clear(fixture.access.account(), fixture.name.clone()).await;

    cleared.expect("cleared");
    assert_eq!(fixture.count().await, 0);
    assert_eq!(fixture.engine.take(), ScanCost::default());
}
