//! Append blobs whose rows can be compacted.

use trestle_kv::{ChangeSpec, Writes, transact};

use super::BlobSweeper;
use crate::{
    blobs::{BlobKey, decode_record},
    error::BlobError,
    keys::{self, BlobRow},
    record::Content,
};

impl BlobSweeper {
    /// Compacts the append blobs that have enough rows.
    pub(super) async fn sweep_compactions(&self) -> Result<bool, BlobError> {
        let from = self.with(|positions| positions.compactions.clone());
        let part = self.part(keys::every(BlobRow::Compaction), from).await?;
        let mut failed = None;
        for entry in &part.entries {
            let (container, name) = keys::blob_of(&entry.key)?;
            let blob = BlobKey { container, name };
            // A blob that cannot be compacted must not block the rest.
            let compacted = match self.blobs.compact(&blob).await {
                Ok(()) => self.forget(&blob).await,
                Err(error) => Err(error),
            };
            failed = failed.or(compacted.err());
        }
        let more = !part.next.is_empty();
        self.with(|positions| positions.compactions = part.next);
        failed.map_or(Ok(more), Err)
    }

    /// Removes the row of a blob that is not an append blob any more.
    async fn forget(&self, blob: &BlobKey) -> Result<(), BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        let due = blob.row(BlobRow::Compaction, &[]);
        transact(&*self.blobs.engine, spec, move |reads, _| {
            let current = decode_record(reads.get(record))?;
            let is_append = |content| matches!(content, Content::Append(_));
            let mut writes = Writes::new();
            if !current.is_some_and(|current| is_append(current.content)) {
                writes.delete(due.clone());
            }
            Ok::<_, BlobError>((writes, ()))
        })
        .await?
    }
}
