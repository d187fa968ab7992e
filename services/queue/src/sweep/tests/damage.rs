//! An unreadable record does not block the sweep of others.

use trestle_kv::Engine as _;

use super::*;
use crate::{
    fixture::{Fixture, outgoing},
    model::queue_name,
    send::NewMessage,
};

#[tokio::test]
async fn removes_expired_messages_of_queues_after_an_unreadable_one() {
    let fixture = Fixture::new().await;
    let sweeper = Sweeper::new(fixture.messages.clone());
    fixture.create("first").await;
    fixture.damage(keys::queue(fixture.access.account(), &queue_name("first"))).await;
    fixture
        .send(vec![NewMessage { time_to_live: Some(Duration::from_secs(1)), ..outgoing(0) }])
        .await;
    fixture.clock.advance(Duration::from_secs(2));

    let failure = sweeper.tick(SweepScope::Store).await.expect_err("the error is returned");

    assert!(matches!(failure, QueueError::Corrupt(_)), "{failure}");
    assert_eq!(fixture.count().await, 0);
}

#[tokio::test]
async fn stores_a_checkpoint_in_spite_of_many_unreadable_queues() {
    let fixture = Fixture::new().await;
    let sweeper = Sweeper::new(fixture.messages.clone());
    for number in 0..15 {
        let name = format!("damaged-{number}");
        fixture.create(&name).await;
        let other = Fixture { name: queue_name(&name), ..fixture.clone() };
        let sent = other.send(vec![outgoing(0)]).await;
        other.damage(keys::body(other.id().await, sent[0].sent.slot.sequence)).await;
    }
    fixture.send(vec![outgoing(0)]).await;
    fixture.clock.advance(Duration::from_secs(1));
    fixture.delete(&fixture.receive(1, 30).await).await;

    let failure = sweeper.tick(SweepScope::Store).await.expect_err("the error is returned");

    assert!(matches!(failure, QueueError::Corrupt(_)), "{failure}");
    let snapshot = fixture.engine.snapshot().await.expect("a snapshot");
    let checkpoint = snapshot.get(&keys::cursor(fixture.id().await)).await.expect("readable");
    assert!(checkpoint.is_some());
}

#[tokio::test]
async fn removes_expired_messages_beside_an_unreadable_one() {
    let fixture = Fixture::new().await;
    let sweeper = Sweeper::new(fixture.messages.clone());
    let short = NewMessage { time_to_live: Some(Duration::from_secs(1)), ..outgoing(0) };
    let sent = fixture.send(vec![short; 3]).await;
    fixture.damage(keys::state(fixture.id().await, sent[1].sent.slot)).await;
    fixture.clock.advance(Duration::from_secs(2));

    sweeper.tick(SweepScope::Store).await.expect("swept");

    assert_eq!(fixture.count().await, 1);
}
