//! Contents that changes of blobs left behind.

use std::time::Duration;

use trestle_kv::{ChangeSpec, Entry, Writes, transact};
use trestle_model::time::Ticks;

use super::{BlobSweeper, reclaim::DueRow};
use crate::{
    blobs::BlobKey,
    error::BlobError,
    keys::{self, BlobRow},
    record::Retired,
    stored::Stored as _,
};

impl BlobSweeper {
    /// Reclaims the contents whose grace period has ended, while no backup reads objects.
    pub(super) async fn sweep_retired(&self, row: BlobRow) -> Result<bool, BlobError> {
        let engine = &self.blobs.engine;
        let from = self.with(|positions| positions.retired(row).clone());
        let part = self.part(keys::every(row), from).await?;
        if part.entries.is_empty() {
            self.with(|positions| *positions.retired(row) = part.next);
            return Ok(false);
        }
        let now = engine.now();
        let grace = self.grace.at(now, engine.status().is_space_short());
        let (mut more, mut failed) = (!part.next.is_empty(), None);
        for entry in &part.entries {
            if now.since(keys::time_of(&entry.key)?) < grace {
                continue;
            }
            let Some(_deletes) = self.blobs.objects.hold().begin_delete() else { return Ok(false) };
            // Content that cannot be reclaimed must not block the rest.
            match self.reclaim_row(row, entry, (now, grace)).await {
                Ok(is_done) => more |= !is_done,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        self.with(|positions| *positions.retired(row) = part.next);
        failed.map_or(Ok(more), Err)
    }

    /// Returns false where a part remains.
    async fn reclaim_row(
        &self,
        row: BlobRow,
        entry: &Entry,
        (now, grace): (Ticks, Duration),
    ) -> Result<bool, BlobError> {
        let (container, name) = keys::blob_of(&entry.key)?;
        let retired = Retired::decode(&entry.value)?;
        let blob = BlobKey { container, name };
        match row {
            BlobRow::SharedRetired => {
                self.reclaim_shared(entry, (&blob, &retired), (now, grace)).await
            }
            _ if !self.is_due(&blob, entry, grace).await? => Ok(true),
            _ => self.reclaim(&blob, &retired, DueRow::of(entry)).await,
        }
    }

    /// Whether a row is due in the order of changes too. What is in it may be reserved by a copy, whose last change
    /// removes the row unless it is too old then: so none does after this change.
    async fn is_due(
        &self,
        blob: &BlobKey,
        entry: &Entry,
        grace: Duration,
    ) -> Result<bool, BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let (row, at) = (spec.read(entry.key.clone()), keys::time_of(&entry.key)?);
        transact(&*self.blobs.engine, spec, move |reads, version| {
            let is_due = reads.get(row).is_some() && version.ticks().since(at) >= grace;
            Ok::<_, BlobError>((Writes::new(), is_due))
        })
        .await?
    }
}
