//! Sending: a batch of messages, each with an outcome of its own, in one commit.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use trestle_kv::{Write, transact};
use trestle_service::{
    clock::Ticks,
    fault::{Fault, Reason},
    limits::SEND_REQUEST_REMEMBERED,
    name::QueueName,
};

use crate::{
    authorize::Access,
    error::QueueError,
    finish::finish,
    keys::{self, Place, QueueId, Remembered},
    memory::{Memory, SentState},
    messages::{Messages, Miss},
    queues::Queue,
    receipt::Receipt,
    stored::{Body, MessageState, Payload},
};

/// A message to send, checked.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    /// What it carries.
    pub(crate) payload: Payload,
    /// How long it is hidden at first.
    pub(crate) delay: Duration,
    /// How long it lives; for ever where none.
    pub(crate) life: Option<Duration>,
    /// Its deduplication id.
    pub(crate) deduplication_id: Option<String>,
}

/// A message that was sent, or the earlier one that stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// How it was when it was sent.
    pub(crate) sent: SentState,
    /// Whether it is the earlier one.
    pub(crate) is_duplicate: bool,
}

/// What was sent, and the places that were filled.
type Decided = (Vec<Sent>, Vec<Place>);

/// A message ready to be written.
struct Prepared {
    sent: SentState,
    body: Bytes,
    /// What its deduplication id is remembered by, and where that is among what was read.
    deduplication: Option<(Bytes, usize)>,
}

/// A send ready to be decided.
struct Plan {
    id: QueueId,
    now: Ticks,
    /// What the request id is remembered by.
    request: Option<Bytes>,
    /// How long deduplication ids are remembered.
    window: Duration,
    messages: Vec<Prepared>,
}

impl Messages {
    /// Sends messages. With a `request_id`, a repeated send answers what the first one did.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn send(
        &self,
        access: &Access,
        name: &QueueName,
        messages: Vec<Outgoing>,
        request_id: Option<String>,
    ) -> Result<Vec<Sent>, QueueError> {
        let messages = Arc::new(messages);
        self.with_queue(access, name, |queue| {
            let (messages, request_id) = (Arc::clone(&messages), request_id.clone());
            finish(self.clone().send_to(queue, messages, request_id))
        })
        .await
    }

    async fn send_to(
        self,
        queue: Queue,
        messages: Arc<Vec<Outgoing>>,
        request_id: Option<String>,
    ) -> Result<Vec<Sent>, Miss> {
        let id = queue.record.id;
        check_deduplication(&queue, &messages)?;
        let shelf = self.shelves.open(id).await?;
        let counter = self.sequences.counter().await?;
        let (_writing, now, first) = shelf.write(|| {
            let first = counter.take(messages.len());
            (first, first)
        });
        let request = request_id.map(|text| keys::memory(id, Remembered::Request, &text));
        let window = queue.record.settings.deduplication_window.unwrap_or_default();
        let mut reads = vec![keys::count(id)];
        reads.extend(request.clone());
        let mut prepared = Vec::with_capacity(messages.len());
        for (message, sequence) in messages.iter().zip(first..) {
            let deduplication = message.deduplication_id.as_ref().map(|text| {
                reads.push(keys::memory(id, Remembered::Deduplication, text));
                (reads.last().cloned().unwrap_or_default(), reads.len() - 1)
            });
            prepared.push(message.prepare(self.new_id(), sequence, now, deduplication));
        }
        let expires_at = prepared.iter().filter_map(|p| p.sent.state.expires_at).min();
        if let Some(expires_at) = expires_at {
            shelf.note_expiry(expires_at);
        }
        let plan = Plan { id, now, request, window, messages: prepared };
        let (sent, places) =
            transact(&*self.engine, reads, move |current| plan.decide(current)).await??;
        shelf.change(&[], &places);
        Ok(sent)
    }
}

/// Whether the queue takes the deduplication ids of the messages.
fn check_deduplication(queue: &Queue, messages: &[Outgoing]) -> Result<(), QueueError> {
    let with_id = messages.iter().position(|message| message.deduplication_id.is_some());
    match (with_id, queue.record.settings.deduplication_window) {
        (Some(index), None) => {
            let rule = "must be empty: the queue has no deduplication window";
            let field = format!("messages[{index}].deduplication_id");
            Err(Fault::violation(Reason::InvalidInput, field, rule).into())
        }
        _ => Ok(()),
    }
}

impl Outgoing {
    fn prepare(
        &self,
        id: uuid::Uuid,
        sequence: u64,
        now: Ticks,
        deduplication: Option<(Bytes, usize)>,
    ) -> Prepared {
        let place = Place { visible_at: now.after(self.delay), sequence };
        let expires_at = self.life.map(|life| now.after(life));
        let state =
            MessageState { id, inserted_at: now, expires_at, generation: 0, dequeue_count: 0 };
        let body = Body { inserted_at: now, origin: None, payload: self.payload.clone() };
        Prepared { sent: SentState { place, state }, body: body.encode(), deduplication }
    }
}

impl Plan {
    /// What to write, what was sent, and the places that were filled. `current` is the count, then what is remembered
    /// of the request, then of each deduplication id.
    fn decide(&self, current: &[Option<Bytes>]) -> Result<(Vec<Write>, Decided), Miss> {
        let Some(Some(count)) = current.first() else {
            return Err(Miss::Gone);
        };
        let count = keys::decode_number(count, "count of a queue")?;
        if self.request.is_some() {
            let value = current.get(1).and_then(Option::as_ref);
            if let Some(memory) = Memory::of(value, self.now)? {
                let sent = |sent| Sent { sent, is_duplicate: false };
                return Ok((Vec::new(), (memory.sent.into_iter().map(sent).collect(), Vec::new())));
            }
        }
        let (mut writes, mut sent, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut earlier: HashMap<&Bytes, SentState> = HashMap::new();
        for message in &self.messages {
            if let Some((key, at)) = &message.deduplication {
                let value = current.get(*at).and_then(Option::as_ref);
                let stored = Memory::of(value, self.now)?.and_then(|m| m.sent.first().copied());
                if let Some(first) = earlier.get(key).copied().or(stored) {
                    sent.push(Sent { sent: first, is_duplicate: true });
                    continue;
                }
                earlier.insert(key, message.sent);
                writes.extend(self.remember(key, self.window, vec![message.sent]));
            }
            let SentState { place, state } = message.sent;
            writes.push(Write::Put { key: keys::state(self.id, place), value: state.encode() });
            let key = keys::body(self.id, place.sequence);
            writes.push(Write::Put { key, value: message.body.clone() });
            sent.push(Sent { sent: message.sent, is_duplicate: false });
            places.push(place);
        }
        if !places.is_empty() {
            let added = u64::try_from(places.len()).unwrap_or(u64::MAX);
            let value = keys::encode_number(count.saturating_add(added));
            writes.push(Write::Put { key: keys::count(self.id), value });
        }
        if let Some(key) = &self.request {
            let states = sent.iter().map(|sent| sent.sent).collect();
            writes.extend(self.remember(key, SEND_REQUEST_REMEMBERED, states));
        }
        Ok((writes, (sent, places)))
    }

    fn remember(&self, key: &Bytes, window: Duration, sent: Vec<SentState>) -> [Write; 2] {
        let until = self.now.after(window);
        [
            Write::Put { key: key.clone(), value: Memory { until, sent }.encode() },
            Write::Put { key: keys::forget(until, key), value: keys::mark() },
        ]
    }
}

impl Sent {
    /// What deletes or updates it as long as nobody received it.
    pub(crate) fn receipt(&self) -> Receipt {
        Receipt { place: self.sent.place, generation: self.sent.state.generation }
    }
}
