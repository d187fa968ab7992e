//! Contents that changes of blobs left behind.

use super::{BlobSweeper, READ_GRACE, READ_GRACE_SHORT};
use crate::{
    blobs::BlobKey,
    error::BlobError,
    keys::{self, BlobRow},
    record::Retired,
    stored::Stored as _,
};

impl BlobSweeper {
    /// Reclaims the contents whose grace period has ended.
    pub(super) async fn sweep_retired(&self) -> Result<bool, BlobError> {
        let engine = &self.blobs.engine;
        let from = self.with(|positions| positions.retired.clone());
        let part = self.part(keys::every(BlobRow::Retired), from).await?;
        if part.entries.is_empty() {
            self.with(|positions| positions.retired = part.next);
            return Ok(false);
        }
        let is_short = engine.status().is_space_short;
        let (grace, now) = (if is_short { READ_GRACE_SHORT } else { READ_GRACE }, engine.now());
        for entry in &part.entries {
            if now.since(keys::retired_at(&entry.key)?) < grace {
                continue;
            }
            let (container, name) = keys::blob_of(&entry.key)?;
            let blob = BlobKey { container, name };
            self.reclaim(&blob, &Retired::decode(&entry.value)?, vec![entry.key.clone()]).await?;
        }
        let more = !part.next.is_empty();
        self.with(|positions| positions.retired = part.next);
        Ok(more)
    }
}
