//! Sending: a batch of messages, each with an outcome of its own, in one commit.

mod decide;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use trestle_kv::{Reads, Version, transact};
use trestle_model::fault::{Fault, Reason};
use trestle_model::name::QueueName;
use trestle_model::time::Ticks;

use self::decide::{PreparedMessage, SendPlan};
use crate::{
    authorize::QueueAccess,
    deduplication::{Sent, SentState},
    delivery::AttemptError,
    detached::detached,
    error::QueueError,
    keys::{self, GroupId, IdKind},
    messages::MessageOperations,
    queues::FoundQueue,
    slot::Slot,
    stored::{Body, MessageState, Payload},
};

/// A message to send, checked.
#[derive(Debug, Clone)]
pub(crate) struct NewMessage {
    /// Its content.
    pub(crate) payload: Payload,
    /// Its initial delay.
    pub(crate) delay: Duration,
    /// Its time to live (TTL); no expiry where none.
    pub(crate) time_to_live: Option<Duration>,
    /// Its deduplication id.
    pub(crate) deduplication_id: Option<String>,
    /// Its ordering group.
    pub(crate) group: Option<String>,
}

/// One message of a request: the message, or the error with which it is rejected.
pub(crate) type Attempt = Result<NewMessage, Fault>;

impl MessageOperations {
    /// Sends messages; returns the outcome of each. With a `request_id`, a repeated send returns the outcome of the
    /// first one.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], [`QueueError::NotOwner`], or a failed commit.
    pub(crate) async fn send(
        &self,
        access: &QueueAccess,
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
                _ => rejected_before(index),
            })
        };
        Ok(sent.into_iter().enumerate().map(outcome).collect())
    }

    async fn send_to(
        self,
        queue: FoundQueue,
        messages: Arc<Vec<Attempt>>,
        request_id: Option<String>,
    ) -> Result<Vec<Option<Sent>>, AttemptError> {
        let id = queue.record.id;
        check_deduplication(&queue, &messages)?;
        let scheduler = self.schedulers.open(&queue).await?;
        let (_writing, now, first) = scheduler.begin_insert(messages.len())?;
        let (mut spec, head) = scheduler.fence(queue.record.version).begin();
        let request =
            request_id.map(|text| spec.read(keys::deduplication(id, IdKind::Request, &text)));
        let window = queue.record.settings.deduplication_window.unwrap_or_default();
        let mut prepared = Vec::with_capacity(messages.len());
        for (message, sequence) in messages.iter().zip(first..=u64::MAX) {
            let Ok(message) = message else {
                prepared.push(None);
                continue;
            };
            let deduplication = message
                .deduplication_id
                .as_ref()
                .map(|text| spec.read(keys::deduplication(id, IdKind::Deduplication, text)));
            let group = message.group.as_deref().map(|name| {
                let group = GroupId::of(name);
                (group, spec.read(keys::group(id, group)))
            });
            let (sent, body) = message.prepare((self.new_id(), self.new_nonce()), sequence, now);
            prepared.push(Some(PreparedMessage { sent, body, deduplication, group }));
        }
        let plan = SendPlan { id, now, head, request, window, messages: prepared };
        let decide = move |reads: &Reads<'_>, _: Version| plan.decide(reads);
        let (sent, entries) = transact(&*self.engine, spec, decide).await??;
        scheduler.change(&[], &entries);
        Ok(sent)
    }
}

/// Whether the queue accepts the deduplication ids of the messages.
fn check_deduplication(queue: &FoundQueue, messages: &[Attempt]) -> Result<(), QueueError> {
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

/// The error of a message that was rejected in the first send of its request, and would be accepted now.
fn rejected_before(index: usize) -> Fault {
    let rule = "was rejected when the request was first made; a request that is made again answers what the first one \
                did: send it under another request_id";
    Fault::violation(Reason::InvalidInput, format!("messages[{index}]"), rule)
}

impl NewMessage {
    fn prepare(
        &self,
        (id, nonce): (uuid::Uuid, u64),
        sequence: u64,
        now: Ticks,
    ) -> (SentState, Bytes) {
        let slot = Slot { visible_at: now.after(self.delay), sequence };
        let expires_at = self.time_to_live.map(|time_to_live| now.after(time_to_live));
        let group = self.group.as_deref().map(GroupId::of);
        let (generation, dequeue_count) = (0, 0);
        let state = MessageState {
            id,
            inserted_at: now,
            expires_at,
            generation,
            nonce,
            dequeue_count,
            group,
        };
        let payload = self.payload.clone();
        let body = Body { inserted_at: now, origin: None, group: self.group.clone(), payload };
        (SentState { slot, state, waits: false }, body.encode())
    }
}
