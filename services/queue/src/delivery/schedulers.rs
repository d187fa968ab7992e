//! The schedulers of the queues in use, and how this process takes over a queue.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use foldhash::HashMap;
use trestle_kv::{Engine, transact};
use trestle_model::time::Ticks;

use super::{
    expiry_buckets::SharedExpiryBuckets,
    fence::{AttemptError, Fence, FenceCause, Fenced},
    ownership::OwnershipPolicy,
    retained::Retained,
    scheduler::Scheduler,
    sequences::Sequences,
};
use crate::{
    error::QueueError,
    head::{FencingToken, OwnerId, QueueHead},
    keys::{self, QueueId},
    queues::FoundQueue,
    slot::Cursor,
};

/// How long an unused scheduler stays open.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Whether a queue is taken over that another process owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TakeOver {
    /// Where the policy has it here.
    ByPolicy,
    /// In any case.
    Always,
}

/// One scheduler for each queue in use.
pub(crate) struct Schedulers {
    engine: Arc<dyn Engine>,
    owner: OwnerId,
    policy: Arc<dyn OwnershipPolicy>,
    open: Mutex<HashMap<QueueId, Arc<Scheduler>>>,
    retained: Mutex<HashMap<QueueId, Arc<Retained>>>,
}

impl Schedulers {
    /// No scheduler is open. `owner` is the id of this process.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        owner: OwnerId,
        policy: Arc<dyn OwnershipPolicy>,
    ) -> Self {
        Self { engine, owner, policy, open: Mutex::default(), retained: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueId, Arc<Scheduler>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The scheduler of a queue. Takes the queue over if this process does not own it.
    ///
    /// # Errors
    /// [`FenceCause::NotOwner`] where the policy forbids it, [`FenceCause::QueueReplaced`], or a failed read or commit.
    pub(crate) async fn open(&self, queue: &FoundQueue) -> Result<Arc<Scheduler>, AttemptError> {
        self.open_by(queue, TakeOver::ByPolicy).await
    }

    /// The same for a queue to which messages of another one are moved in one commit: it is taken over whatever the
    /// policy. Its consumers elsewhere take it back once they notice.
    ///
    /// # Errors
    /// As [`Schedulers::open`], but for the policy.
    pub(crate) async fn open_target(
        &self,
        queue: &FoundQueue,
    ) -> Result<Arc<Scheduler>, AttemptError> {
        self.open_by(queue, TakeOver::Always).await
    }

    async fn open_by(
        &self,
        queue: &FoundQueue,
        take_over: TakeOver,
    ) -> Result<Arc<Scheduler>, AttemptError> {
        let id = queue.record.id;
        if let Some(scheduler) = self.find(id) {
            return Ok(scheduler);
        }
        let retained = self.retained(id);
        retained.queue.get_or_init(|| queue.clone());
        let _opening = retained.opening.lock().await;
        if let Some(scheduler) = self.find(id) {
            return Ok(scheduler);
        }
        let sequences = self.own(queue, &retained, take_over).await?;
        let fence = Fence { id, token: sequences.token(), record_version: None };
        // A former owner is fenced by now: it writes no cursor and no message after these reads.
        let cursor = self.read_cursor(id).await?;
        let buckets = Arc::clone(&retained.expiry_buckets);
        let engine = Arc::clone(&self.engine);
        let scheduler = Arc::new(Scheduler::new(id, engine, (buckets, sequences), cursor));
        self.lock().insert(id, Arc::clone(&scheduler));
        // A call that deletes or clears a queue closes its scheduler afterwards. If this scheduler was not stored yet
        // at that time, nothing else would close it.
        if let Err(error) = self.check(fence).await {
            if let AttemptError::Fenced(fenced) = &error {
                self.close_fenced(fenced);
            }
            return Err(error);
        }
        Ok(scheduler)
    }

    /// Owns the queue: under the previous token, if that is still the one of its head.
    async fn own(
        &self,
        queue: &FoundQueue,
        retained: &Retained,
        take_over: TakeOver,
    ) -> Result<Arc<Sequences>, AttemptError> {
        let id = queue.record.id;
        if let Some(sequences) = retained.owned().filter(|sequences| !sequences.is_exhausted()) {
            let fence = Fence { id, token: sequences.token(), record_version: None };
            match self.check(fence).await {
                Ok(_) => return Ok(sequences),
                Err(AttemptError::Fenced(Fenced { cause: FenceCause::NotOwner, .. })) => {
                    retained.disown(sequences.token());
                }
                Err(error) => return Err(error),
            }
        }
        let unowned = Fence { id, token: FencingToken::NONE, record_version: None };
        if take_over == TakeOver::ByPolicy && !self.may_own(queue) {
            return Err(unowned.reject(FenceCause::NotOwner).into());
        }
        if self.engine.status().is_read_only {
            // Messages can be peeked and counted; nothing changes them, so no other process owns them either.
            let stored = self.engine.get(&keys::head(id)).await?;
            let stored = stored.ok_or(unowned.reject(FenceCause::QueueReplaced))?;
            return Ok(retained.own(QueueHead::decode(&stored)?.token));
        }
        let ((mut spec, head), owner) = (unowned.begin(), self.owner);
        // One row a queue: without an owner it can neither be read nor cleared while disk space is short.
        spec.gives_back_space();
        let token = transact(&*self.engine, spec, move |reads, _version| {
            let stored = head.stored(reads).ok_or(unowned.reject(FenceCause::QueueReplaced))?;
            let head = QueueHead::decode(stored)?;
            let head = head.acquired_by(owner).ok_or(QueueError::TokensExhausted)?;
            let mut writes = trestle_kv::Writes::new();
            head.put(id, &mut writes);
            Ok::<_, AttemptError>((writes, head.token))
        });
        Ok(retained.own(token.await??))
    }

    /// Reads where the queue begins. It is not after the time at which messages are written from now on, because the
    /// time of the engine never goes back.
    async fn read_cursor(&self, id: QueueId) -> Result<Cursor, QueueError> {
        let stored = self.engine.get(&keys::cursor(id)).await?;
        let cursor = stored.map(|value| Cursor::decode(&value)).transpose()?;
        Ok(cursor.unwrap_or(Cursor::START))
    }

    /// The head of a queue, if this process owns it under the token of the fence.
    ///
    /// # Errors
    /// As [`Fence::check`]; or a failed read.
    pub(crate) async fn check(&self, fence: Fence) -> Result<QueueHead, AttemptError> {
        let stored = self.engine.get(&keys::head(fence.id)).await?;
        fence.check(stored.as_deref())
    }

    /// The owner of a queue that this process creates; none where another process should own it.
    pub(crate) fn owner_of_new(
        &self,
        account: &trestle_model::name::AccountName,
        name: &trestle_model::name::QueueName,
    ) -> Option<OwnerId> {
        self.policy.may_own(account, name).then_some(self.owner)
    }

    /// A queue was created with this head: if this process is its owner, no take-over is needed to open it.
    pub(crate) fn created(&self, id: QueueId, head: &QueueHead) {
        if head.owner == Some(self.owner) {
            self.retained(id).own(head.token);
        }
    }

    /// Fails if another process has taken a queue over that has no message here: it may have moved one to the queue.
    ///
    /// # Errors
    /// As [`Schedulers::check`].
    pub(crate) async fn check_empty(&self, scheduler: &Scheduler) -> Result<(), AttemptError> {
        match self.has_others() {
            true => self.check(scheduler.fence(None)).await.map(drop),
            false => Ok(()),
        }
    }

    /// Whether other processes serve the store, or may.
    pub(crate) fn has_others(&self) -> bool {
        self.policy.has_others()
    }

    /// Whether this process may own a queue.
    pub(crate) fn may_own(&self, queue: &FoundQueue) -> bool {
        self.policy.may_own(&queue.account, &queue.name)
    }

    /// The scheduler of a queue, if it is open.
    pub(crate) fn find(&self, id: QueueId) -> Option<Arc<Scheduler>> {
        self.lock().get(&id).map(Arc::clone)
    }

    fn retained(&self, id: QueueId) -> Arc<Retained> {
        let mut retained = self.retained.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(retained.entry(id).or_default())
    }

    /// When messages of a queue expire, as far as this process has scanned them.
    pub(crate) fn expiry_buckets(&self, id: QueueId) -> Arc<SharedExpiryBuckets> {
        Arc::clone(&self.retained(id).expiry_buckets)
    }

    /// The queues of this process of which messages may have expired.
    pub(crate) fn expired(&self, now: Ticks) -> Vec<FoundQueue> {
        let retained = self.retained.lock().unwrap_or_else(PoisonError::into_inner);
        retained.values().filter_map(|retained| retained.expired(now)).collect()
    }

    /// Drops the retained data of a deleted queue.
    pub(crate) fn forget(&self, id: QueueId) {
        self.retained.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// How many queues have retained data.
    #[cfg(test)]
    pub(crate) fn retained_queues(&self) -> usize {
        self.retained.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Closes the scheduler of a queue that was deleted or cleared.
    pub(crate) fn close(&self, id: QueueId) {
        let scheduler = self.lock().remove(&id);
        if let Some(scheduler) = scheduler {
            scheduler.close(FenceCause::QueueReplaced);
        }
    }

    /// Closes the scheduler whose change was rejected, unless it was opened again since.
    pub(crate) fn close_fenced(&self, fenced: &Fenced) {
        let Fenced { id, token, cause } = *fenced;
        if cause == FenceCause::StaleRecord {
            return;
        }
        let scheduler = {
            let mut open = self.lock();
            match open.get(&id).is_some_and(|scheduler| scheduler.token() == token) {
                true => open.remove(&id),
                false => None,
            }
        };
        if let Some(scheduler) = scheduler {
            scheduler.close(cause);
        }
        if cause == FenceCause::NotOwner && token > FencingToken::NONE {
            self.retained(id).disown(token);
        }
    }

    /// Closes the schedulers of queues that the policy places in another process, so that their consumers wait there.
    pub(crate) fn close_placed_elsewhere(&self) {
        for (id, scheduler) in self.all() {
            let queue = self.retained(id).queue.get().cloned();
            if queue.is_some_and(|queue| !self.may_own(&queue)) {
                self.close_fenced(&scheduler.fence(None).reject(FenceCause::NotOwner));
            }
        }
    }

    /// Every open scheduler.
    pub(crate) fn all(&self) -> Vec<(QueueId, Arc<Scheduler>)> {
        self.lock().iter().map(|(id, scheduler)| (*id, Arc::clone(scheduler))).collect()
    }

    /// Closes a scheduler that was not used lately, if no reference to it is left. This process remains the owner of
    /// the queue.
    pub(crate) fn close_if_idle(&self, id: QueueId) {
        let mut open = self.lock();
        let is_idle = |scheduler: &Arc<Scheduler>| {
            Arc::strong_count(scheduler) == 1 && scheduler.is_idle(IDLE_MAX)
        };
        if open.get(&id).is_some_and(is_idle) {
            open.remove(&id);
        }
    }
}
