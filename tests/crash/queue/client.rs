//! Producers and consumers that note what they are told.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tonic::Code;
use trestle_proto::queue::v1::{Delivery, OutgoingMessage, ReceiptRef};
use trestle_tests::{Queue, Refusal, receipt_of, seconds, text, text_of};

use super::history::{Event, Named, Told};

/// How long a delivery is hidden, in seconds.
const HIDDEN: i64 = 1;
/// Groups of a sender.
const GROUPS: u32 = 3;
/// How long a client rests that was told that nothing is there, or nothing works.
const REST: Duration = Duration::from_millis(20);

/// Wall time in nanoseconds, as the server sees it: it runs on the same machine.
#[allow(clippy::disallowed_methods, reason = "to compare with the times that the server tells")]
fn wall() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i128::try_from(since.as_nanos()).expect("fits")
}

/// How a client reaches the server, and so what a kill looks like to it.
#[derive(Clone)]
pub(super) enum Way {
    /// By a connection that is gone with the server; the work ends with it.
    Direct,
    /// Through a gateway, which says what became of each call; the work ends when it is told to.
    Gateway(Arc<AtomicBool>),
}

/// A call that failed.
struct Failed {
    /// Whether it may have done something.
    may_have_happened: bool,
}

/// A client, with what it was told so far and the receipts it holds.
pub(super) struct Client {
    number: usize,
    random: StdRng,
    way: Way,
    pub(super) history: Vec<Told>,
    held: Vec<Delivery>,
    sent: usize,
    /// Texts that were refused as not written.
    pub(super) refused: Vec<String>,
}

impl Client {
    pub(super) fn new(number: usize, seed: u64, way: Way) -> Self {
        let random = StdRng::seed_from_u64(seed.wrapping_add(number as u64));
        let (history, held, refused) = (Vec::new(), Vec::new(), Vec::new());
        Self { number, random, way, history, held, sent: 0, refused }
    }

    fn note(&mut self, begun: i128, event: Event) {
        self.history.push(Told { begun, answered: wall(), event });
    }

    /// What a failure means.
    fn failed(&self, refusal: &Refusal) -> Failed {
        let may_have_happened = match self.way {
            // A kill is no answer: it has no reason of the server's.
            Way::Direct => {
                assert_eq!(refusal.reason, "", "the server refused: {refusal:?}");
                true
            }
            Way::Gateway(_) => {
                assert_ne!(refusal.reason, "", "the gateway says why: {refusal:?}");
                let known = [Code::Unavailable, Code::Unknown].contains(&refusal.code);
                assert!(known, "{refusal:?}");
                refusal.code == Code::Unknown
            }
        };
        Failed { may_have_happened }
    }

    /// Whether the work is over: after a failure, or when it is told so.
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

    /// Sends until it is over.
    pub(super) async fn produce(&mut self, queue: &Queue) {
        while !self.is_over(false) {
            let batch = self.batch();
            let text_in = |message: &OutgoingMessage| match &message.body {
                Some(trestle_proto::queue::v1::outgoing_message::Body::Text(text)) => text.clone(),
                _ => String::new(),
            };
            let group = batch.first().map(|m| m.ordering_group.clone()).unwrap_or_default();
            let texts: Vec<_> = batch.iter().map(text_in).collect();
            let begun = wall();
            match queue.send_all(batch).await {
                Ok(sent) => {
                    for (sent, text) in sent.into_iter().zip(texts) {
                        let id = sent.expect("nothing is wrong with it").message_id;
                        let message = Named { id, text, group: group.clone() };
                        self.note(begun, Event::Sent { message });
                    }
                }
                Err(refusal) => {
                    if !self.failed(&refusal).may_have_happened {
                        self.refused.extend(texts);
                    }
                    if self.is_over(true) {
                        return;
                    }
                }
            }
            // About as fast as the consumers, so that messages come back again and again.
            tokio::time::sleep(REST).await;
        }
    }

    /// Receives, extends and deletes until it is over.
    pub(super) async fn consume(&mut self, queue: &Queue) {
        while !self.is_over(false) {
            // Receipts of before the crash still count.
            if self.random.random_bool(0.2)
                && let Some(delivery) = self.held.pop()
                && self.delete(queue, &receipt_of(&delivery)).await
            {
                return;
            }
            let begun = wall();
            let max = self.random.random_range(1..6);
            let received = match queue.receive(max, seconds(HIDDEN)).await {
                Ok(received) => received,
                Err(refusal) => {
                    self.failed(&refusal);
                    if self.is_over(true) {
                        return;
                    }
                    Vec::new()
                }
            };
            for delivery in &received {
                let message = delivery.message.as_ref().expect("a message");
                let hidden_until = nanos(delivery.next_visible_time.as_ref());
                let (id, count) = (message.message_id.clone(), message.dequeue_count);
                let (text, group) = (text_of(message).to_owned(), message.ordering_group.clone());
                assert!(text.contains('-'), "{message:?}");
                let message = Named { id, text, group };
                self.note(begun, Event::Received { message, count, hidden_until });
            }
            if received.is_empty() {
                tokio::time::sleep(REST).await;
            }
            for delivery in received {
                if self.handle(queue, delivery).await {
                    return;
                }
            }
        }
    }

    /// Deletes a delivery, extends it, keeps its receipt, or drops it; whether the work is over.
    async fn handle(&mut self, queue: &Queue, delivery: Delivery) -> bool {
        match self.random.random_range(0..10) {
            0..=5 => self.delete(queue, &receipt_of(&delivery)).await,
            6 => self.extend(queue, receipt_of(&delivery)).await,
            7 => {
                self.held.push(delivery);
                false
            }
            _ => false,
        }
    }

    /// Deletes; whether the work is over.
    async fn delete(&mut self, queue: &Queue, receipt: &ReceiptRef) -> bool {
        let (begun, id) = (wall(), receipt.message_id.clone());
        match queue.delete(receipt.clone()).await {
            Ok(()) => self.note(begun, Event::Deleted { id }),
            Err(refusal) => return self.changed_nothing(begun, id, &refusal),
        }
        false
    }

    /// Extends; whether the work is over.
    async fn extend(&mut self, queue: &Queue, receipt: ReceiptRef) -> bool {
        let (begun, id) = (wall(), receipt.message_id.clone());
        let hidden = self.random.random_range(0..3);
        match queue.update(receipt, seconds(hidden), None).await {
            Ok(_) => {
                // At least so long after the call began.
                let hidden_until = begun + i128::from(hidden) * 1_000_000_000;
                self.note(begun, Event::Extended { id, hidden_until });
            }
            Err(refusal) => return self.changed_nothing(begun, id, &refusal),
        }
        false
    }

    /// Notes a change that failed; whether the work is over.
    fn changed_nothing(&mut self, begun: i128, id: String, refusal: &Refusal) -> bool {
        // Lapsed, and received by somebody else.
        if refusal.reason == "MESSAGE_NOT_FOUND" {
            return false;
        }
        if self.failed(refusal).may_have_happened {
            self.note(begun, Event::Unsure { id });
        }
        self.is_over(true)
    }
}

fn nanos(time: Option<&prost_types::Timestamp>) -> i128 {
    let time = time.expect("a time");
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}
