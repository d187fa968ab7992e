//! Tests of checkpoints.

use std::time::{Duration, Instant};

use trestle_kv::Engine;

use super::*;
use crate::{
    delivery::CHECKPOINT_AFTER,
    fixture::{Fixture, outgoing},
    keys::QueueId,
};

/// The stored cursor of a queue.
async fn stored_cursor(engine: &dyn Engine, id: QueueId) -> Cursor {
    let stored = engine.get(&keys::cursor(id)).await.expect("readable");
    stored.map_or(Cursor::START, |value| Cursor::decode(&value).expect("a cursor"))
}

#[tokio::test]
async fn consumers_store_checkpoints_without_the_sweeper() {
    let fixture = Fixture::new().await;
    let id = fixture.id().await;
    let mut consumed = Vec::new();
    while consumed.len() < 3 * CHECKPOINT_AFTER {
        fixture.clock.advance(Duration::from_millis(1));
        fixture.send(vec![outgoing(0); 32]).await;
        let received = fixture.receive(32, 3600).await;
        fixture.delete(&received).await;
        let now = fixture.messages.engine.now();
        consumed.extend(received.iter().map(|delivered| (now, delivered.slot.sequence)));
        // Checkpoints are stored by a task of their own.
        tokio::task::yield_now().await;
    }

    // Few consumed messages are after the stored cursor, neither by slot nor by sequence.
    let (time, sequence) = consumed[consumed.len() - CHECKPOINT_AFTER - 64];
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let cursor = stored_cursor(&fixture.engine, id).await;
        if cursor.slot.visible_at >= time && cursor.sequence >= sequence {
            break;
        }
        assert!(Instant::now() < deadline, "{cursor:?}, not {time:?} and {sequence}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
