//! Many producers and consumers of one queue, the server killed again and again, and the history of what everybody was
//! told held against what a queue promises.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use futures::future::join_all;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tonic::transport::Channel;
use trestle_proto::queue::v1::{
    CreateQueueRequest, Delivery, Queue as QueueMessage, ReceiptRef, ReceiveMessagesRequest,
};
use trestle_tests::{Queue, Refusal, receipt_of, seconds, text, text_of};

use crate::start;

const KILLS: usize = 10;
const PRODUCERS: usize = 4;
const CONSUMERS: usize = 12;
/// How long a delivery is hidden, in seconds.
const HIDDEN: i64 = 1;
/// Fewer deliveries than this would make the test mean little.
const DELIVERIES_MIN: usize = 500;

/// Wall time in nanoseconds, as the server sees it: it runs on the same machine.
#[allow(clippy::disallowed_methods, reason = "to compare with the times that the server tells")]
fn wall() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i128::try_from(since.as_nanos()).expect("fits")
}

/// What somebody was told.
#[derive(Debug, Clone)]
enum Event {
    Sent {
        id: String,
    },
    Received {
        id: String,
        count: u32,
        hidden_until: i128,
    },
    Extended {
        id: String,
        hidden_until: i128,
    },
    Deleted {
        id: String,
    },
    /// The call failed on the way: it may have happened.
    Unsure {
        id: String,
    },
}

/// An event between the start of its call and its answer.
#[derive(Debug, Clone)]
struct Told {
    begun: i128,
    answered: i128,
    event: Event,
}

/// A client, with what it was told so far and the receipts it holds.
struct Client {
    number: usize,
    random: StdRng,
    history: Vec<Told>,
    held: Vec<Delivery>,
    sent: usize,
}

impl Client {
    fn note(&mut self, begun: i128, event: Event) {
        self.history.push(Told { begun, answered: wall(), event });
    }

    /// Sends until the server is gone.
    async fn produce(&mut self, queue: &Queue) {
        loop {
            let count = self.random.random_range(1..8);
            let texts: Vec<_> =
                (0..count).map(|n| format!("{}-{}", self.number, self.sent + n)).collect();
            self.sent += count;
            let begun = wall();
            match queue.send_all(texts.iter().map(|t| text(t)).collect()).await {
                Ok(sent) => {
                    for sent in sent {
                        let id = sent.expect("nothing is wrong with it").message_id;
                        self.note(begun, Event::Sent { id });
                    }
                }
                Err(refusal) => return check_gone(&refusal),
            }
            // About as fast as the consumers, so that messages come back again and again.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Receives, extends and deletes until the server is gone.
    async fn consume(&mut self, queue: &Queue) {
        // Receipts of before the crash still count.
        while let Some(delivery) = self.held.pop() {
            if self.random.random_bool(0.5) && self.delete(queue, &receipt_of(&delivery)).await {
                return;
            }
        }
        loop {
            let begun = wall();
            let max = self.random.random_range(1..6);
            let received = match queue.receive(max, seconds(HIDDEN)).await {
                Ok(received) => received,
                Err(refusal) => return check_gone(&refusal),
            };
            for delivery in &received {
                let message = delivery.message.as_ref().expect("a message");
                let hidden_until = nanos(delivery.next_visible_time.as_ref());
                let (id, count) = (message.message_id.clone(), message.dequeue_count);
                assert!(text_of(message).contains('-'), "{message:?}");
                self.note(begun, Event::Received { id, count, hidden_until });
            }
            if received.is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            for delivery in received {
                let is_over = match self.random.random_range(0..10) {
                    0..=5 => self.delete(queue, &receipt_of(&delivery)).await,
                    6 => self.extend(queue, receipt_of(&delivery)).await,
                    7 => {
                        self.held.push(delivery);
                        false
                    }
                    _ => false,
                };
                if is_over {
                    return;
                }
            }
        }
    }

    /// Deletes; whether the server is gone.
    async fn delete(&mut self, queue: &Queue, receipt: &ReceiptRef) -> bool {
        let (begun, id) = (wall(), receipt.message_id.clone());
        match queue.delete(receipt.clone()).await {
            Ok(()) => self.note(begun, Event::Deleted { id }),
            // Lapsed, and received by somebody else.
            Err(refusal) if refusal.reason == "MESSAGE_NOT_FOUND" => {}
            Err(refusal) => {
                check_gone(&refusal);
                self.note(begun, Event::Unsure { id });
                return true;
            }
        }
        false
    }

    /// Extends; whether the server is gone.
    async fn extend(&mut self, queue: &Queue, receipt: ReceiptRef) -> bool {
        let (begun, id) = (wall(), receipt.message_id.clone());
        let hidden = self.random.random_range(0..3);
        match queue.update(receipt, seconds(hidden), None).await {
            Ok(_) => {
                // At least so long after the call began.
                let hidden_until = begun + i128::from(hidden) * 1_000_000_000;
                self.note(begun, Event::Extended { id, hidden_until });
            }
            Err(refusal) if refusal.reason == "MESSAGE_NOT_FOUND" => {}
            Err(refusal) => {
                check_gone(&refusal);
                self.note(begun, Event::Unsure { id });
                return true;
            }
        }
        false
    }
}

fn nanos(time: Option<&prost_types::Timestamp>) -> i128 {
    let time = time.expect("a time");
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

/// A kill is no answer: it has no reason of the server's.
fn check_gone(refusal: &Refusal) {
    assert_eq!(refusal.reason, "", "the server refused: {refusal:?}");
}

/// Whether whoever held a message may have given it back by a call that was under way when
/// somebody else was told that he received it.
fn given_back(history: &[Told], received: &Told) -> bool {
    let now = received.answered;
    let under_way = history.iter().filter(|told| told.begun <= now && told.answered >= now);
    under_way.into_iter().any(|told| match told.event {
        Event::Extended { hidden_until, .. } => hidden_until <= now,
        Event::Unsure { .. } => true,
        _ => false,
    })
}

/// What is known of one message.
#[derive(Default)]
struct Life {
    events: Vec<Told>,
}

impl Life {
    fn is_deleted(&self) -> bool {
        self.events.iter().any(|told| matches!(told.event, Event::Deleted { .. }))
    }

    fn may_be_deleted(&self) -> bool {
        let may = |e: &Event| matches!(e, Event::Deleted { .. } | Event::Unsure { .. });
        self.events.iter().any(|told| may(&told.event))
    }

    /// Holds the history of one message against the promises.
    fn check(&mut self, id: &str) {
        self.events.sort_by_key(|told| told.answered);
        let (mut live_until, mut counted, mut deleted_at) = (i128::MIN, 0, None);
        for told in &self.events {
            match told.event {
                Event::Received { count, hidden_until, .. } => {
                    let history = &self.events;
                    let in_turn = told.answered >= live_until || given_back(history, told);
                    assert!(in_turn, "{id}: received while held: {told:?} in {history:#?}");
                    assert!(count > counted, "{id}: {count} after {counted}");
                    let after_delete = deleted_at.is_some_and(|at| told.begun > at);
                    assert!(!after_delete, "{id}: received after its delete: {told:?}");
                    (live_until, counted) = (hidden_until, count);
                }
                Event::Extended { hidden_until, .. } => live_until = hidden_until,
                Event::Deleted { .. } => deleted_at = Some(told.answered),
                // It may have been given back at once.
                Event::Unsure { .. } => live_until = i128::MIN,
                Event::Sent { .. } => {}
            }
        }
    }
}

fn lives(clients: &[Client]) -> BTreeMap<String, Life> {
    let mut lives: BTreeMap<String, Life> = BTreeMap::new();
    for told in clients.iter().flat_map(|client| &client.history) {
        let (Event::Sent { id }
        | Event::Received { id, .. }
        | Event::Extended { id, .. }
        | Event::Deleted { id }
        | Event::Unsure { id }) = &told.event;
        lives.entry(id.clone()).or_default().events.push(told.clone());
    }
    lives
}

/// Receives until nothing is left; the ids.
async fn drain(queue: &Queue) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    loop {
        let request = ReceiveMessagesRequest {
            max_messages: Some(32),
            visibility_timeout: Some(seconds(3600)),
            // Longer than anything is hidden.
            wait: Some(seconds(4)),
            ..Default::default()
        };
        let received = queue.receive_as(request).await.unwrap();
        if received.is_empty() {
            return ids;
        }
        for delivery in &received {
            let id = receipt_of(delivery).message_id;
            assert!(ids.insert(id.clone()), "{id} was received twice while it was held");
        }
    }
}

pub(crate) async fn create(channel: &Channel) -> Queue {
    let queue = Queue::over(channel, "jobs");
    let settings = QueueMessage { name: "jobs".to_owned(), ..Default::default() };
    let request = CreateQueueRequest { queue: Some(settings) };
    queue.client().create_queue(request).await.unwrap();
    queue
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_keeps_its_promises_to_many_clients_through_kills() {
    let seed = super::kills::seed();
    println!("to repeat: CRASH_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let data = tempfile::tempdir().unwrap();
    let new = |number| Client {
        number,
        random: StdRng::seed_from_u64(seed.wrapping_add(number as u64)),
        history: Vec::new(),
        held: Vec::new(),
        sent: 0,
    };
    let mut clients: Vec<_> = (0..PRODUCERS + CONSUMERS).map(new).collect();
    let began = Instant::now();
    for _ in 0..KILLS {
        let server = start(&data, &[]);
        let queue = create(&server.channel()).await;
        let (producers, consumers) = clients.split_at_mut(PRODUCERS);
        let work = async {
            tokio::join!(
                join_all(producers.iter_mut().map(|client| client.produce(&queue))),
                join_all(consumers.iter_mut().map(|client| client.consume(&queue))),
            );
        };
        let kill = async {
            let after = Duration::from_millis(random.random_range(200..1800));
            tokio::time::sleep(after).await;
            server.kill();
        };
        Box::pin(async { tokio::join!(work, kill) }).await;
    }

    let server = start(&data, &[]);
    let queue = create(&server.channel()).await;
    let count = queue.count().await;
    let left = drain(&queue).await;

    let mut lives = lives(&clients);
    let deliveries = clients.iter().flat_map(|client| &client.history);
    let deliveries = deliveries.filter(|told| matches!(told.event, Event::Received { .. })).count();
    println!(
        "{KILLS} kills, {} messages, {deliveries} deliveries, {} left, in {:?}",
        lives.len(),
        left.len(),
        began.elapsed()
    );
    assert!(deliveries >= DELIVERIES_MIN, "only {deliveries} deliveries");
    assert_eq!(count, u64::try_from(left.len()).unwrap(), "the count is exact after kills");
    for (id, life) in &mut lives {
        life.check(id);
        assert!(life.may_be_deleted() || left.contains(id), "{id} is lost: {:?}", life.events);
        assert!(!(life.is_deleted() && left.contains(id)), "{id} is back: {:?}", life.events);
    }
    assert_eq!(server.terminate(), Some(0));
}
