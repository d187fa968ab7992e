//! Contents that changes of blobs left behind.

use trestle_kv::Entry;

use super::BlobSweeper;
use crate::{
    blobs::BlobKey,
    error::BlobError,
    keys::{self, BlobRow},
    record::Retired,
    stored::Stored as _,
};

impl BlobSweeper {
    /// Reclaims the contents whose grace period has ended.
    pub(super) async fn sweep_retired(&self, row: BlobRow) -> Result<bool, BlobError> {
        let engine = &self.blobs.engine;
        let from = self.with(|positions| positions.retired(row).clone());
        let part = self.part(keys::every(row), from).await?;
        if part.entries.is_empty() {
            self.with(|positions| *positions.retired(row) = part.next);
            return Ok(false);
        }
        let now = engine.now();
        let grace = self.grace.at(now, engine.status().is_space_short);
        let mut failed = None;
        for entry in &part.entries {
            if now.since(keys::time_of(&entry.key)?) < grace {
                continue;
            }
            // Content that cannot be reclaimed must not block the rest.
            if let Err(error) = self.reclaim_row(row, entry).await {
                failed = failed.or(Some(error));
            }
        }
        let more = !part.next.is_empty();
        self.with(|positions| *positions.retired(row) = part.next);
        failed.map_or(Ok(more), Err)
    }

    async fn reclaim_row(&self, row: BlobRow, entry: &Entry) -> Result<(), BlobError> {
        let (container, name) = keys::blob_of(&entry.key)?;
        let retired = Retired::decode(&entry.value)?;
        let blob = BlobKey { container, name };
        match row {
            BlobRow::SharedRetired => self.reclaim_shared(entry, &blob, &retired).await,
            _ => self.reclaim(&blob, &retired, vec![entry.key.clone()]).await,
        }
    }
}
