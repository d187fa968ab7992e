//! Creating, finding, changing, listing, clearing and deleting queues.

use std::sync::Arc;

use bytes::Bytes;
use trestle_identity::caller::{Authority, Caller, TableGrant};
use trestle_kv::{Engine, ScanLimit, Write, after_key, transact};
use trestle_service::{
    clock::Ticks,
    fault::{Fault, Reason, Violations},
    name::{AccountName, QueueName},
    page,
};

use crate::{
    authorize::{self, Access},
    delivery::MonotonicClock,
    delivery::RecordCache,
    delivery::Schedulers,
    detached::detached,
    error::QueueError,
    keys::{self, DeletedRange, QueueId, QueuePart},
    policies,
    record::{QueueRecord, QueueSettings},
};

/// Most bytes of queue records read at once.
const LIST_BYTES_MAX: usize = 3 * 1024 * 1024;

/// The queues of every account.
#[derive(Clone)]
pub(crate) struct Queues {
    engine: Arc<dyn Engine>,
    clock: Arc<MonotonicClock>,
    schedulers: Arc<Schedulers>,
    cache: Arc<RecordCache>,
}

/// A queue that was found.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    /// Its account.
    pub(crate) account: AccountName,
    /// Its name.
    pub(crate) name: QueueName,
    /// What is stored of it.
    pub(crate) record: Arc<QueueRecord>,
}

/// What a listing asks for.
#[derive(Debug)]
pub(crate) struct ListQueues {
    /// How the names begin.
    pub(crate) prefix: String,
    /// At most this many queues.
    pub(crate) page_size: usize,
    /// Where to go on; empty at the start.
    pub(crate) page_token: String,
}

/// A page of queues.
#[derive(Debug)]
pub(crate) struct QueuePage {
    /// Their names and records, by name.
    pub(crate) queues: Vec<(String, QueueRecord)>,
    /// Where the next page starts, if there may be one.
    pub(crate) next_page_token: Option<String>,
}

impl Queues {
    /// Works on `engine`.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<MonotonicClock>,
        schedulers: Arc<Schedulers>,
    ) -> Self {
        Self { engine, clock, schedulers, cache: Arc::default() }
    }

    /// Creates a queue, unless it is there with the settings that are asked for; whether it did.
    ///
    /// # Errors
    /// [`QueueError::QueueExists`], or a failed commit.
    pub(crate) async fn create(
        &self,
        account: &AccountName,
        name: QueueName,
        settings: QueueSettings,
    ) -> Result<(QueueRecord, bool), QueueError> {
        let key = keys::queue(account, &name);
        let reads = vec![key.clone(), keys::next_queue_id()];
        let created_at = self.clock.now();
        transact(&*self.engine, reads, move |current| {
            let [existing, next_id] = current else {
                return Err(QueueError::corrupt("two keys were read"));
            };
            if let Some(existing) = existing {
                let record = QueueRecord::decode(existing)?;
                return match record.settings.fits(&settings) {
                    true => Ok((Vec::new(), (record, false))),
                    false => Err(QueueError::QueueExists(name.clone())),
                };
            }
            let (id, mut writes) = decide_id(next_id.as_ref())?;
            let (settings, policies) = (settings.clone(), Bytes::new());
            let record = QueueRecord { id, created_at, settings, policies };
            writes.push(Write::Put { key: key.clone(), value: record.encode() });
            Ok((writes, (record, true)))
        })
        .await?
    }

    /// Lets in every caller but one whose stored access policy does not hold now, or who is denied for something else
    /// that comes next: before anything is said about the call.
    ///
    /// # Errors
    /// What the policy or the check after it says; or a failed read.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<(), QueueError> {
        let grant = match &caller.authority {
            Authority::Queue(grant) if grant.policy.is_some() => grant,
            // The table service has its policy, and hears of no call to this one.
            Authority::Table(TableGrant { policy: Some(policy), .. }) => {
                return Ok(policy.passed()?);
            }
            _ => return Ok(()),
        };
        let name = QueueName::parse(grant.queue.clone(), "", &mut Violations::default());
        let queue = match &name {
            Some(name) => self.find(&caller.account, name).await?,
            None => None,
        };
        let policies = match &queue {
            Some(queue) => policies::decode(&queue.record.policies)?,
            None => Vec::new(),
        };
        authorize::permissions(grant, &policies, self.clock.now())?;
        Ok(())
    }

    /// A queue by its name, for a caller who may do there what the call does.
    ///
    /// # Errors
    /// When the caller may not; then [`QueueError::QueueNotFound`]; or a failed read.
    pub(crate) async fn open(
        &self,
        access: &Access,
        name: &QueueName,
    ) -> Result<Queue, QueueError> {
        let found = self.find(access.account(), name).await?;
        let policies = match &found {
            Some(queue) if access.is_by_policy() => policies::decode(&queue.record.policies)?,
            _ => Vec::new(),
        };
        access.check(name, &policies, self.clock.now())?;
        found.ok_or_else(|| QueueError::QueueNotFound(name.clone()))
    }

    /// A queue by its name, if there is one.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn find(
        &self,
        account: &AccountName,
        name: &QueueName,
    ) -> Result<Option<Queue>, QueueError> {
        let found = |record| Queue { account: account.clone(), name: name.clone(), record };
        let look = match self.cache.get(account, name) {
            Ok(record) => return Ok(Some(found(record))),
            Err(look) => look,
        };
        let snapshot = self.engine.snapshot().await?;
        let Some(value) = snapshot.get(&keys::queue(account, name)).await? else {
            return Ok(None);
        };
        let mut record = QueueRecord::decode(&value)?;
        // Of its own: what the store gives may be a part of something much bigger.
        record.policies = Bytes::copy_from_slice(&record.policies);
        let record = Arc::new(record);
        self.cache.keep(&look, account, name, &record);
        Ok(Some(found(record)))
    }

    /// Changes the record of a queue.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], what `change` fails with, or a failed commit.
    pub(crate) async fn update(
        &self,
        account: &AccountName,
        name: QueueName,
        change: impl Fn(&mut QueueRecord) -> Result<(), Fault> + Send + 'static,
    ) -> Result<QueueRecord, QueueError> {
        let key = keys::queue(account, &name);
        let (changing, engine) = (self.cache.changing(account, &name), Arc::clone(&self.engine));
        detached(async move {
            let _changing = changing;
            let updated = transact(&*engine, vec![key.clone()], move |current| {
                let mut record = stored(current, &name)?;
                change(&mut record)?;
                let write = Write::Put { key: key.clone(), value: record.encode() };
                Ok::<_, QueueError>((vec![write], record))
            });
            updated.await?
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
        let key = keys::queue(account, &name);
        let (deleted_at, schedulers) = (self.clock.now(), Arc::clone(&self.schedulers));
        let (changing, engine) = (self.cache.changing(account, &name), Arc::clone(&self.engine));
        detached(async move {
            let _changing = changing;
            let deleted = transact(&*engine, vec![key.clone()], move |current| {
                let id = stored(current, &name)?.id;
                let mut writes = decide_death(id, deleted_at);
                writes.push(Write::Delete { key: key.clone() });
                Ok::<_, QueueError>((writes, id))
            });
            schedulers.close(deleted.await??);
            Ok(())
        })
        .await
    }

    /// Deletes every message of a queue: it goes on under another number.
    ///
    /// # Errors
    /// [`QueueError::QueueNotFound`], or a failed commit.
    pub(crate) async fn clear(
        &self,
        account: &AccountName,
        name: QueueName,
    ) -> Result<(), QueueError> {
        let key = keys::queue(account, &name);
        let reads = vec![key.clone(), keys::next_queue_id()];
        let (deleted_at, schedulers) = (self.clock.now(), Arc::clone(&self.schedulers));
        let (changing, engine) = (self.cache.changing(account, &name), Arc::clone(&self.engine));
        detached(async move {
            let _changing = changing;
            let cleared = transact(&*engine, reads, move |current| {
                let mut record = stored(current, &name)?;
                let old = record.id;
                let (id, mut writes) = decide_id(current.get(1).and_then(Option::as_ref))?;
                record.id = id;
                writes.extend(decide_death(old, deleted_at));
                writes.push(Write::Put { key: key.clone(), value: record.encode() });
                Ok::<_, QueueError>((writes, old))
            });
            schedulers.close(cleared.await??);
            Ok(())
        })
        .await
    }

    /// One page of the queues of an account.
    ///
    /// # Errors
    /// A token of another listing, or a failed read.
    pub(crate) async fn list(
        &self,
        account: &AccountName,
        request: ListQueues,
    ) -> Result<QueuePage, QueueError> {
        let owner = account.as_str().as_bytes();
        let identity = page::request_identity(&[b"queues", owner, request.prefix.as_bytes()]);
        let mut span = keys::queues(account, &request.prefix);
        if !request.page_token.is_empty() {
            let start = page::decode(&request.page_token, identity).map_err(|error| {
                let reason = Reason::InvalidQueryParameterValue;
                Fault::violation(reason, "page_token", error.to_string())
            })?;
            span.start = Bytes::from(start).max(span.start);
        }
        let mut page = QueuePage { queues: Vec::new(), next_page_token: None };
        if request.page_size == 0 || span.is_empty() {
            return Ok(page);
        }
        let snapshot = self.engine.snapshot().await?;
        let limit = ScanLimit { rows: request.page_size, bytes: LIST_BYTES_MAX };
        let scan = snapshot.scan(&span, limit).await?;
        for entry in &scan.entries {
            let record = QueueRecord::decode(&entry.value)?;
            page.queues.push((keys::queue_name(&entry.key)?, record));
        }
        let last = scan.entries.last().filter(|_| scan.more);
        page.next_page_token = last.map(|last| page::encode(identity, &after_key(&last.key)));
        Ok(page)
    }
}

/// The record of a queue, first among what was read.
fn stored(current: &[Option<Bytes>], name: &QueueName) -> Result<QueueRecord, QueueError> {
    let value = current.first().and_then(Option::as_ref);
    let value = value.ok_or_else(|| QueueError::QueueNotFound(name.clone()))?;
    QueueRecord::decode(value)
}

/// The next number, and the writes that make it a queue.
fn decide_id(next_id: Option<&Bytes>) -> Result<(QueueId, Vec<Write>), QueueError> {
    let next = next_id.map(|value| keys::decode_number(value, "next queue id")).transpose()?;
    let id = next.unwrap_or(1);
    let writes = vec![
        Write::Put { key: keys::next_queue_id(), value: keys::encode_number(id + 1) },
        Write::Put { key: keys::count(QueueId(id)), value: keys::encode_number(0) },
    ];
    Ok((QueueId(id), writes))
}

/// The writes that leave a number to the sweeper.
fn decide_death(id: QueueId, deleted_at: Ticks) -> Vec<Write> {
    let part_span = |part| {
        let resume = keys::part_span(id, part).start;
        let value = DeletedRange { deleted_at, resume }.encode();
        Write::Put { key: keys::deleted(id, part), value }
    };
    let gone = [keys::count(id), keys::cursor(id)].map(|key| Write::Delete { key });
    QueuePart::ALL.map(part_span).into_iter().chain(gone).collect()
}

#[cfg(test)]
mod tests;
