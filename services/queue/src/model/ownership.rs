//! Two services on one store take queues over from each other, at any point of their calls: no message is lost,
//! duplicated or stranded.

mod fencing;
mod history;
mod store;
mod world;

use std::{sync::Arc, time::Duration};

use self::{history::Outcome, store::Placement, world::World};
use super::block_on;

const WORKERS: usize = 6;
const STEPS: usize = 40;

/// The operations of workers beside send, receive, delete and update.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Also {
    /// Messages are dead-lettered and moved back.
    Redrive,
    /// The queue is cleared, deleted and created.
    Clear,
}

/// The service that receives a call: mostly the one that should own the queue.
fn service(world: &World) -> usize {
    let placed = world.placement.of("work");
    match world.store.random.below(8) {
        1.. if placed != Placement::ANY => placed,
        _ => world.store.random.below(2),
    }
}

/// Repeats a send with a request id until it is acknowledged.
async fn send_until_acknowledged(world: &World, text: &str) {
    let id = format!("request {text}");
    for _ in 0..200 {
        let outcome = world.send(service(world), (text, None), (None, Some(&id))).await;
        if outcome == Outcome::Done {
            return;
        }
    }
    panic!("never acknowledged: {text}");
}

async fn work(world: Arc<World>, worker: usize, also: Also) {
    let random = world.store.random.clone();
    let mut received = Vec::new();
    for step in 0..STEPS {
        let (text, group) = (format!("{worker}.{step}"), format!("group {worker}"));
        let service = service(&world);
        match random.below(20) {
            0..5 => drop(world.send(service, (&text, None), (None, None)).await),
            5..8 => drop(world.send(service, (&text, None), (Some(&group), None)).await),
            8 => {
                let id = Some(format!("id {}", random.below(4)));
                world.send(service, (&text, id), (None, None)).await;
            }
            9 if also == Also::Redrive => send_until_acknowledged(&world, &text).await,
            10..14 => {
                let (queue, max) = (random.below(8) / 7, 1 + random.below(4));
                received.extend(world.receive(service, queue, max).await);
            }
            14..17 if !received.is_empty() => {
                let next = received.swap_remove(random.below(received.len()));
                world.delete(service, next).await;
            }
            17 if !received.is_empty() => {
                let next = received.swap_remove(random.below(received.len()));
                received.extend(world.update(service, next).await);
            }
            18 => match also {
                Also::Redrive => world.redrive(service).await,
                Also::Clear => world.clear(service, random.below(2) == 0).await,
            },
            19 => {
                let [first, second] = Placement::SPLIT;
                let placed = [0, 1, first, second, Placement::ANY][random.below(5)];
                world.placement.set(placed);
                world.clock.advance(Duration::from_secs(random.below(7) as u64));
            }
            _ => world.sweep(service).await,
        }
    }
}

/// One round of all operations.
async fn round(seed: u64, also: Also) {
    let world = World::new(seed, also == Also::Redrive).await;
    let workers: Vec<_> =
        (0..WORKERS).map(|worker| tokio::spawn(work(Arc::clone(&world), worker, also))).collect();
    for worker in workers {
        worker.await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    // Cancelled calls end in detached tasks.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let found = world.drain().await;
    world.history().check(&found);
}

fn rounds(seeds: std::ops::Range<u64>, also: Also) {
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| block_on(round(seed, also)));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

#[test]
fn repeated_take_overs_lose_duplicate_and_strand_no_message() {
    rounds(0..60, Also::Redrive);
}

#[test]
fn take_overs_during_clears_and_deletes_lose_duplicate_and_strand_no_message() {
    rounds(0..60, Also::Clear);
}
