//! Producers and consumers that record the outcomes of their calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tonic::Code;
use trestle_proto::queue::v1::{DeadLetterOrigin, Delivery, Message, OutgoingMessage, ReceiptRef};
use trestle_tests::{CallError, Queue, receipt_of, seconds, text, text_of};

use super::history::{CallOutcome, Event, Named, Redrive, Side};

/// The visibility timeout of a delivery, in seconds.
const VISIBILITY_TIMEOUT: i64 = 1;
/// Groups of a sender.
const GROUPS: u32 = 3;
/// Deliveries of a message before it is dead-lettered, if configured.
pub(super) const DEQUEUES_MAX: u32 = 2;
/// Pause of a client after an empty receive or a failure.
const REST: Duration = Duration::from_millis(20);

/// Wall time in nanoseconds, the same for the server on this machine.
#[allow(clippy::disallowed_methods, reason = "to compare with the times that the server returns")]
fn wall() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i128::try_from(since.as_nanos()).expect("fits")
}

/// How a client connects to the server, which determines the effect of a kill.
#[derive(Clone)]
pub(super) enum Way {
    /// A direct connection: the client ends when the server closes it.
    Direct,
    /// Through a gateway, which reports the outcome of each call; the client ends when stopped.
    Gateway(Arc<AtomicBool>),
}

/// A queue, and the one of its dead letters if it has any.
pub(super) struct Site {
    pub(super) jobs: Queue,
    pub(super) dead: Option<Queue>,
}

impl Site {
    /// The queue of this side.
    fn at(&self, side: Side) -> &Queue {
        match (side, &self.dead) {
            (Side::Dead, Some(dead)) => dead,
            _ => &self.jobs,
        }
    }
}

/// A call that failed.
struct Failed {
    /// Whether it may have been executed.
    may_have_happened: bool,
}

/// A client, with its history and the receipts it holds.
pub(super) struct Client {
    number: usize,
    random: StdRng,
    way: Way,
    pub(super) history: Vec<CallOutcome>,
    /// Calls that moved dead letters, or may have, and how many moved for sure.
    pub(super) redrives: Vec<Redrive>,
    pub(super) moved: u32,
    held: Vec<(Side, Delivery)>,
    sent: usize,
    /// Texts that were rejected as not written.
    pub(super) rejected: Vec<String>,
}

impl Client {
    pub(super) fn new(number: usize, seed: u64, way: Way) -> Self {
        let random = StdRng::seed_from_u64(seed.wrapping_add(number as u64));
        Self {
            number,
            random,
            way,
            history: Vec::new(),
            redrives: Vec::new(),
            moved: 0,
            held: Vec::new(),
            sent: 0,
            rejected: Vec::new(),
        }
    }

    fn record(&mut self, begun: i128, event: Event) {
        self.history.push(CallOutcome { begun, answered: wall(), event });
    }

    /// Classifies a failure.
    fn failed(&self, error: &CallError) -> Failed {
        let may_have_happened = match self.way {
            // The error of a kill has no reason of the server.
            Way::Direct => {
                assert_eq!(error.reason, "", "the server rejected: {error:?}");
                true
            }
            Way::Gateway(_) => {
                assert_ne!(error.reason, "", "the gateway reports the reason: {error:?}");
                let is_expected = [Code::Unavailable, Code::Unknown].contains(&error.code);
                assert!(is_expected, "{error:?}");
                error.code == Code::Unknown
            }
        };
        Failed { may_have_happened }
    }

    /// Whether the client ends: after a failure, or when stopped.
    fn is_over(&self, has_failed: bool) -> bool {
        match &self.way {
            Way::Direct => has_failed,
            Way::Gateway(stop) => stop.load(Relaxed),
        }
    }

    /// The next messages; through gateways, some of them in groups.
    fn batch(&mut self) -> Vec<OutgoingMessage> {
        let count = self.random.random_range(1..8);
        let group = match self.way {
            Way::Direct => 0,
            Way::Gateway(_) => self.random.random_range(0..=GROUPS),
        };
        let ordering_group = match group {
            0 => String::new(),
            group => format!("{}-{group}", self.number),
        };
        let texts = (0..count).map(|n| format!("{}-{}", self.number, self.sent + n));
        let message =
            |t: String| OutgoingMessage { ordering_group: ordering_group.clone(), ..text(&t) };
        let batch = texts.map(message).collect();
        self.sent += count;
        batch
    }

    /// Sends until the client ends.
    pub(super) async fn produce(&mut self, site: &Site) {
        while !self.is_over(false) {
            let batch = self.batch();
            let text_in = |message: &OutgoingMessage| match &message.body {
                Some(trestle_proto::queue::v1::outgoing_message::Body::Text(text)) => text.clone(),
                _ => String::new(),
            };
            let group = batch.first().map(|m| m.ordering_group.clone()).unwrap_or_default();
            let texts: Vec<_> = batch.iter().map(text_in).collect();
            let begun = wall();
            match site.jobs.send_all(batch).await {
                Ok(sent) => {
                    for (sent, text) in sent.into_iter().zip(texts) {
                        let id = sent.expect("nothing is wrong with it").message_id;
                        let message = Named { id, text, group: group.clone() };
                        self.record(begun, Event::Sent { message });
                    }
                }
                Err(error) => {
                    if !self.failed(&error).may_have_happened {
                        self.rejected.extend(texts);
                    }
                    if self.is_over(true) {
                        return;
                    }
                }
            }
            // About as fast as the consumers, so that messages are redelivered often.
            tokio::time::sleep(REST).await;
        }
    }

    /// Receives, extends, deletes and redrives until the client ends.
    pub(super) async fn consume(&mut self, site: &Site) {
        while !self.is_over(false) {
            // Receipts from before the crash are still valid.
            if self.random.random_bool(0.2)
                && let Some((side, delivery)) = self.held.pop()
                && self.delete(site.at(side), &receipt_of(&delivery)).await
            {
                return;
            }
            if let Some(dead) = &site.dead
                && self.random.random_bool(0.1)
                && self.redrive(dead).await
            {
                return;
            }
            let side = if self.random.random_bool(0.2) { Side::Dead } else { Side::Work };
            let side = if site.dead.is_some() { side } else { Side::Work };
            let begun = wall();
            let max = self.random.random_range(1..6);
            let received = match site.at(side).receive(max, seconds(VISIBILITY_TIMEOUT)).await {
                Ok(received) => received,
                Err(error) => {
                    self.failed(&error);
                    if self.is_over(true) {
                        return;
                    }
                    Vec::new()
                }
            };
            for delivery in &received {
                let message = delivery.message.as_ref().expect("a message");
                let invisible_until = nanos(delivery.next_visible_time.as_ref());
                let count = message.dequeue_count;
                check_origin(site, side, message);
                let message = named(message);
                self.record(begun, Event::Received { message, side, count, invisible_until });
            }
            if received.is_empty() {
                tokio::time::sleep(REST).await;
            }
            for delivery in received {
                if self.handle(site.at(side), side, delivery).await {
                    return;
                }
            }
        }
    }

    /// Deletes a delivery, extends it, keeps its receipt, or drops it; whether the client ends.
    async fn handle(&mut self, queue: &Queue, side: Side, delivery: Delivery) -> bool {
        match self.random.random_range(0..10) {
            0..=5 => self.delete(queue, &receipt_of(&delivery)).await,
            6 => self.extend(queue, receipt_of(&delivery)).await,
            7 => {
                self.held.push((side, delivery));
                false
            }
            _ => false,
        }
    }

    /// Redrives dead letters to their source; whether the client ends.
    async fn redrive(&mut self, dead: &Queue) -> bool {
        let (begun, max) = (wall(), self.random.random_range(1..20));
        let moved = dead.redrive("", max).await;
        let is_over = match &moved {
            Ok(moved) => {
                self.moved += moved;
                false
            }
            Err(error) => {
                self.failed(error);
                self.is_over(true)
            }
        };
        if moved != Ok(0) {
            self.redrives.push(Redrive { begun, answered: wall() });
        }
        is_over
    }

    /// Deletes; whether the client ends.
    async fn delete(&mut self, queue: &Queue, receipt: &ReceiptRef) -> bool {
        let (begun, id) = (wall(), receipt.message_id.clone());
        match queue.delete(receipt.clone()).await {
            Ok(()) => self.record(begun, Event::Deleted { id }),
            Err(error) => return self.changed_nothing(begun, id, &error),
        }
        false
    }

    /// Extends; whether the client ends.
    async fn extend(&mut self, queue: &Queue, receipt: ReceiptRef) -> bool {
        let (begun, id) = (wall(), receipt.message_id.clone());
        let timeout = self.random.random_range(0..3);
        match queue.update(receipt, seconds(timeout), None).await {
            Ok(_) => {
                // At least so long after the call began.
                let invisible_until = begun + i128::from(timeout) * 1_000_000_000;
                self.record(begun, Event::Extended { id, invisible_until });
            }
            Err(error) => return self.changed_nothing(begun, id, &error),
        }
        false
    }

    /// Records a change that failed; whether the client ends.
    fn changed_nothing(&mut self, begun: i128, id: String, error: &CallError) -> bool {
        // Lapsed, and received by another client.
        if error.reason == "MESSAGE_NOT_FOUND" {
            return false;
        }
        if self.failed(error).may_have_happened {
            self.record(begun, Event::Unsure { id });
        }
        self.is_over(true)
    }
}

fn named(message: &Message) -> Named {
    let (id, text) = (message.message_id.clone(), text_of(message).to_owned());
    assert!(text.contains('-'), "{message:?}");
    Named { id, text, group: message.ordering_group.clone() }
}

/// A message is a dead letter after so many deliveries and not before. As long as it is one it has its fields.
fn check_origin(site: &Site, side: Side, message: &Message) {
    let (queue, dequeue_count) = (site.jobs.name(), DEQUEUES_MAX);
    let origin = (side == Side::Dead).then_some(DeadLetterOrigin { queue, dequeue_count });
    assert_eq!(message.dead_letter_origin, origin, "{message:?}");
    let is_exhausted = side == Side::Work && message.dequeue_count > DEQUEUES_MAX;
    assert!(site.dead.is_none() || !is_exhausted, "{message:?}");
}

fn nanos(time: Option<&prost_types::Timestamp>) -> i128 {
    let time = time.expect("a time");
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}
