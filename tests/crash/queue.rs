//! Many producers and consumers of one queue, the server killed again and again, and the history of
//! all clients checked against the guarantees of a queue.

mod client;
mod history;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tempfile::TempDir;
use tonic::transport::Channel;
use trestle_proto::queue::v1::{
    CreateQueueRequest, DeadLetterPolicy, Queue as QueueMessage, ReceiveMessagesRequest,
};
use trestle_tests::{Queue, Server, receipt_of, seconds, text_of};

use self::{
    client::{Client, DEQUEUES_MAX, Site, Way},
    history::{CallOutcome, Event, Redrive, check_groups, histories},
};
use crate::start;

/// Kills under load, at least.
const KILLS: usize = 10;
/// The time limit of a run.
const KILLS_MAX: usize = 10 * KILLS;
const PRODUCERS: usize = 4;
const CONSUMERS: usize = 12;
/// Fewest deliveries of a run: it continues until then.
const DELIVERIES_MIN: usize = 500;
/// The same for deliveries of dead letters, and of redriven messages.
const DEAD_LETTERS_MIN: usize = 50;
const MOVED_MIN: u32 = 50;
/// The same for deliveries in group order.
const IN_TURN_MIN: usize = 50;

/// The remaining messages of a queue: ids, and the numbers of each group in the order of delivery.
#[derive(Default)]
struct Left {
    ids: BTreeSet<String>,
    groups: BTreeMap<String, Vec<u64>>,
}

/// Receives and deletes until nothing is left.
async fn drain(queue: &Queue) -> Left {
    let mut left = Left::default();
    loop {
        let request = ReceiveMessagesRequest {
            max_messages: Some(32),
            visibility_timeout: Some(seconds(3600)),
            // Longer than every visibility timeout.
            wait: Some(seconds(4)),
            ..Default::default()
        };
        let received = queue.receive_as(request).await.unwrap();
        if received.is_empty() {
            return left;
        }
        for delivery in &received {
            let id = receipt_of(delivery).message_id;
            assert!(left.ids.insert(id.clone()), "{id} was received twice while it was held");
            let message = delivery.message.as_ref().unwrap();
            let number = text_of(message).rsplit('-').next().unwrap().parse().unwrap();
            left.groups.entry(message.ordering_group.clone()).or_default().push(number);
        }
        let receipts = received.iter().map(receipt_of).collect();
        for deleted in queue.delete_all(receipts).await.unwrap() {
            deleted.unwrap();
        }
    }
}

pub(crate) async fn create(channel: &Channel) -> Queue {
    create_with(channel, QueueMessage { name: "jobs".to_owned(), ..Default::default() }).await
}

async fn create_with(channel: &Channel, settings: QueueMessage) -> Queue {
    let queue = Queue::over(channel, &settings.name);
    let request = CreateQueueRequest { queue: Some(settings) };
    queue.client().create_queue(request).await.unwrap();
    queue
}

/// A queue with dead letters.
async fn with_dead_letters(channel: &Channel) -> Site {
    let name = |name: &str| QueueMessage { name: name.to_owned(), ..Default::default() };
    let policy = DeadLetterPolicy { queue: "dead".to_owned(), max_dequeue_count: DEQUEUES_MAX };
    let dead = create_with(channel, name("dead")).await;
    let jobs = QueueMessage { dead_letter: Some(policy), ..name("jobs") };
    Site { jobs: create_with(channel, jobs).await, dead: Some(dead) }
}

/// The events of all clients.
#[derive(Debug)]
struct Work {
    deliveries: usize,
    /// Deliveries of dead letters.
    dead_lettered: usize,
    moved: u32,
}

impl Work {
    fn of(clients: &[Client]) -> Self {
        let events =
            || clients.iter().flat_map(|client| &client.history).map(|outcome| &outcome.event);
        Self {
            deliveries: events().filter(|event| event.is_delivery()).count(),
            dead_lettered: events().filter(|event| event.is_of_dead_letter()).count(),
            moved: clients.iter().map(|client| client.moved).sum(),
        }
    }

    fn is_enough(&self) -> bool {
        self.deliveries >= DELIVERIES_MIN
            && self.dead_lettered >= DEAD_LETTERS_MIN
            && self.moved >= MOVED_MIN
    }
}

fn clients(seed: u64, way: &Way) -> Vec<Client> {
    (0..PRODUCERS + CONSUMERS).map(|number| Client::new(number, seed, way.clone())).collect()
}

/// Every client works until its end, through each endpoint in turn.
async fn work(clients: &mut [Client], ways: &[Site]) {
    let (producers, consumers) = clients.split_at_mut(PRODUCERS);
    let ways = || ways.iter().cycle();
    tokio::join!(
        join_all(producers.iter_mut().zip(ways()).map(|(client, site)| client.produce(site))),
        join_all(consumers.iter_mut().zip(ways()).map(|(client, site)| client.consume(site))),
    );
}

/// Checks the history of all clients against the guarantees and the remaining messages.
async fn check(clients: &[Client], site: &Site) {
    let mut count = site.jobs.count().await;
    if let Some(dead) = &site.dead {
        count += dead.count().await;
    }
    let mut left = drain(&site.jobs).await;
    if let Some(dead) = &site.dead {
        // Messages over the delivery limit are dead-lettered by now.
        for id in drain(dead).await.ids {
            assert!(left.ids.insert(id.clone()), "{id} is in both queues");
        }
    }
    let redrives: Vec<Redrive> = clients.iter().flat_map(|c| c.redrives.iter().copied()).collect();
    let outcome = || clients.iter().flat_map(|client| &client.history);
    let mut histories = histories(outcome());
    let deliveries = outcome().filter(|outcome| outcome.event.is_delivery()).count();
    let (messages, left_count) = (histories.len(), left.ids.len());
    println!("{messages} messages, {deliveries} deliveries, {left_count} left");
    assert!(deliveries >= DELIVERIES_MIN, "only {deliveries} deliveries");
    assert_eq!(count, u64::try_from(left_count).unwrap(), "the count is exact after kills");
    for (id, history) in &mut histories {
        history.check(id, &redrives);
        let is_left = left.ids.contains(id);
        assert!(history.may_be_deleted() || is_left, "{id} is lost: {:?}", history.events);
        assert!(!(history.is_deleted() && is_left), "{id} is back: {:?}", history.events);
    }
    for (group, numbers) in left.groups.iter().filter(|(group, _)| !group.is_empty()) {
        assert!(numbers.is_sorted(), "{group} is left in another order: {numbers:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_guarantees_hold_for_many_clients_through_kills() {
    let seed = super::kills::seed();
    println!("to repeat: CRASH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let data = tempfile::tempdir().unwrap();
    let mut clients = clients(seed, &Way::Direct);
    let began = Instant::now();
    let mut kills = 0;
    while kills < KILLS || !Work::of(&clients).is_enough() {
        assert!(kills < KILLS_MAX, "only {:?}", Work::of(&clients));
        let server = start(&data, &[]);
        let ways = [with_dead_letters(&server.channel()).await];
        let kill = async {
            let after = Duration::from_millis(random.random_range(200..1800));
            tokio::time::sleep(after).await;
            server.kill();
        };
        Box::pin(async { tokio::join!(work(&mut clients, &ways), kill) }).await;
        kills += 1;
    }

    let server = start(&data, &[]);
    let site = with_dead_letters(&server.channel()).await;
    let done = Work::of(&clients);
    println!("{kills} kills in {:?}, {done:?}", began.elapsed());
    check(&clients, &site).await;
    assert!(
        done.dead_lettered >= DEAD_LETTERS_MIN,
        "only {} deliveries of dead letters",
        done.dead_lettered
    );
    assert!(done.moved >= MOVED_MIN, "only {} moved back", done.moved);
    assert_eq!(server.terminate(), Some(0));
}

/// The queue role in a process of its own, at an address.
async fn role(data: &TempDir, address: String) -> Server {
    let path = data.path().to_str().expect("a path in UTF-8").to_owned();
    let start = move || Server::start_at(&address, &["--roles", "queue", "--data-dir", &path], &[]);
    tokio::task::spawn_blocking(start).await.expect("it starts")
}

/// A gateway in front of a queue role, with more settings.
pub(crate) fn gateway(role: &Server, more: &[(&str, &str)]) -> Server {
    let endpoint = role.endpoint();
    let settings = [
        ("TRESTLE__GATEWAY__QUEUE_ENDPOINT", endpoint.as_str()),
        // No client uses tables in this test.
        ("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str()),
    ];
    Server::start(&["--roles", "gateway"], &[&settings, more].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue_guarantees_and_group_order_hold_through_kills_behind_two_gateways() {
    let seed = super::kills::seed();
    println!("to repeat: CRASH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let data = tempfile::tempdir().unwrap();
    let mut server = role(&data, "127.0.0.1:0".to_owned()).await;
    let address = server.address("grpc");
    // One rejects calls at once while the process is down, the other one queues them.
    let gateways = [gateway(&server, &[("TRESTLE__GATEWAY__WAIT_MS", "0")]), gateway(&server, &[])];
    let jobs = [create(&gateways[0].channel()).await, Queue::over(&gateways[1].channel(), "jobs")];
    let ways = jobs.map(|jobs| Site { jobs, dead: None });
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = clients(seed, &Way::Gateway(Arc::clone(&stop)));

    let kills = async {
        for _ in 0..KILLS {
            let after = Duration::from_millis(random.random_range(300..1500));
            tokio::time::sleep(after).await;
            server.kill();
            server = role(&data, address.clone()).await;
        }
        // The last process is used too.
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.store(true, Relaxed);
        server
    };
    let ((), server) = Box::pin(async { tokio::join!(work(&mut clients, &ways), kills) }).await;

    check(&clients, &ways[1]).await;
    let outcome: Vec<&CallOutcome> = clients.iter().flat_map(|client| &client.history).collect();
    let in_turn = check_groups(&histories(outcome.iter().copied()));
    let rejected: BTreeSet<_> = clients.iter().flat_map(|client| &client.rejected).collect();
    println!("{in_turn} deliveries in turn, {} rejected", rejected.len());
    assert!(in_turn >= IN_TURN_MIN, "only {in_turn} deliveries in turn");
    assert!(!rejected.is_empty(), "no client was rejected");
    for outcome in outcome {
        if let Event::Received { message, .. } = &outcome.event {
            assert!(!rejected.contains(&message.text), "UNAVAILABLE, and sent: {message:?}");
        }
    }
    assert_eq!(gateways.map(Server::terminate), [Some(0); 2]);
    assert_eq!(server.terminate(), Some(0));
}
