//! What each account stores in streams.

use std::collections::HashMap;

use trestle_kv::visit_rows;
use trestle_model::{fault::Fault, name::AccountName};
use trestle_rpc::quota::{MeasuredUsage, StorageLimit, StorageOwner};

use super::Streams;
use crate::{
    error::LogError,
    keys,
    stored::StoredForm as _,
    stream::{Head, StreamId, StreamRecord},
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
        let mut heads = HashMap::<StreamId, u64>::new();
        visit_rows(&*self.engine, keys::every_head(), |entry| {
            let head = Head::decode(&entry.value);
            if let (Ok(id), Ok(head)) = (keys::head_of(&entry.key), head) {
                let unsealed = if head.unsealed_records() > 0 { head.unsealed_bytes } else { 0 };
                heads.insert(id, unsealed.saturating_add(head.segment_bytes));
            }
        })
        .await?;
        let mut usage = HashMap::new();
        visit_rows(&*self.engine, keys::every_stream(), |entry| {
            let names = keys::stream_name_of(&entry.key).ok();
            let Some(account) = names.and_then(|(account, _)| AccountName::parse(&account)) else {
                return;
            };
            let of_account: &mut MeasuredUsage = usage.entry(account).or_default();
            of_account.add(StorageLimit::Streams, 1);
            let record = StreamRecord::decode(&entry.value).ok();
            let stored = record.and_then(|record| heads.get(&record.id)).copied();
            let bytes = entry.bytes().saturating_add(stored.unwrap_or_default());
            of_account.add(StorageLimit::StoredBytes, bytes);
        })
        .await?;
        Ok(usage)
    }
}

#[cfg(test)]
mod tests;
