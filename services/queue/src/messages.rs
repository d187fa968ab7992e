//! What is done with messages: the parts that every operation shares.

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use trestle_kv::{CommitError, Engine, EngineError, Snapshot};
use trestle_service::{
    clock::{Clock, Ticks},
    name::QueueName,
};
use uuid::Uuid;

use crate::{
    authorize::Access,
    delivery::IndexEntry,
    delivery::MonotonicClock,
    delivery::Schedulers,
    delivery::Sequences,
    error::QueueError,
    keys::Slot,
    queues::{Queue, Queues},
    receipt::Receipt,
    stored::{Body, MessageState},
};

/// How often an operation looks up its queue again, because it was cleared meanwhile.
const LOOKUPS_MAX: usize = 8;

/// What operations on messages work with. Clones share everything.
#[derive(Clone)]
pub(crate) struct Messages {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) clock: Arc<MonotonicClock>,
    pub(crate) schedulers: Arc<Schedulers>,
    pub(crate) sequences: Arc<Sequences>,
    pub(crate) queues: Queues,
    /// The process is about to end: nobody is kept waiting any more.
    pub(crate) shutdown: CancellationToken,
    random: fn() -> u128,
}

/// A message that a consumer was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Where it stands now.
    pub(crate) slot: Slot,
    /// How it stands now.
    pub(crate) state: MessageState,
    /// What it carries.
    pub(crate) body: Body,
}

/// Why an operation on a numbered queue failed.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// The queue has another number by now, or is no more.
    QueueReplaced,
    /// Anything else.
    Failed(QueueError),
}

impl From<QueueError> for AttemptError {
    fn from(error: QueueError) -> Self {
        Self::Failed(error)
    }
}

impl From<CommitError> for AttemptError {
    fn from(error: CommitError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<EngineError> for AttemptError {
    fn from(error: EngineError) -> Self {
        Self::Failed(error.into())
    }
}

impl Messages {
    /// Works on `engine`; `random` makes ids.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        random: fn() -> u128,
    ) -> Self {
        let clock = Arc::new(MonotonicClock::new(clock));
        let schedulers = Arc::new(Schedulers::new(Arc::clone(&engine), Arc::clone(&clock)));
        let sequences = Arc::new(Sequences::new(Arc::clone(&engine)));
        let queues = Queues::new(Arc::clone(&engine), Arc::clone(&clock), Arc::clone(&schedulers));
        let shutdown = CancellationToken::new();
        Self { engine, clock, schedulers, sequences, queues, shutdown, random }
    }

    /// A new id.
    pub(crate) fn new_id(&self) -> Uuid {
        uuid::Builder::from_random_bytes((self.random)().to_be_bytes()).into_uuid()
    }

    /// Does something with a queue, again if it was cleared meanwhile.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or what `attempt` fails with.
    pub(crate) async fn with_queue<T, F>(
        &self,
        access: &Access,
        name: &QueueName,
        attempt: impl Fn(Queue) -> F,
    ) -> Result<T, QueueError>
    where
        F: Future<Output = Result<T, AttemptError>>,
    {
        for _ in 0..LOOKUPS_MAX {
            let queue = self.queues.open(access, name).await?;
            match attempt(queue).await {
                Ok(done) => return Ok(done),
                Err(AttemptError::Failed(error)) => return Err(error),
                Err(AttemptError::QueueReplaced) => {}
            }
        }
        Err(QueueError::QueueNotFound(name.clone()))
    }
}

impl Delivered {
    /// What deletes or extends this delivery.
    pub(crate) fn receipt(&self) -> Receipt {
        Receipt::of(self.slot, &self.state)
    }

    /// Where it stands, and until when.
    pub(crate) fn entry(&self) -> IndexEntry {
        IndexEntry { slot: self.slot, expires_at: self.state.expires_at }
    }
}

/// The state of a message, if it is there and not expired.
///
/// # Errors
/// [`QueueError::Corrupt`].
pub(crate) fn live(value: Option<&Bytes>, now: Ticks) -> Result<Option<MessageState>, QueueError> {
    let state = value.map(|value| MessageState::decode(value)).transpose()?;
    Ok(state.filter(|state| !state.is_expired(now)))
}

/// A message in a snapshot, if it is there and not expired. One that cannot be read is told to the log and to nobody
/// else: it must not keep the others, and nobody can be given it.
///
/// # Errors
/// A failed read.
pub(crate) async fn find(
    snapshot: &dyn Snapshot,
    id: crate::keys::QueueId,
    slot: Slot,
    now: Ticks,
) -> Result<Option<(MessageState, Body)>, QueueError> {
    let state = snapshot.get(&crate::keys::state(id, slot)).await?;
    let body = snapshot.get(&crate::keys::body(id, slot.sequence)).await?;
    let read = || {
        let Some(state) = live(state.as_ref(), now)? else { return Ok(None) };
        let body = body.ok_or_else(|| QueueError::corrupt("a message without a body"))?;
        Ok::<_, QueueError>(Some((state, Body::decode(&body)?)))
    };
    Ok(read().unwrap_or_else(|error| {
        tracing::error!(%error, sequence = slot.sequence, "a message cannot be read");
        None
    }))
}
