//! Objects that no blob has: those of uploads that a crash ended.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::TryStreamExt as _;
use trestle_kv::{ChangeSpec, Lock, Writes, transact};
use trestle_model::time::Ticks;

use super::{BlobSweeper, ORPHAN_GRACE, STEP};
use crate::{error::BlobError, ids, keys, record::ContentId};

impl BlobSweeper {
    /// Deletes the objects of ids that were allocated long ago and are not live, and closes their blocks of ids, while
    /// no backup reads objects.
    pub(super) async fn sweep_orphans(&self) -> Result<bool, BlobError> {
        let Some(_deletes) = self.blobs.objects.hold().begin_delete() else { return Ok(false) };
        let (engine, now) = (&self.blobs.engine, self.blobs.engine.now());
        let scan = engine.scan(&keys::every_content_ids(), STEP).await?;
        let (mut blocks, mut candidates) = (Vec::<Bytes>::new(), BTreeSet::new());
        for entry in &scan.entries {
            let at = keys::decode_number(&entry.value, "time of a block of ids")?;
            let at = Ticks::new(at).ok_or_else(|| BlobError::corrupt("time of a block of ids"))?;
            if now.since(at) < ORPHAN_GRACE {
                continue;
            }
            let first = keys::number_of(&entry.key)?;
            candidates.extend(self.not_live(first, first.saturating_add(ids::BLOCK)).await?);
            blocks.push(entry.key.clone());
        }
        if blocks.is_empty() {
            return Ok(false);
        }
        if !candidates.is_empty() {
            let is_orphan = |id: &crate::extent::ExtentId| candidates.contains(&id.content);
            let objects =
                self.blobs.objects.list().try_filter(|id| std::future::ready(is_orphan(id)));
            let orphans: Vec<_> = objects.try_collect().await?;
            let partial = self.blobs.objects.delete_partial(candidates).await?;
            if partial > 0 {
                tracing::info!(files = partial, "deleted files of writes that a crash ended");
            }
            if !orphans.is_empty() {
                tracing::info!(objects = orphans.len(), "deleting objects that no blob has");
                self.blobs.objects.delete_each(orphans.into_iter()).await?;
            }
            self.blobs.objects.sync_deletes().await?;
        }
        for block in &blocks {
            self.delete_rows(keys::own_domain(block), std::slice::from_ref(block), &[]).await?;
        }
        Ok(scan.more)
    }

    /// The ids of a block that no content has. They are read in a change of their domains, so no change that is in
    /// progress publishes one: a later one finds that its upload took too long.
    async fn not_live(&self, first: u64, end: u64) -> Result<BTreeSet<ContentId>, BlobError> {
        let rows: Vec<_> = (first..end).map(|id| keys::live(ContentId(id))).collect();
        let Some((one, others)) = rows.split_first() else { return Ok(BTreeSet::new()) };
        let mut spec = ChangeSpec::new(keys::own_domain(one));
        for row in others {
            spec.also(keys::own_domain(row), Lock::Exclusive);
        }
        let rows: Vec<_> = rows.into_iter().map(|row| spec.read(row)).collect();
        transact(&*self.blobs.engine, spec, move |reads, _| {
            let ids = (first..end).zip(&rows).filter(|(_, row)| reads.get(**row).is_none());
            Ok::<_, BlobError>((Writes::new(), ids.map(|(id, _)| ContentId(id)).collect()))
        })
        .await?
    }
}
