//! Operations on messages: the common parts.

use std::{error::Error, future::Future, sync::Arc};

use tokio_util::sync::CancellationToken;
use trestle_kv::{Engine, Snapshot};
use trestle_model::name::QueueName;
use trestle_model::time::{Clock, Ticks};
use trestle_rpc::log_rate::LogRate;
use uuid::Uuid;

use crate::{
    authorize::QueueAccess,
    delivery::{AttemptError, FenceCause, Fenced, IndexEntry, OwnershipPolicy, Schedulers},
    error::QueueError,
    head::OwnerId,
    keys::{self, QueueId},
    queues::{FoundQueue, Queues},
    receipt::Receipt,
    slot::Slot,
    stored::{Body, MessageState},
};

/// Most attempts of one operation, when its queue is cleared or changed repeatedly meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// The dependencies of operations on messages. Clones share them.
#[derive(Clone)]
pub(crate) struct MessageOperations {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) schedulers: Arc<Schedulers>,
    pub(crate) queues: Queues,
    /// The process is shutting down: waits end at once.
    pub(crate) shutdown: CancellationToken,
    /// The lines about messages that cannot be removed or released, by kind.
    pub(crate) failures: Arc<LogRate<&'static str>>,
    random: fn() -> u128,
}

/// A message that a consumer received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Its slot now.
    pub(crate) slot: Slot,
    /// Its state now.
    pub(crate) state: MessageState,
    /// Its body.
    pub(crate) body: Body,
}

impl MessageOperations {
    /// Works on `engine`, and owns the queues that `policy` allows; `clock` is for what people wrote down, `random`
    /// generates ids.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        random: fn() -> u128,
        policy: Arc<dyn OwnershipPolicy>,
    ) -> Self {
        let (owner, store) = (OwnerId(random()), Arc::clone(&engine));
        let schedulers = Arc::new(Schedulers::new(store, owner, policy));
        let queues = Queues::new(Arc::clone(&engine), clock, Arc::clone(&schedulers));
        let shutdown = CancellationToken::new();
        Self { engine, schedulers, queues, shutdown, failures: Arc::default(), random }
    }

    /// A new id.
    pub(crate) fn new_id(&self) -> Uuid {
        uuid::Builder::from_random_bytes((self.random)().to_be_bytes()).into_uuid()
    }

    /// A new nonce of a state; never 0.
    pub(crate) fn new_nonce(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, reason = "any 64 of the random bits")]
        let nonce = (self.random)() as u64;
        nonce.max(1)
    }

    /// Runs an operation on a queue; retries it, if the queue was cleared or its settings changed meanwhile.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], [`QueueError::NotOwner`], or what `attempt` fails with.
    pub(crate) async fn with_queue<T, F>(
        &self,
        access: &QueueAccess,
        name: &QueueName,
        attempt: impl Fn(FoundQueue) -> F,
    ) -> Result<T, QueueError>
    where
        F: Future<Output = Result<T, AttemptError>>,
    {
        for _ in 0..ATTEMPTS_MAX {
            let queue = self.queues.open(access, name).await?;
            match attempt(queue).await {
                Ok(done) => return Ok(done),
                Err(error) => self.may_retry(error, name)?,
            }
        }
        Err(QueueError::KeepsChanging(name.clone()))
    }

    /// Drops the cached state that a rejected change proves outdated. Fails unless the operation may look up its queue
    /// again.
    pub(crate) fn may_retry(
        &self,
        error: AttemptError,
        name: &QueueName,
    ) -> Result<(), QueueError> {
        match error {
            AttemptError::Failed(error) => Err(error),
            AttemptError::Fenced(fenced) => {
                self.drop_outdated(&fenced);
                match fenced.cause {
                    FenceCause::NotOwner => Err(QueueError::NotOwner(name.clone())),
                    FenceCause::QueueReplaced
                    | FenceCause::StaleRecord
                    | FenceCause::SequencesExhausted => Ok(()),
                }
            }
        }
    }

    /// Reports a problem of which no client is informed, at a bounded rate.
    pub(crate) fn log_failure(&self, problem: &'static str, error: &dyn Error) {
        if let Some(omitted) = self.failures.may_log(problem, std::time::Instant::now()) {
            tracing::warn!(%error, omitted, "{problem}");
        }
    }

    /// The error of a step of the background on one queue. A queue that another process owns, or that was deleted, is
    /// not an error.
    pub(crate) fn failure(&self, error: AttemptError) -> Option<QueueError> {
        match error {
            AttemptError::Failed(error) => Some(error),
            AttemptError::Fenced(fenced) => {
                self.drop_outdated(&fenced);
                None
            }
        }
    }

    /// Drops the cached state that a rejected change proves outdated: the scheduler, or the cached record.
    pub(crate) fn drop_outdated(&self, fenced: &Fenced) {
        self.schedulers.close_fenced(fenced);
        if matches!(fenced.cause, FenceCause::QueueReplaced | FenceCause::StaleRecord) {
            self.queues.drop_cached(fenced.id);
        }
    }
}

impl Delivered {
    /// The receipt of this delivery.
    pub(crate) fn receipt(&self) -> Receipt {
        Receipt::of(self.slot, &self.state)
    }

    /// Its entry of the index.
    pub(crate) fn entry(&self) -> IndexEntry {
        IndexEntry { slot: self.slot, expires_at: self.state.expires_at }
    }
}

/// A message in a snapshot, if it exists and has not expired. An unreadable one is only logged: it must not block reads
/// of the others, and no consumer can receive it.
///
/// # Errors
/// A failed read.
pub(crate) async fn find(
    snapshot: &dyn Snapshot,
    id: QueueId,
    slot: Slot,
    now: Ticks,
) -> Result<Option<(MessageState, Body)>, QueueError> {
    let state = snapshot.get(&keys::state(id, slot)).await?;
    let state = readable(slot.sequence, MessageState::unexpired(state.as_ref(), now));
    let Some(state) = state.flatten() else { return Ok(None) };
    let body = body_of(snapshot, id, slot.sequence).await?;
    Ok(body.map(|body| (state, body)))
}

/// The body of a message that exists in a snapshot; none of an unreadable one, which is only logged.
///
/// # Errors
/// A failed read.
pub(crate) async fn body_of(
    snapshot: &dyn Snapshot,
    id: QueueId,
    sequence: u64,
) -> Result<Option<Body>, QueueError> {
    let body = snapshot.get(&keys::body(id, sequence)).await?;
    let body = body.ok_or_else(|| QueueError::corrupt("a message without a body"));
    Ok(readable(sequence, body.and_then(|body| Body::decode(&body))))
}

/// What was read of a message, if it could be.
pub(crate) fn readable<T>(sequence: u64, read: Result<T, QueueError>) -> Option<T> {
    read.inspect_err(|error| tracing::error!(%error, sequence, "a message cannot be read")).ok()
}
