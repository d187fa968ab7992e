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
    deduplication::{DeduplicationRecord, Sent, SentState},
    delivery::IndexEntry,
    detached::detached,
    error::QueueError,
    groups::NextInGroup,
    keys::{self, GroupId, IdKind, QueueId, Slot},
    messages::{AttemptError, Messages},
    queues::Queue,
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
    /// Its ordering group.
    pub(crate) group: Option<String>,
}

/// What a client sends as one message: the message, or why it is refused.
pub(crate) type Attempt = Result<Outgoing, Fault>;

/// What was sent, none where it was refused, and the slots that were filled.
type Decided = (Vec<Option<Sent>>, Vec<IndexEntry>);

/// A message ready to be written.
struct Prepared {
    sent: SentState,
    body: Bytes,
    /// What its deduplication id is remembered by, and where that is among what was read.
    deduplication: Option<(Bytes, usize)>,
    /// Its group, and where its last message is among what was read.
    group: Option<(GroupId, usize)>,
}

/// A send ready to be decided.
struct SendPlan {
    id: QueueId,
    now: Ticks,
    /// What the request id is remembered by.
    request: Option<Bytes>,
    /// How long deduplication ids are remembered.
    window: Duration,
    /// None where a message is refused.
    messages: Vec<Option<Prepared>>,
}

impl Messages {
    /// Sends messages; the outcome of each. With a `request_id`, a repeated send answers what the first one did.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn send(
        &self,
        access: &Access,
        name: &QueueName,
        messages: Vec<Attempt>,
        request_id: Option<String>,
    ) -> Result<Vec<Result<Sent, Fault>>, QueueError> {
        let messages = Arc::new(messages);
        let sent = self
            .with_queue(access, name, |queue| {
                let (messages, request_id) = (Arc::clone(&messages), request_id.clone());
                detached(self.clone().send_to(queue, messages, request_id))
            })
            .await?;
        let outcome = |(index, sent): (usize, Option<Sent>)| {
            sent.ok_or_else(|| match messages.get(index) {
                Some(Err(fault)) => fault.clone(),
                _ => refused_before(index),
            })
        };
        Ok(sent.into_iter().enumerate().map(outcome).collect())
    }

    async fn send_to(
        self,
        queue: Queue,
        messages: Arc<Vec<Attempt>>,
        request_id: Option<String>,
    ) -> Result<Vec<Option<Sent>>, AttemptError> {
        let id = queue.record.id;
        check_deduplication(&queue, &messages)?;
        let scheduler = self.schedulers.open(id).await?;
        let counter = self.sequences.counter().await?;
        let (_writing, now, first) = scheduler.write(|| {
            let first = counter.take(messages.len());
            (first, first)
        });
        let request = request_id.map(|text| keys::deduplication(id, IdKind::Request, &text));
        let window = queue.record.settings.deduplication_window.unwrap_or_default();
        let mut reads = vec![keys::count(id)];
        reads.extend(request.clone());
        let mut prepared = Vec::with_capacity(messages.len());
        for (message, sequence) in messages.iter().zip(first..) {
            let Ok(message) = message else {
                prepared.push(None);
                continue;
            };
            let deduplication = message.deduplication_id.as_ref().map(|text| {
                reads.push(keys::deduplication(id, IdKind::Deduplication, text));
                (reads.last().cloned().unwrap_or_default(), reads.len() - 1)
            });
            let group = message.group.as_deref().map(|name| {
                let group = GroupId::of(name);
                reads.push(keys::group(id, group));
                (group, reads.len() - 1)
            });
            let (sent, body) = message.prepare(self.new_id(), sequence, now);
            prepared.push(Some(Prepared { sent, body, deduplication, group }));
        }
        let plan = SendPlan { id, now, request, window, messages: prepared };
        let (sent, slots) =
            transact(&*self.engine, reads, move |current| plan.decide(current)).await??;
        scheduler.change(&[], &slots);
        Ok(sent)
    }
}

/// Whether the queue takes the deduplication ids of the messages.
fn check_deduplication(queue: &Queue, messages: &[Attempt]) -> Result<(), QueueError> {
    let has_id = |message: &Attempt| {
        message.as_ref().is_ok_and(|message| message.deduplication_id.is_some())
    };
    let with_id = messages.iter().position(has_id);
    match (with_id, queue.record.settings.deduplication_window) {
        (Some(index), None) => {
            let rule = "must be empty: the queue has no deduplication window";
            let field = format!("messages[{index}].deduplication_id");
            Err(Fault::violation(Reason::InvalidInput, field, rule).into())
        }
        _ => Ok(()),
    }
}

/// The failure of a message that was refused when its request was made first, and would be taken now.
fn refused_before(index: usize) -> Fault {
    let rule = "was refused when the request was first made; a request that is made again answers what the first one \
                did: send it under another request_id";
    Fault::violation(Reason::InvalidInput, format!("messages[{index}]"), rule)
}

impl Outgoing {
    fn prepare(&self, id: uuid::Uuid, sequence: u64, now: Ticks) -> (SentState, Bytes) {
        let slot = Slot { visible_at: now.after(self.delay), sequence };
        let expires_at = self.life.map(|life| now.after(life));
        let group = self.group.as_deref().map(GroupId::of);
        let (generation, dequeue_count) = (0, 0);
        let state =
            MessageState { id, inserted_at: now, expires_at, generation, dequeue_count, group };
        let payload = self.payload.clone();
        let body = Body { inserted_at: now, origin: None, group: self.group.clone(), payload };
        (SentState { slot, state, waits: false }, body.encode())
    }
}

impl SendPlan {
    /// What to write, what was sent, and the slots that were filled. `current` is the count, then what is remembered
    /// of the request, then of each message what is remembered of its deduplication id, and the last of its group.
    fn decide(&self, current: &[Option<Bytes>]) -> Result<(Vec<Write>, Decided), AttemptError> {
        let Some(Some(count)) = current.first() else {
            return Err(AttemptError::QueueReplaced);
        };
        let count = keys::decode_number(count, "count of a queue")?;
        if self.request.is_some() {
            let value = current.get(1).and_then(Option::as_ref);
            if let Some(memory) = DeduplicationRecord::of(value, self.now)? {
                return Ok((Vec::new(), (memory.sent, Vec::new())));
            }
        }
        let (mut writes, mut sent, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        let mut added = 0;
        let mut earlier: HashMap<&Bytes, SentState> = HashMap::new();
        let mut lasts: HashMap<GroupId, u64> = HashMap::new();
        for message in &self.messages {
            let Some(message) = message else {
                sent.push(None);
                continue;
            };
            if let Some((key, at)) = &message.deduplication {
                let value = current.get(*at).and_then(Option::as_ref);
                let stored = DeduplicationRecord::of(value, self.now)?;
                let stored = stored.and_then(|m| m.sent.first().copied().flatten());
                let stored = stored.map(|earlier| earlier.sent);
                if let Some(first) = earlier.get(key).copied().or(stored) {
                    sent.push(Some(Sent { sent: first, is_duplicate: true }));
                    continue;
                }
            }
            let before = match message.group {
                None => None,
                Some((group, at)) => match lasts.get(&group) {
                    Some(last) => Some(*last),
                    None => last_of(current.get(at))?,
                },
            };
            let stated = SentState { waits: before.is_some(), ..message.sent };
            let now_sent = Some(Sent { sent: stated, is_duplicate: false });
            if let Some((key, _)) = &message.deduplication {
                earlier.insert(key, stated);
                writes.extend(self.remember(key, self.window, vec![now_sent]));
            }
            self.put(message, stated, before, &mut writes);
            if let Some((group, _)) = message.group {
                lasts.insert(group, stated.slot.sequence);
            }
            let entry = IndexEntry { slot: stated.slot, expires_at: stated.state.expires_at };
            slots.extend(before.is_none().then_some(entry));
            sent.push(now_sent);
            added += 1;
        }
        if added > 0 {
            let value = keys::encode_number(count.saturating_add(added));
            writes.push(Write::Put { key: keys::count(self.id), value });
        }
        if let Some(key) = &self.request {
            writes.extend(self.remember(key, SEND_REQUEST_REMEMBERED, sent.clone()));
        }
        Ok((writes, (sent, slots)))
    }

    /// Writes a message, behind the one with the sequence `before` if that is given.
    fn put(
        &self,
        message: &Prepared,
        SentState { slot, state, .. }: SentState,
        before: Option<u64>,
        writes: &mut Vec<Write>,
    ) {
        let mut put = |key, value| writes.push(Write::Put { key, value });
        match before {
            None => put(keys::state(self.id, slot), state.encode()),
            Some(before) => {
                put(keys::next_in_group(self.id, before), NextInGroup { slot, state }.encode());
            }
        }
        if let Some((group, _)) = message.group {
            put(keys::group(self.id, group), keys::encode_number(slot.sequence));
        }
        put(keys::body(self.id, slot.sequence), message.body.clone());
    }

    fn remember(&self, key: &Bytes, window: Duration, sent: Vec<Option<Sent>>) -> [Write; 2] {
        let until = self.now.after(window);
        [
            Write::Put { key: key.clone(), value: DeduplicationRecord { until, sent }.encode() },
            Write::Put { key: keys::deduplication_expiry(until, key), value: keys::empty_value() },
        ]
    }
}

/// The sequence of the last message of a group, if it has any.
fn last_of(stored: Option<&Option<Bytes>>) -> Result<Option<u64>, QueueError> {
    let stored = stored.and_then(Option::as_ref);
    stored.map(|value| keys::decode_number(value, "last message of a group")).transpose()
}
