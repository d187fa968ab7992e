use std::time::{Duration, Instant};

use trestle_kv::Engine;

use super::*;
use crate::{
    delivery::CHECKPOINT_AFTER,
    fixture::{Fixture, outgoing},
};

/// What is stored of how far the queue has come.
async fn noted(engine: &dyn Engine, id: QueueId) -> Cursor {
    let snapshot = engine.snapshot().await.expect("a snapshot");
    let stored = snapshot.get(&keys::cursor(id)).await.expect("readable");
    stored.map_or(Cursor::START, |value| Cursor::decode(&value).expect("a cursor"))
}

#[tokio::test]
async fn consumers_note_how_far_the_queue_has_come_without_the_sweeper() {
    let fixture = Fixture::new().await;
    let id = fixture.id().await;
    let mut consumed = Vec::new();
    while consumed.len() < 3 * CHECKPOINT_AFTER {
        fixture.clock.advance(Duration::from_millis(1));
        fixture.send(vec![outgoing(0); 32]).await;
        let received = fixture.receive(32, 3600).await;
        fixture.delete(&received).await;
        let now = fixture.messages.clock.now();
        consumed.extend(received.iter().map(|delivered| (now, delivered.slot.sequence)));
        // Notes are written by a task of their own.
        tokio::task::yield_now().await;
    }

    // Not much of what was consumed lies behind the last note, neither by slot nor by sequence.
    let (time, sequence) = consumed[consumed.len() - CHECKPOINT_AFTER - 64];
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let noted = noted(&fixture.engine, id).await;
        if noted.slot.visible_at >= time && noted.sequence >= sequence {
            break;
        }
        assert!(Instant::now() < deadline, "{noted:?}, not {time:?} and {sequence}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
