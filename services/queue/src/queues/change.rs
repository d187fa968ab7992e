//! Creating, changing, clearing and deleting queues. Any process may do so: the head of the queue changes in the same
//! commit, and its owner detects that with its next change.

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Lock, ReadId, Reads, Writes, transact};
use trestle_service::{
    clock::Ticks,
    fault::Fault,
    name::{AccountName, QueueName},
};

use super::Queues;
use crate::{
    deleted_range::{DeletedRange, QueuePart},
    detached::detached,
    error::QueueError,
    head::Head,
    keys::{self, QueueId},
    record::{FIRST_VERSION, QueueRecord, QueueSettings},
};

/// Most attempts of one change, when the queue is cleared repeatedly meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// The stored state of a queue that a change reads.
struct Stored {
    id: QueueId,
    record: QueueRecord,
    head: Head,
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
    /// [`QueueError::QueueExists`], or a failed commit.
    pub(crate) async fn create(
        &self,
        account: &AccountName,
        name: QueueName,
        settings: QueueSettings,
    ) -> Result<(QueueRecord, bool), QueueError> {
        let id = self.ids.next().await?;
        let head = self.new_head(account, &name, FIRST_VERSION);
        let key = keys::queue(account, &name);
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        spec.also(keys::queue_domain(id), Lock::Exclusive);
        let existing = spec.read(key.clone());
        let created_at = self.clock.now();
        let created = transact(&*self.engine, spec, move |reads, _version| {
            if let Some(existing) = reads.get(existing) {
                let record = QueueRecord::decode(existing)?;
                return match record.settings.fits(&settings) {
                    true => Ok((Writes::new(), (record, false))),
                    false => Err(QueueError::QueueExists(name.clone())),
                };
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
    fn new_head(&self, account: &AccountName, name: &QueueName, record_version: u64) -> Head {
        Head::empty(self.schedulers.owner_of_new(account, name), record_version)
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
        let (queues, account) = (self.clone(), account.clone());
        detached(async move {
            let _changing = queues.cache.changing(&account, &name);
            for _ in 0..ATTEMPTS_MAX {
                let (spec, rows) = queues.begin_change(&account, &name).await?;
                let change = change.clone();
                let updated = transact(&*queues.engine, spec, move |reads, _version| {
                    let Some(Stored { id, mut record, head }) = rows.get(reads)? else {
                        return Ok((Writes::new(), None));
                    };
                    change(&mut record)?;
                    record.version = head.record_version.saturating_add(1);
                    let mut writes = Writes::new();
                    writes.put(rows.key.clone(), record.encode());
                    Head { record_version: record.version, ..head }.put(id, &mut writes);
                    Ok::<_, QueueError>((writes, Some(record)))
                });
                if let Some(record) = updated.await?? {
                    return Ok(record);
                }
            }
            Err(QueueError::KeepsChanging(name))
        })
        .await
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
        let (queues, account, deleted_at) = (self.clone(), account.clone(), self.clock.now());
        detached(async move {
            let _changing = queues.cache.changing(&account, &name);
            for _ in 0..ATTEMPTS_MAX {
                let (spec, rows) = queues.begin_change(&account, &name).await?;
                let deleted = transact(&*queues.engine, spec, move |reads, _version| {
                    let Some(Stored { id, .. }) = rows.get(reads)? else {
                        return Ok((Writes::new(), None));
                    };
                    let mut writes = Writes::new();
                    delete_id(id, deleted_at, &mut writes);
                    writes.delete(rows.key.clone());
                    Ok::<_, QueueError>((writes, Some(id)))
                });
                if let Some(id) = deleted.await?? {
                    queues.schedulers.close(id);
                    return Ok(());
                }
            }
            Err(QueueError::KeepsChanging(name))
        })
        .await
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
        let (queues, account, deleted_at) = (self.clone(), account.clone(), self.clock.now());
        detached(async move {
            let _changing = queues.cache.changing(&account, &name);
            for _ in 0..ATTEMPTS_MAX {
                if let Some(old) = queues.clear_once(&account, &name, deleted_at).await? {
                    queues.schedulers.close(old);
                    return Ok(());
                }
            }
            Err(QueueError::KeepsChanging(name))
        })
        .await
    }

    async fn clear_once(
        &self,
        account: &AccountName,
        name: &QueueName,
        deleted_at: Ticks,
    ) -> Result<Attempted<QueueId>, QueueError> {
        let (mut spec, rows) = self.begin_change(account, name).await?;
        let id = self.ids.next().await?;
        spec.also(keys::queue_domain(id), Lock::Exclusive);
        let empty = self.new_head(account, name, FIRST_VERSION);
        let cleared = transact(&*self.engine, spec, move |reads, _version| {
            let Some(Stored { id: old, mut record, head }) = rows.get(reads)? else {
                return Ok((Writes::new(), None));
            };
            record.id = id;
            record.version = head.record_version.saturating_add(1);
            let empty = Head { record_version: record.version, ..empty };
            let mut writes = Writes::new();
            delete_id(old, deleted_at, &mut writes);
            empty.put(id, &mut writes);
            writes.put(rows.key.clone(), record.encode());
            Ok::<_, QueueError>((writes, Some((old, empty))))
        });
        let cleared = cleared.await??;
        if let Some((_, empty)) = &cleared {
            self.schedulers.created(id, empty);
        }
        Ok(cleared.map(|(old, _)| old))
    }

    /// The start of a change of the record of a queue and of its head.
    async fn begin_change(
        &self,
        account: &AccountName,
        name: &QueueName,
    ) -> Result<(ChangeSpec, QueueRows), QueueError> {
        let stored = self.stored(account, name).await?;
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
    fn get(&self, reads: &Reads<'_>) -> Result<Option<Stored>, QueueError> {
        let record = reads.get(self.record);
        let record = record.ok_or_else(|| QueueError::QueueNotFound(self.name.clone()))?;
        let record = QueueRecord::decode(record)?;
        if record.id != self.id {
            return Ok(None);
        }
        let head = reads.get(self.head).ok_or_else(|| QueueError::corrupt("head of a queue"))?;
        Ok(Some(Stored { id: self.id, record, head: Head::decode(head)? }))
    }
}

/// Leaves the rows of an id to the sweeper.
fn delete_id(id: QueueId, deleted_at: Ticks, writes: &mut Writes) {
    for part in QueuePart::ALL {
        let resume = keys::part_span(id, part).start;
        writes.put(keys::deleted(id, part), DeletedRange { deleted_at, resume }.encode());
    }
    writes.delete(keys::head(id)).delete(keys::cursor(id));
}
