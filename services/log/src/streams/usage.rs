//! What each account stores in streams.

use std::collections::HashMap;

use trestle_kv::visit_rows;
use trestle_model::{fault::Fault, name::AccountName};
use trestle_rpc::quota::{MeasuredUsage, StorageLimit, StorageOwner};

use super::Streams;
use crate::{
    error::LogError, heads::read_heads, keys, stored::StoredForm as _, stream::StreamRecord,
};

impl Streams {
    /// Measures what each account stores, if an account has a quota on it. The heads of streams count their bytes.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn measure(&self) -> Result<(), Fault> {
        Ok(self.storage.measure(StorageOwner::Logs, self.usage()).await?)
    }

    async fn usage(&self) -> Result<HashMap<AccountName, MeasuredUsage>, LogError> {
        let heads = read_heads(&*self.engine, usize::MAX).await?;
        let mut usage = HashMap::new();
        visit_rows(&*self.engine, keys::every_stream(), |entry| {
            let names = keys::stream_name_of(&entry.key).ok();
            let Some(account) = names.and_then(|(account, _)| AccountName::parse(&account)) else {
                return;
            };
            let of_account: &mut MeasuredUsage = usage.entry(account).or_default();
            of_account.add(StorageLimit::Streams, 1);
            let record = StreamRecord::decode(&entry.value).ok();
            let head = record.and_then(|record| heads.get(&record.id).copied().flatten());
            let stored = head.map_or(0, |head| head.stored_bytes());
            let bytes = entry.bytes().saturating_add(stored);
            of_account.add(StorageLimit::StoredBytes, bytes);
        })
        .await?;
        Ok(usage)
    }
}

#[cfg(test)]
mod tests;
