//! The queues of every account: finding, listing, creating, changing, clearing and deleting them.

mod change;
mod list;
mod usage;

use std::sync::Arc;

use bytes::Bytes;
use trestle_identity::{
    access_policy,
    caller::{Caller, Letters},
    spec::QUEUE,
};
use trestle_kv::Engine;
use trestle_model::fault::{Fault, Violations};
use trestle_model::name::{AccountName, QueueName};
use trestle_model::time::Clock;
use trestle_rpc::quota::{StorageOwner, StorageQuotas};

pub(crate) use self::list::ListQueues;
use crate::{
    authorize::QueueAccess,
    delivery::{RecordCache, Schedulers},
    error::QueueError,
    keys::{self, QueueId},
    policies,
    queue_ids::QueueIds,
    record::QueueRecord,
};

/// The queues of every account.
#[derive(Clone)]
pub(crate) struct Queues {
    engine: Arc<dyn Engine>,
    /// The wall clock. Stored access policies name times by it, as SAS tokens do, so both are checked by it: a caller
    /// must not lose or keep a permission because service time slews.
    clock: Arc<dyn Clock>,
    schedulers: Arc<Schedulers>,
    cache: Arc<RecordCache>,
    ids: Arc<QueueIds>,
    storage: StorageQuotas,
}

/// A queue that was found.
#[derive(Debug, Clone)]
pub(crate) struct FoundQueue {
    /// Its account.
    pub(crate) account: AccountName,
    /// Its name.
    pub(crate) name: QueueName,
    /// Its record.
    pub(crate) record: Arc<QueueRecord>,
}

impl Queues {
    /// Works on `engine`; `clock` is the wall clock.
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        clock: Arc<dyn Clock>,
        schedulers: Arc<Schedulers>,
    ) -> Self {
        let ids = Arc::new(QueueIds::new(Arc::clone(&engine)));
        let (cache, storage) = (Arc::default(), StorageQuotas::default());
        Self { engine, clock, schedulers, cache, ids, storage }
    }

    /// With quotas of accounts on what they store.
    pub(crate) fn with_quotas(self, storage: StorageQuotas) -> Self {
        Self { storage, ..self }
    }

    /// Whether an account may store more bytes.
    ///
    /// # Errors
    /// A used quota.
    pub(crate) fn check_bytes(&self, account: &AccountName) -> Result<(), Fault> {
        self.storage.check_bytes(StorageOwner::Queues, account)
    }

    /// The permissions that a stored access policy leaves a caller, none without one. Rejects one whose policy is not
    /// valid now, or that fails a check that comes next, before the response reveals anything about the call.
    ///
    /// # Errors
    /// The denied permission of the policy or of the check after it; or a failed read.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<Option<Letters>, QueueError> {
        let Some((grant, policy)) = caller.authority.by_policy() else {
            return Ok(None);
        };
        // The service of the grant stores the policy itself.
        if !grant.is_of(&QUEUE) {
            policy.passed()?;
            return Ok(None);
        }
        let name = grant.resource.name.clone();
        let name = QueueName::parse(name, "", &mut Violations::default());
        let queue = match &name {
            Some(name) => self.find(&caller.account, name).await?,
            None => None,
        };
        let policies = match &queue {
            Some(queue) => policies::decode(&queue.record.policies)?,
            None => Vec::new(),
        };
        Ok(Some(access_policy::permissions(grant, &policies, self.clock.now())?))
    }

    /// A queue by its name, for a caller with the permission that the call needs.
    ///
    /// # Errors
    /// A missing permission; then [`QueueError::QueueNotFound`]; or a failed read.
    pub(crate) async fn open(
        &self,
        access: &QueueAccess,
        name: &QueueName,
    ) -> Result<FoundQueue, QueueError> {
        let found = self.find(access.account(), name).await?;
        let policies = match &found {
            Some(queue) if access.is_by_policy() => policies::decode(&queue.record.policies)?,
            _ => Vec::new(),
        };
        access.check(name, &policies, self.clock.now())?;
        found.ok_or_else(|| QueueError::QueueNotFound(name.clone()))
    }

    /// A queue by its name, if it exists. Where other processes may change its record, it is read anew: what one of
    /// them has acknowledged holds for the next call here. A change that comes after it is detected by the version in
    /// the head.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn find(
        &self,
        account: &AccountName,
        name: &QueueName,
    ) -> Result<Option<FoundQueue>, QueueError> {
        let found = |record| FoundQueue { account: account.clone(), name: name.clone(), record };
        if self.schedulers.has_others() {
            return Ok(self.stored(account, name).await?.map(|record| found(Arc::new(record))));
        }
        let miss = match self.cache.get(account, name) {
            Ok(record) => return Ok(Some(found(record))),
            Err(miss) => miss,
        };
        let Some(mut record) = self.stored(account, name).await? else {
            return Ok(None);
        };
        // A copy: the bytes from the store may be a slice of a much larger buffer.
        record.policies = Bytes::copy_from_slice(&record.policies);
        let record = Arc::new(record);
        self.cache.keep(&miss, account, name, &record);
        Ok(Some(found(record)))
    }

    /// The stored record of a queue, if it exists.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn stored(
        &self,
        account: &AccountName,
        name: &QueueName,
    ) -> Result<Option<QueueRecord>, QueueError> {
        let value = self.engine.get(&keys::queue(account, name)).await?;
        value.map(|value| QueueRecord::decode(&value)).transpose()
    }

    /// Drops the outdated cached record of a queue.
    pub(crate) fn drop_cached(&self, id: QueueId) {
        self.cache.drop_id(id);
    }
}

#[cfg(test)]
mod tests;
