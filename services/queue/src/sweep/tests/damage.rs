//! A record that cannot be read keeps nobody else from being swept.

use trestle_kv::Engine as _;

use super::*;
use crate::{
    bench::{Bench, outgoing},
    model::queue_name,
    send::Outgoing,
};

#[tokio::test]
async fn what_expires_is_removed_also_behind_a_queue_that_cannot_be_read() {
    let bench = Bench::new().await;
    let sweeper = Sweeper::new(bench.messages.clone());
    bench.create("first").await;
    bench.damage(keys::queue(bench.access.account(), &queue_name("first"))).await;
    bench.send(vec![Outgoing { life: Some(Duration::from_secs(1)), ..outgoing(0) }]).await;
    bench.clock.advance(Duration::from_secs(2));

    let failure = sweeper.tick().await.expect_err("it is told");

    assert!(matches!(failure, QueueError::Corrupt(_)), "{failure}");
    assert_eq!(bench.count().await, 0);
}

#[tokio::test]
async fn how_far_a_queue_has_come_is_noted_also_beside_many_that_cannot_be_read() {
    let bench = Bench::new().await;
    let sweeper = Sweeper::new(bench.messages.clone());
    for number in 0..15 {
        let name = format!("damaged-{number}");
        bench.create(&name).await;
        let other = Bench { name: queue_name(&name), ..bench.clone() };
        let sent = other.send(vec![outgoing(0)]).await;
        other.damage(keys::body(other.id().await, sent[0].sent.place.sequence)).await;
    }
    bench.send(vec![outgoing(0)]).await;
    bench.clock.advance(Duration::from_secs(1));
    bench.delete(&bench.receive(1, 30).await).await;

    let failure = sweeper.tick().await.expect_err("it is told");

    assert!(matches!(failure, QueueError::Corrupt(_)), "{failure}");
    let snapshot = bench.engine.snapshot().await.expect("a snapshot");
    let noted = snapshot.get(&keys::cursor(bench.id().await)).await.expect("readable");
    assert!(noted.is_some());
}

#[tokio::test]
async fn what_expires_is_removed_also_beside_a_message_that_cannot_be_read() {
    let bench = Bench::new().await;
    let sweeper = Sweeper::new(bench.messages.clone());
    let short = Outgoing { life: Some(Duration::from_secs(1)), ..outgoing(0) };
    let sent = bench.send(vec![short; 3]).await;
    bench.damage(keys::state(bench.id().await, sent[1].sent.place)).await;
    bench.clock.advance(Duration::from_secs(2));

    sweeper.tick().await.expect("swept");

    assert_eq!(bench.count().await, 1);
}
