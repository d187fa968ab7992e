//! Creating, changing, clearing and deleting queues. Any process may do so: the head of the queue changes in the same
//! commit, and its owner detects that with its next change.

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Lock, ReadId, Reads, Writes, count, transact};
use trestle_model::fault::Fault;
use trestle_model::name::{AccountName, QueueName};
use trestle_model::time::Ticks;
use trestle_rpc::quota::StorageLimit;

use super::Queues;
use crate::{
    deleted_range::{DeletedRange, QueuePart},
    detached::detached,
    error::QueueError,
    head::QueueHead,
    keys::{self, QueueId},
    record::{FIRST_VERSION, QueueRecord, QueueSettings},
};

/// Most attempts of one change, when the queue is cleared repeatedly meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// A queue to change, by its name. Clones share the queues.
#[derive(Clone)]
struct ChangeTarget {
    queues: Queues,
    account: AccountName,
    name: QueueName,
}

/// The stored state of a queue that a change reads.
struct StoredQueue {
    id: QueueId,
    record: QueueRecord,
    head: QueueHead,
}

/// The rows of a queue among the reads of a change.
#[derive(Clone)]
struct QueueRows {
    name: QueueName,
    id: QueueId,
    key: Bytes,
    record: ReadId,
    head: ReadId,
}

/// The outcome of one attempt of a change; none where the queue has another id by now.
type Attempted<T> = Option<T>;

impl Queues {
    /// Creates a queue, unless it exists with the requested settings; returns its record and whether it is new.
    ///
    /// # Errors
    /// [`QueueError::QueueExists`], a used quota, or a failed commit.
    pub(crate) async fn create(
        &self,
        account: &AccountName,
        name: QueueName,
        settings: QueueSettings,
    ) -> Result<(QueueRecord, bool), QueueError> {
        let count = |queues_max| count(&*self.engine, keys::queues(account, ""), queues_max);
        let room = self.storage.room(account, StorageLimit::Queues, count).await?;
        let full = room.full();
        let id = self.ids.next().await?;
        let head = self.new_head(account, &name, FIRST_VERSION);
        let key = keys::queue(account, &name);
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        spec.also(keys::queue_domain(id), Lock::Exclusive);
        let existing = spec.read(key.clone());
        let created_at = self.engine.now();
        let created = transact(&*self.engine, spec, move |reads, _version| {
            if let Some(existing) = reads.get(existing) {
                let record = QueueRecord::decode(existing)?;
                return match record.settings.fits(&settings) {
                    true => Ok((Writes::new(), (record, false))),
                    false => Err(QueueError::QueueExists(name.clone())),
                };
            }
            if let Some(full) = &full {
                return Err(full.rejected().into());
            }
            let (settings, policies, version) = (settings.clone(), Bytes::new(), FIRST_VERSION);
            let record = QueueRecord { id, version, created_at, settings, policies };
            let mut writes = Writes::new();
            head.put(id, &mut writes);
            writes.put(key.clone(), record.encode());
            Ok((writes, (record, true)))
        });
        let (record, is_new) = created.await??;
        if is_new {
            self.schedulers.created(id, &head);
        }
        Ok((record, is_new))
    }

    /// The head of a queue that this process creates.
    fn new_head(&self, account: &AccountName, name: &QueueName, record_version: u64) -> QueueHead {
        QueueHead::empty(self.schedulers.owner_of_new(account, name), record_version)
    }

    /// Changes the record of a queue.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], what `change` fails with, or a failed commit.
    pub(crate) async fn update(
        &self,
        account: &AccountName,
        name: QueueName,
        change: impl Fn(&mut QueueRecord) -> Result<(), Fault> + Clone + Send + Sync + 'static,
    ) -> Result<QueueRecord, QueueError> {
        self.change(account, name, move |target| target.update(change.clone())).await
    }

    /// Deletes a queue: its name is free at once, its messages are removed by the sweeper.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn delete(
        &self,
        account: &AccountName,
        name: QueueName,
    ) -> Result<(), QueueError> {
        let deleted_at = self.engine.now();
        self.change(account, name, move |target| target.delete(deleted_at)).await
    }

    /// Deletes every message of a queue: the queue continues under another id.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn clear(
        &self,
        account: &AccountName,
        name: QueueName,
    ) -> Result<(), QueueError> {
        let deleted_at = self.engine.now();
        self.change(account, name, move |target| target.clear(deleted_at)).await
    }

    /// Runs a change to its end, even if its caller is cancelled; repeats it while the queue has another id than the
    /// one that the change was prepared for.
    async fn change<T, F>(
        &self,
        account: &AccountName,
        name: QueueName,
        attempt: impl Fn(ChangeTarget) -> F + Send + 'static,
    ) -> Result<T, QueueError>
    where
        T: Send + 'static,
        F: Future<Output = Result<Attempted<T>, QueueError>> + Send,
    {
        let target = ChangeTarget { queues: self.clone(), account: account.clone(), name };
        detached(async move {
            let _changing = target.queues.cache.changing(&target.account, &target.name);
            for _ in 0..ATTEMPTS_MAX {
                if let Some(done) = attempt(target.clone()).await? {
                    return Ok(done);
                }
            }
            Err(QueueError::KeepsChanging(target.name.clone()))
        })
        .await
    }
}

impl ChangeTarget {
    async fn update(
        self,
        change: impl Fn(&mut QueueRecord) -> Result<(), Fault> + Send + 'static,
    ) -> Result<Attempted<QueueRecord>, QueueError> {
        let (spec, rows) = self.begin().await?;
        let updated = transact(&*self.queues.engine, spec, move |reads, _version| {
            let Some(StoredQueue { id, mut record, head }) = rows.get(reads)? else {
                return Ok((Writes::new(), None));
            };
            change(&mut record)?;
            record.version = head.record_version.saturating_add(1);
            let mut writes = Writes::new();
            writes.put(rows.key.clone(), record.encode());
            QueueHead { record_version: record.version, ..head }.put(id, &mut writes);
            Ok::<_, QueueError>((writes, Some(record)))
        });
        updated.await?
    }

    async fn delete(self, deleted_at: Ticks) -> Result<Attempted<()>, QueueError> {
        let (spec, rows) = self.begin().await?;
        let deleted = transact(&*self.queues.engine, spec, move |reads, _version| {
            let Some(StoredQueue { id, .. }) = rows.get(reads)? else {
                return Ok((Writes::new(), None));
            };
            let mut writes = Writes::new();
            delete_id(id, deleted_at, &mut writes);
            writes.delete(rows.key.clone());
            Ok::<_, QueueError>((writes, Some(id)))
        });
        Ok(deleted.await??.map(|id| self.queues.schedulers.close(id)))
    }

    async fn clear(self, deleted_at: Ticks) -> Result<Attempted<()>, QueueError> {
        let (mut spec, rows) = self.begin().await?;
        let Self { queues, account, name } = self;
        let id = queues.ids.next().await?;
        spec.also(keys::queue_domain(id), Lock::Exclusive).gives_back_space();
        let empty = queues.new_head(&account, &name, FIRST_VERSION);
        let cleared = transact(&*queues.engine, spec, move |reads, _version| {
            let Some(StoredQueue { id: old, mut record, head }) = rows.get(reads)? else {
                return Ok((Writes::new(), None));
            };
            record.id = id;
            record.version = head.record_version.saturating_add(1);
            let empty = QueueHead { record_version: record.version, ..empty };
            let mut writes = Writes::new();
            delete_id(old, deleted_at, &mut writes);
            empty.put(id, &mut writes);
            writes.put(rows.key.clone(), record.encode());
            Ok::<_, QueueError>((writes, Some((old, empty))))
        });
        Ok(cleared.await??.map(|(old, empty)| {
            queues.schedulers.created(id, &empty);
            queues.schedulers.close(old);
        }))
    }

    /// The start of a change of the record of a queue and of its head.
    async fn begin(&self) -> Result<(ChangeSpec, QueueRows), QueueError> {
        let Self { queues, account, name } = self;
        let stored = queues.stored(account, name).await?;
        let id = stored.ok_or_else(|| QueueError::QueueNotFound(name.clone()))?.id;
        let (name, key) = (name.clone(), keys::queue(account, name));
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        spec.also(keys::queue_domain(id), Lock::Exclusive);
        let (record, head) = (spec.read(key.clone()), spec.read(keys::head(id)));
        Ok((spec, QueueRows { name, id, key, record, head }))
    }
}

impl QueueRows {
    /// The queue; none where it has another id by now.
    fn get(&self, reads: &Reads<'_>) -> Result<Option<StoredQueue>, QueueError> {
        let record = reads.get(self.record);
        let record = record.ok_or_else(|| QueueError::QueueNotFound(self.name.clone()))?;
        let record = QueueRecord::decode(record)?;
        if record.id != self.id {
            return Ok(None);
        }
        let head = reads.get(self.head).ok_or_else(|| QueueError::corrupt("head of a queue"))?;
        Ok(Some(StoredQueue { id: self.id, record, head: QueueHead::decode(head)? }))
    }
}

/// Registers the rows of an id for removal by the sweeper.
fn delete_id(id: QueueId, deleted_at: Ticks, writes: &mut Writes) {
    for part in QueuePart::ALL {
        let resume = keys::part_span(id, part).start;
        writes.put(keys::deleted(id, part), DeletedRange { deleted_at, resume }.encode());
    }
    writes.delete(keys::head(id)).delete(keys::cursor(id));
}
