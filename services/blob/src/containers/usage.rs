//! What each account stores in containers: rows, and the objects that they refer to.

use std::collections::HashMap;

use trestle_kv::visit_rows;
use trestle_model::{fault::Fault, name::AccountName};
use trestle_proto::service::v1::QuotaUsage;
use trestle_rpc::quota::{MeasuredUsage, StorageLimit, StorageOwner};

use super::Containers;
use crate::{
    blobs::BlobKey,
    error::BlobError,
    keys::{self, BlobRow},
    record::{BlobRecord, ContainerId, ContainerRecord, Content, ContentId, Part, Staging},
    stored::Stored as _,
};

/// The rows of blobs that count by their length. What changes left behind does not count: it is deleted once no read
/// can need it.
const ROWS: [BlobRow; 5] =
    [BlobRow::Record, BlobRow::Staging, BlobRow::SoftDeleted, BlobRow::Inline, BlobRow::Compaction];

/// What states of a blob share if it is equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentIdentity {
    Objects(ContentId),
    List(u64),
    Generation(u64),
}

impl Containers {
    /// Measures what each account stores, if an account has a quota on it.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn measure(&self) -> Result<(), Fault> {
        Ok(self.storage.measure(StorageOwner::Blobs, self.usage()).await?)
    }

    /// The quotas of an account, with their usage. Those of streams too, whose usage a process with the role `log`
    /// knows: that service has no statistics.
    pub(crate) fn quotas(&self, account: &AccountName) -> Vec<QuotaUsage> {
        self.storage.report(&[StorageOwner::Blobs, StorageOwner::Logs], account)
    }

    async fn usage(&self) -> Result<HashMap<AccountName, MeasuredUsage>, BlobError> {
        let (mut found, mut usage) = (Vec::<(AccountName, ContainerId)>::new(), HashMap::new());
        // A deleted container that can be restored has its bytes.
        for (span, count) in
            [(keys::all_containers(), 1), (keys::every_soft_deleted_container(), 0)]
        {
            visit_rows(&*self.engine, span, |entry| {
                let Some(account) = keys::container_account(&entry.key) else { return };
                let of_account: &mut MeasuredUsage = usage.entry(account.clone()).or_default();
                of_account.add(StorageLimit::Containers, count);
                of_account.add(StorageLimit::StoredBytes, entry.bytes());
                let container = ContainerRecord::decode(&entry.value).ok();
                found.extend(container.map(|container| (account, container.id)));
            })
            .await?;
        }
        for (account, id) in found {
            let of_account = usage.entry(account).or_default();
            if self.storage.is_on(StorageLimit::StoredBytes) {
                self.add_blobs(id, of_account).await?;
            } else if self.storage.is_on(StorageLimit::Blobs) {
                self.add_rows(BlobRow::Record, id, of_account).await?;
            }
        }
        Ok(usage)
    }

    async fn add_blobs(
        &self,
        container: ContainerId,
        usage: &mut MeasuredUsage,
    ) -> Result<(), BlobError> {
        for row in ROWS {
            self.add_rows(row, container, usage).await?;
        }
        self.add_past_states(container, usage).await?;
        for (key, generation, bytes) in self.generations(BlobRow::StagedBlock, container).await? {
            let staging = self.engine.get(&key.row(BlobRow::Staging, &[])).await?;
            let staging = staging.and_then(|value| Staging::decode(&value).ok());
            if staging.is_some_and(|staging| staging.generation == generation) {
                usage.add(StorageLimit::StoredBytes, bytes);
            }
        }
        for (key, generation, bytes) in self.generations(BlobRow::Chunk, container).await? {
            if self.has_source(&key, ContentIdentity::Generation(generation)).await? {
                usage.add(StorageLimit::StoredBytes, bytes);
            }
        }
        Ok(())
    }

    async fn add_rows(
        &self,
        row: BlobRow,
        container: ContainerId,
        usage: &mut MeasuredUsage,
    ) -> Result<(), BlobError> {
        visit_rows(&*self.engine, keys::named(row, container, ""), |entry| {
            usage.add(StorageLimit::StoredBytes, entry.bytes());
            if row == BlobRow::Record {
                let record = BlobRecord::decode(&entry.value).ok();
                let (_, bytes) = record.as_ref().and_then(source_of).unzip();
                usage.add(StorageLimit::StoredBytes, bytes.unwrap_or_default());
                let is_blob = record.is_none_or(|record| record.deletion.is_none());
                usage.add(StorageLimit::Blobs, u64::from(is_blob));
            }
        })
        .await?;
        Ok(())
    }

    /// Snapshots, versions and deleted states. Those that share their content with the blob, or with the state before
    /// them, have none of their own.
    async fn add_past_states(
        &self,
        container: ContainerId,
        usage: &mut MeasuredUsage,
    ) -> Result<(), BlobError> {
        let (mut own, mut last) = (Vec::new(), None);
        visit_rows(&*self.engine, keys::named(BlobRow::Past, container, ""), |entry| {
            usage.add(StorageLimit::StoredBytes, entry.bytes());
            let source = BlobRecord::decode(&entry.value).ok().and_then(|past| source_of(&past));
            let (Ok((_, name)), Some((source, bytes))) = (keys::blob_of(&entry.key), source) else {
                return;
            };
            let state = Some((BlobKey { container, name }, source));
            if state != last {
                own.extend(state.clone().map(|(key, source)| (key, source, bytes)));
                last = state;
            }
        })
        .await?;
        for (key, source, bytes) in own {
            if self.current_source(&key).await? != Some(source) {
                usage.add(StorageLimit::StoredBytes, bytes);
            }
        }
        Ok(())
    }

    /// The bytes of rows with a generation behind the name, and of the objects of staged blocks, by blob and
    /// generation.
    async fn generations(
        &self,
        row: BlobRow,
        container: ContainerId,
    ) -> Result<Vec<(BlobKey, u64, u64)>, BlobError> {
        let mut found = Vec::<(BlobKey, u64, u64)>::new();
        visit_rows(&*self.engine, keys::named(row, container, ""), |entry| {
            let (Ok((_, name)), Ok(generation)) =
                (keys::blob_of(&entry.key), keys::generation_of(&entry.key))
            else {
                return;
            };
            let objects = match row {
                BlobRow::StagedBlock => Part::decode(&entry.value).map_or(0, |part| part.size),
                _ => 0,
            };
            let bytes = entry.bytes().saturating_add(objects);
            match found.last_mut().filter(|(key, it, _)| key.name == name && *it == generation) {
                Some((_, _, sum)) => *sum = sum.saturating_add(bytes),
                None => found.push((BlobKey { container, name }, generation, bytes)),
            }
        })
        .await?;
        Ok(found)
    }

    /// Whether the blob or one of its past states has this content.
    async fn has_source(&self, key: &BlobKey, source: ContentIdentity) -> Result<bool, BlobError> {
        if self.current_source(key).await? == Some(source) {
            return Ok(true);
        }
        let mut is_found = false;
        visit_rows(&*self.engine, key.past(), |entry| {
            let past = BlobRecord::decode(&entry.value).ok();
            is_found |= past.and_then(|past| source_of(&past)).is_some_and(|it| it.0 == source);
        })
        .await?;
        Ok(is_found)
    }

    async fn current_source(&self, key: &BlobKey) -> Result<Option<ContentIdentity>, BlobError> {
        let current = self.engine.get(&key.row(BlobRow::Record, &[])).await?;
        let current = current.and_then(|value| BlobRecord::decode(&value).ok());
        Ok(current.and_then(|record| source_of(&record)).map(|(source, _)| source))
    }
}

/// The content of a state of a blob that is not in its own row, and its bytes; pages count by their rows.
fn source_of(record: &BlobRecord) -> Option<(ContentIdentity, u64)> {
    match record.content {
        Content::Inline { .. } => None,
        Content::Whole(part) => Some((ContentIdentity::Objects(part.content), part.size)),
        Content::Blocks { list, size } => Some((ContentIdentity::List(list), size)),
        Content::Append(content) => {
            Some((ContentIdentity::Generation(content.generation), content.size))
        }
        Content::Pages(content) => Some((ContentIdentity::Generation(content.generation), 0)),
    }
}

#[cfg(test)]
mod tests;
