//! Tests of what is held.

use super::*;
use crate::fixture::{Fixture, outgoing};

/// Claims messages and holds them, as a receive does that cannot remove them.
async fn hold(world: &Fixture, max: usize) {
    let queue = world.messages.queues.open(&world.access, &world.name).await.expect("exists");
    let claim = world.messages.claim(&queue, max, Instant::now()).await.expect("readable");
    world.messages.hold(claim.expect("messages are visible"));
}

#[tokio::test(start_paused = true)]
async fn held_messages_are_not_received_for_a_while_and_those_behind_them_are() {
    let world = Fixture::new().await;
    world.send((0..3).map(|_| outgoing(0)).collect()).await;
    hold(&world, 2).await;

    assert_eq!(world.receive(32, 600).await.len(), 1);
    assert_eq!(world.receive(32, 600).await, []);
    tokio::time::sleep(HELD_FOR + Duration::from_millis(1)).await;

    assert_eq!(world.receive(32, 600).await.len(), 2);
    assert_eq!(world.count().await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_waits_receives_what_is_no_longer_held() {
    let world = Fixture::new().await;
    world.send(vec![outgoing(0)]).await;
    hold(&world, 1).await;
    let (visibility_timeout, wait) = (Duration::from_secs(600), HELD_FOR * 2);

    let receive = Receive { max: 1, visibility_timeout, wait, deadline: None };
    let received = world.messages.receive(&world.access, &world.name, receive).await;

    assert_eq!(received.expect("received").complete().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_at_a_shutdown() {
    let world = Fixture::new().await;
    world.send(vec![outgoing(0)]).await;
    world.messages.shutdown.cancel();
    hold(&world, 1).await;
    tokio::task::yield_now().await;

    // What is visible is received during a shutdown too.
    assert_eq!(world.receive(32, 600).await.len(), 1);
}
