//! What each account stores in tables.

use std::collections::HashMap;

use trestle_kv::visit_rows;
use trestle_model::{fault::Fault, name::AccountName};
use trestle_proto::service::v1::QuotaUsage;
use trestle_rpc::quota::{MeasuredUsage, StorageLimit, StorageOwner};

use super::Tables;
use crate::{
    error::TableError,
    keys::{self, TableId, TableRecord},
};

impl Tables {
    /// Measures what each account stores, if an account has a quota on it.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn measure(&self) -> Result<(), Fault> {
        Ok(self.storage.measure(StorageOwner::Tables, self.usage()).await?)
    }

    /// The quotas of an account, with their usage.
    pub(crate) fn quotas(&self, account: &AccountName) -> Vec<QuotaUsage> {
        self.storage.report(&[StorageOwner::Tables], account)
    }

    async fn usage(&self) -> Result<HashMap<AccountName, MeasuredUsage>, TableError> {
        let (mut found, mut usage) = (Vec::<(AccountName, TableId)>::new(), HashMap::new());
        visit_rows(&*self.engine, keys::all_tables(), |entry| {
            let Some(account) = keys::table_account(&entry.key) else { return };
            let of_account: &mut MeasuredUsage = usage.entry(account.clone()).or_default();
            of_account.add(StorageLimit::Tables, 1);
            of_account.add(StorageLimit::StoredBytes, entry.bytes());
            found.extend(TableRecord::decode(&entry.value).ok().map(|table| (account, table.id)));
        })
        .await?;
        if !self.storage.is_on(StorageLimit::StoredBytes) {
            return Ok(usage);
        }
        for (account, id) in found {
            let mut bytes = 0;
            visit_rows(&*self.engine, keys::entities(id), |entry| bytes += entry.bytes()).await?;
            usage.entry(account).or_default().add(StorageLimit::StoredBytes, bytes);
        }
        Ok(usage)
    }
}

#[cfg(test)]
mod tests;
