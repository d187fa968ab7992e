//! Staged blocks that were not committed in time.

use trestle_kv::{ChangeSpec, Entry, Writes, transact};
use trestle_model::limits::STAGED_BLOCKS_KEPT;

use super::BlobSweeper;
use crate::{
    blobs::BlobKey,
    error::BlobError,
    keys::{self, BlobRow},
    record::{Retired, Staging},
    stored::Stored as _,
};

impl BlobSweeper {
    /// Retires staged blocks that were not committed in time.
    pub(super) async fn sweep_stagings(&self) -> Result<bool, BlobError> {
        let from = self.with(|positions| positions.stagings.clone());
        let part = self.part(keys::every(BlobRow::Staging), from).await?;
        let now = self.blobs.engine.now();
        for entry in &part.entries {
            let staging = Staging::decode(&entry.value)?;
            if now.since(staging.changed_at) >= STAGED_BLOCKS_KEPT {
                self.retire_staging(entry, staging).await?;
            }
        }
        let more = !part.next.is_empty();
        self.with(|positions| positions.stagings = part.next);
        Ok(more)
    }

    async fn retire_staging(&self, entry: &Entry, expired: Staging) -> Result<(), BlobError> {
        let (container, name) = keys::blob_of(&entry.key)?;
        let blob = BlobKey { container, name };
        let mut spec = ChangeSpec::new(blob.domain());
        let row = spec.read(entry.key.clone());
        transact(&*self.blobs.engine, spec, move |reads, version| {
            let current = reads.get(row).map(|value| Staging::decode(value)).transpose()?;
            let (mut writes, mut retired) = (Writes::new(), Retired::default());
            // Otherwise a block was staged, or all were committed, meanwhile.
            if current == Some(expired) {
                writes.delete(reads.key(row).clone());
                retired.staging(Some(&expired));
                blob.retire(&retired, false, version, &mut writes);
            }
            Ok::<_, BlobError>((writes, ()))
        })
        .await?
    }
}
