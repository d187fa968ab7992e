//! What each account stores in queues.

use std::collections::HashMap;

use trestle_kv::visit_rows;
use trestle_model::{fault::Fault, name::AccountName};
use trestle_proto::service::v1::QuotaUsage;
use trestle_rpc::quota::{MeasuredUsage, StorageLimit, StorageOwner};

use super::Queues;
use crate::{
    deleted_range::QueuePart,
    error::QueueError,
    keys::{self, QueueId},
    record::QueueRecord,
};

impl Queues {
    /// Measures what each account stores, if an account has a quota on it.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn measure(&self) -> Result<(), Fault> {
        Ok(self.storage.measure(StorageOwner::Queues, self.usage()).await?)
    }

    /// The quotas of an account, with their usage.
    pub(crate) fn quotas(&self, account: &AccountName) -> Vec<QuotaUsage> {
        self.storage.report(&[StorageOwner::Queues], account)
    }

    async fn usage(&self) -> Result<HashMap<AccountName, MeasuredUsage>, QueueError> {
        let (mut found, mut usage) = (Vec::<(AccountName, QueueId)>::new(), HashMap::new());
        visit_rows(&*self.engine, keys::all_queues(), |entry| {
            let names = keys::queue_of(&entry.key).ok();
            let Some(account) = names.and_then(|(account, _)| AccountName::parse(&account)) else {
                return;
            };
            let of_account: &mut MeasuredUsage = usage.entry(account.clone()).or_default();
            of_account.add(StorageLimit::Queues, 1);
            of_account.add(StorageLimit::StoredBytes, entry.bytes());
            found.extend(QueueRecord::decode(&entry.value).ok().map(|queue| (account, queue.id)));
        })
        .await?;
        if !self.storage.is_on(StorageLimit::StoredBytes) {
            return Ok(usage);
        }
        for (account, id) in found {
            let mut bytes = 0;
            let parts = QueuePart::ALL.map(|part| keys::part_span(id, part));
            for span in parts.into_iter().chain([keys::deduplications(id)]) {
                visit_rows(&*self.engine, span, |entry| bytes += entry.bytes()).await?;
            }
            usage.entry(account).or_default().add(StorageLimit::StoredBytes, bytes);
        }
        Ok(usage)
    }
}

#[cfg(test)]
mod tests;
