//! The fencing of a former owner of a queue, step by step.

use std::{sync::Arc, time::Duration};

use super::{
    history::Outcome,
    store::Placement,
    world::{DEQUEUES_MAX, VISIBILITY_TIMEOUT, World, receive, rejected},
};
use crate::{
    delivery::FenceCause,
    error::QueueError,
    head::{FencingToken, QueueHead},
    keys,
    messages::MessageOperations,
    receive::Receive,
    sweep::{SweepScope, Sweeper},
};

async fn send(world: &World, service: usize, text: &str) -> Outcome {
    world.send(service, (text, Some(format!("id {text}"))), (None, None)).await
}

/// The remaining messages, sorted: some of them were delayed.
async fn drained(world: &World) -> Vec<String> {
    let mut found = world.drain().await;
    found.sort();
    found
}

/// A waiting consumer of a queue, which is counted as such.
async fn waiting(
    world: &Arc<World>,
    service: usize,
    queue: usize,
) -> tokio::task::JoinHandle<Result<usize, QueueError>> {
    let shared = Arc::clone(world);
    let consumer = tokio::spawn(async move {
        let wait = Duration::from_secs(20);
        let receive = Receive { max: 1, visibility_timeout: wait, wait, deadline: None };
        let messages: &MessageOperations = &shared.services[service];
        let received = messages.receive(&shared.access, &shared.queues[queue], receive).await;
        received.map(|received| received.complete().len())
    });
    let (id, _) = world.head(queue).await;
    while world.services[service].schedulers.find(id).is_none_or(|s| s.waiting() == 0) {
        tokio::task::yield_now().await;
    }
    consumer
}

#[tokio::test]
async fn a_former_owner_is_fenced_and_takes_over_only_if_its_policy_allows_it() {
    let world = World::new(1, false).await;
    assert_eq!(send(&world, 0, "first").await, Outcome::Done);
    let (id, before) = world.head(0).await;

    world.placement.set(1);
    assert_eq!(send(&world, 1, "second").await, Outcome::Done);

    let (_, after) = world.head(0).await;
    assert_eq!((Some(after.token), after.count), (before.token.next(), 2));
    assert_ne!(after.owner, before.owner);
    assert!(world.services[0].schedulers.find(id).is_some(), "the former owner is not fenced yet");
    for _ in 0..2 {
        assert_eq!(send(&world, 0, "third").await, Outcome::Rejected);
        assert!(world.services[0].schedulers.find(id).is_none(), "closed");
    }
    let (_, now) = world.head(0).await;
    assert_eq!(now, after, "nothing was written");
    world.placement.set(0);
    assert_eq!(send(&world, 0, "third").await, Outcome::Done);
    assert_eq!(drained(&world).await, ["first", "second", "third"]);
}

#[tokio::test]
async fn receipts_and_deduplication_hold_across_owners() {
    let world = World::new(2, false).await;
    send(&world, 0, "job").await;
    let received = world.receive(0, 0, 1).await.remove(0);

    world.placement.set(1);

    assert_eq!(send(&world, 1, "job").await, Outcome::Rejected, "a duplicate");
    assert!(world.receive(1, 0, 1).await.is_empty(), "invisible");
    let received = world.update(1, received).await.expect("a valid receipt");
    assert_eq!(world.delete(1, received).await, Outcome::Done);
    assert_eq!(drained(&world).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_take_over_releases_waiting_consumers() {
    let world = World::new(3, false).await;
    let consumer = waiting(&world, 0, 0).await;

    world.placement.set(1);
    send(&world, 1, "job").await;
    world.sweep(0).await;

    let error = consumer.await.expect("no panic").expect_err("released");
    assert!(matches!(error, QueueError::NotOwner(_)), "{error}");
    let fault = trestle_model::fault::Fault::from(error);
    assert_eq!(fault.reason, trestle_model::fault::Reason::ServerUnavailable);
    assert!(fault.retry_after.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_takes_over_its_queue_until_the_consumers_of_that_take_it_back() {
    let world = World::new(8, true).await;
    world.placement.set(Placement::SPLIT[0]);
    let consumer = waiting(&world, 1, 1).await;
    assert_eq!(send(&world, 0, "poison").await, Outcome::Done);
    let messages = &world.services[0];
    for _ in 0..=DEQUEUES_MAX {
        world.clock.advance(VISIBILITY_TIMEOUT);
        let received = messages.receive(&world.access, &world.queues[0], receive(1)).await;
        received.expect("received").complete();
    }
    let [(_, work), (_, dead)] = [world.head(0).await, world.head(1).await];
    assert_eq!((work.owner, work.count, dead.count), (dead.owner, 0, 1));

    world.services[1].follow_owners().await.expect("followed");
    world.services[0].follow_owners().await.expect("followed");
    let error = consumer.await.expect("no panic").expect_err("released");
    assert!(matches!(error, QueueError::NotOwner(_)), "{error}");
    let received = world.services[1].receive(&world.access, &world.queues[1], receive(1)).await;
    assert_eq!(received.expect("taken back").complete().len(), 1);
    assert_ne!(world.head(1).await.1.owner, dead.owner);
    assert_eq!(send(&world, 0, "next").await, Outcome::Done, "its own queue is still its own");
}

#[tokio::test]
async fn a_queue_that_was_taken_over_is_not_empty_at_its_former_owner() {
    let world = World::new(10, false).await;
    let messages = &world.services[0];
    let receive_one = async || {
        messages.receive(&world.access, &world.queues[0], receive(1)).await.map(|r| r.complete())
    };
    assert_eq!(receive_one().await.expect("received"), []);
    world.placement.set(1);
    assert_eq!(send(&world, 1, "job").await, Outcome::Done);

    assert!(matches!(receive_one().await, Err(QueueError::NotOwner(_))));
    world.placement.set(0);
    world.clock.advance(VISIBILITY_TIMEOUT);
    assert_eq!(receive_one().await.expect("taken back").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn consumers_of_a_queue_that_is_placed_elsewhere_are_let_go_at_once() {
    let world = World::new(9, false).await;
    let consumer = waiting(&world, 0, 0).await;
    world.placement.set(1);
    world.services[0].follow_owners().await.expect("followed");
    let error = consumer.await.expect("no panic").expect_err("released");
    assert!(matches!(error, QueueError::NotOwner(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_delete_by_another_process_releases_waiting_consumers() {
    let world = World::new(4, false).await;
    let consumer = waiting(&world, 0, 0).await;

    let queues = &world.services[1].queues;
    queues.delete(world.access.account(), world.queues[0].clone()).await.expect("deleted");
    world.sweep(0).await;

    let error = consumer.await.expect("no panic").expect_err("released");
    assert!(matches!(error, QueueError::QueueNotFound(_)), "{error}");
}

#[tokio::test]
async fn each_process_forgets_a_queue_that_another_one_deletes() {
    let world = World::new(11, false).await;
    let sweeper = Sweeper::new(world.services[0].clone());
    send(&world, 0, "job").await;
    let before = world.services[0].schedulers.retained_queues();
    let queues = &world.services[1].queues;
    queues.delete(world.access.account(), world.queues[0].clone()).await.expect("deleted");

    sweeper.tick(SweepScope::Own).await.expect("swept");

    assert_eq!(world.services[0].schedulers.retained_queues(), before - 1);
    assert_eq!(sweeper.pending().await.expect("readable"), 1, "its rows are left to another one");
}

#[tokio::test]
async fn settings_that_another_process_changed_apply_to_the_next_call() {
    let world = World::new(5, false).await;
    assert_eq!(send(&world, 0, "first").await, Outcome::Done);

    let queues = &world.services[1].queues;
    let update = queues.update(world.access.account(), world.queues[0].clone(), |record| {
        record.settings.deduplication_window = None;
        Ok(())
    });
    update.await.expect("updated");

    let messages = &world.services[0];
    let mut outgoing = crate::fixture::outgoing(0);
    outgoing.deduplication_id = Some("id".to_owned());
    let sent = messages.send(&world.access, &world.queues[0], vec![Ok(outgoing)], None).await;
    assert!(matches!(sent, Err(QueueError::Invalid(_))), "the queue has no window: {sent:?}");
}

#[tokio::test]
async fn settings_that_another_process_widens_hold_for_the_next_call_here() {
    let world = World::new(12, false).await;
    let account = world.access.account();
    let narrow = |record: &mut crate::record::QueueRecord| {
        record.settings.deduplication_window = None;
        Ok(())
    };
    let [here, other] = &world.services;
    here.queues.update(account, world.queues[0].clone(), narrow).await.expect("updated");
    let plain = vec![Ok(crate::fixture::outgoing(1))];
    here.send(&world.access, &world.queues[0], plain, None).await.expect("it has an index here");
    let widen = |record: &mut crate::record::QueueRecord| {
        record.settings.deduplication_window = Some(Duration::from_secs(60));
        Ok(())
    };
    other.queues.update(account, world.queues[0].clone(), widen).await.expect("updated");

    let mut outgoing = crate::fixture::outgoing(0);
    outgoing.deduplication_id = Some("id".to_owned());
    let sent = here.send(&world.access, &world.queues[0], vec![Ok(outgoing)], None).await;
    assert!(sent.expect("sent")[0].is_ok(), "the window is there");
}

#[tokio::test]
async fn a_queue_without_tokens_rejects_a_take_over_until_it_is_cleared() {
    let world = World::new(6, false).await;
    let (id, head) = world.head(0).await;
    let last = QueueHead { token: FencingToken::LAST, ..head };
    let spec = trestle_kv::ChangeSpec::new(keys::queue_domain(id));
    let put = move |_: &trestle_kv::Reads<'_>, _: trestle_kv::Version| {
        let mut writes = trestle_kv::Writes::new();
        last.put(id, &mut writes);
        Ok::<_, QueueError>((writes, ()))
    };
    trestle_kv::transact(&world.store, spec, put).await.expect("stored").expect("decided");

    let messages = &world.services[0];
    let message = || vec![Ok(crate::fixture::outgoing(0))];
    // The first call detects that it is not the owner, the next one that it cannot take over.
    let first = messages.send(&world.access, &world.queues[0], message(), None).await;
    let second = messages.send(&world.access, &world.queues[0], message(), None).await;
    let exhausted = |sent: &Result<_, QueueError>| match sent {
        Err(QueueError::TokensExhausted) => true,
        Err(error) => rejected(error) != Outcome::Rejected,
        Ok(_) => false,
    };
    let outcomes: [&Result<Vec<_>, QueueError>; 2] = [&first, &second];
    assert!(outcomes.into_iter().any(exhausted), "{first:?}, {second:?}");

    let account = world.access.account();
    messages.queues.clear(account, world.queues[0].clone()).await.expect("cleared");
    let sent = messages.send(&world.access, &world.queues[0], message(), None).await;
    assert_eq!(sent.expect("a new id has new tokens").len(), 1);
}

#[tokio::test]
async fn an_owner_with_exhausted_sequences_takes_over_again() {
    let world = World::new(7, false).await;
    send(&world, 0, "first").await;
    let (id, before) = world.head(0).await;
    world.services[0].schedulers.find(id).expect("open").exhaust_sequences();

    assert_eq!(send(&world, 0, "second").await, Outcome::Done);

    let (_, after) = world.head(0).await;
    assert_eq!(Some(after.token), before.token.next());
    assert_eq!(drained(&world).await, ["first", "second"]);
    let fence = world.services[0].schedulers.find(id).expect("open").fence(None);
    assert!(fence.check(Some(&before.encode())).is_err_and(|error| {
        matches!(error, crate::delivery::AttemptError::Fenced(f) if f.cause == FenceCause::NotOwner)
    }));
}
