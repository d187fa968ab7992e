//! The blobs of deleted containers.

use trestle_kv::{ChangeSpec, Entry, Lock, ScanLimit, Writes, transact};

use super::{BlobSweeper, CONTAINER_GRACE, STEP, reclaim::DueRow};
use crate::{
    blobs::{BlobKey, CURRENT_STATE},
    error::BlobError,
    keys::{self, BlobRow},
    record::{BlobRecord, ContainerId, ContainerRecord, Retired, Staging},
    stored::Stored as _,
    tags,
};

/// Most deleted containers examined in one tick.
const DELETED: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

impl BlobSweeper {
    /// How many deleted containers are not reclaimed yet, up to a bound.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn pending(&self) -> Result<usize, BlobError> {
        Ok(self.deleted().await?.len())
    }

    async fn deleted(&self) -> Result<Vec<Entry>, BlobError> {
        Ok(self.blobs.engine.scan(&keys::deleted_containers(), DELETED).await?.entries)
    }

    /// Deletes the containers whose retention has ended.
    pub(super) async fn sweep_expired_containers(&self) -> Result<bool, BlobError> {
        let from = self.with(|positions| positions.expired_containers.clone());
        let part = self.part(keys::every_soft_deleted_container(), from).await?;
        let now = self.blobs.engine.now();
        for entry in &part.entries {
            let record = ContainerRecord::decode(&entry.value)?;
            if record.deletion.is_none_or(|deletion| now >= deletion.until) {
                self.expire_container(entry, record.id).await?;
            }
        }
        let more = !part.next.is_empty();
        self.with(|positions| positions.expired_containers = part.next);
        Ok(more)
    }

    /// Only as it was read: it may have been restored meanwhile, and deleted again.
    async fn expire_container(&self, entry: &Entry, id: ContainerId) -> Result<(), BlobError> {
        let (key, deleted) = (entry.key.clone(), keys::deleted_container(id));
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        spec.also(keys::own_domain(&deleted), Lock::Exclusive);
        let (stored, expired) = (spec.read(key), entry.value.clone());
        let now = self.blobs.engine.now();
        transact(&*self.blobs.engine, spec, move |reads, _| {
            let mut writes = Writes::new();
            if reads.get(stored) == Some(&expired) {
                writes.delete(reads.key(stored).clone());
                writes.put(deleted.clone(), keys::encode_number(now.get()));
            }
            Ok::<_, BlobError>((writes, ()))
        })
        .await?
    }

    /// Reclaims a part of each container whose grace period has ended, while no backup reads objects.
    pub(super) async fn sweep_containers(&self) -> Result<bool, BlobError> {
        let (mut more, now) = (false, self.blobs.engine.now());
        for entry in self.deleted().await? {
            let at = keys::decode_number(&entry.value, "time of a deleted container")?;
            let at = trestle_model::time::Ticks::new(at);
            let at = at.ok_or_else(|| BlobError::corrupt("time of a deleted container"))?;
            if now.since(at) < CONTAINER_GRACE {
                continue;
            }
            let Some(_deletes) = self.blobs.objects.hold().begin_delete() else { return Ok(false) };
            let id = ContainerId(keys::number_of(&entry.key)?);
            if self.reclaim_part(id).await? {
                more = true;
            } else {
                self.delete_rows(keys::own_domain(&entry.key), &[entry.key], &[]).await?;
            }
        }
        Ok(more)
    }

    /// Returns whether there was something.
    async fn reclaim_part(&self, id: ContainerId) -> Result<bool, BlobError> {
        let engine = &self.blobs.engine;
        let records = engine.scan(&keys::named(BlobRow::Record, id, ""), STEP).await?.entries;
        let past = engine.scan(&keys::named(BlobRow::Past, id, ""), STEP).await?.entries;
        let stagings = engine.scan(&keys::named(BlobRow::Staging, id, ""), STEP).await?.entries;
        for entry in &records {
            let (blob, mut retired) = (blob_of(entry)?, Retired::default());
            let stored = BlobRecord::decode(&entry.value)?;
            retired.content(&stored.content);
            let at = stored.etag.0.get();
            let rows = [BlobRow::Inline, BlobRow::Compaction].map(|row| blob.row(row, &[]));
            let tags = tags::indexed(Some(&stored)).iter().map(|tag| keys::tag_row(&blob, tag));
            let mut beside: Vec<_> = rows.into_iter().chain(tags).collect();
            if stored.deletion.is_some() {
                beside.push(blob.row(BlobRow::Inline, &[at]));
                beside.push(blob.row(BlobRow::SoftDeleted, &[CURRENT_STATE]));
            }
            self.reclaim(&blob, &retired, DueRow { beside, ..DueRow::of(entry) }).await?;
        }
        for entry in &past {
            let (blob, mut retired) = (blob_of(entry)?, Retired::default());
            retired.content(&BlobRecord::decode(&entry.value)?.content);
            let at = [keys::time_of(&entry.key)?.get()];
            let beside = [BlobRow::Inline, BlobRow::SoftDeleted].map(|row| blob.row(row, &at));
            self.reclaim(&blob, &retired, DueRow { beside: beside.into(), ..DueRow::of(entry) })
                .await?;
        }
        for entry in &stagings {
            let (blob, mut retired) = (blob_of(entry)?, Retired::default());
            retired.staging(Some(&Staging::decode(&entry.value)?));
            self.reclaim(&blob, &retired, DueRow::of(entry)).await?;
        }
        Ok(!records.is_empty() || !past.is_empty() || !stagings.is_empty())
    }
}

fn blob_of(entry: &Entry) -> Result<BlobKey, BlobError> {
    let (container, name) = keys::blob_of(&entry.key)?;
    Ok(BlobKey { container, name })
}
