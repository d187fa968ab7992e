//! Restoring what was deleted: the blob, and past states of it.

#[cfg(test)]
mod tests;

use trestle_kv::{ChangeSpec, ReadId, ScanLimit, Writes, transact};
use trestle_service::clock::Ticks;

use super::{BlobKey, Blobs, decode_stored, replace::CURRENT};
use crate::{
    blocks::ATTEMPTS_MAX,
    error::BlobError,
    keys::{self, BlobRow},
    record::{BlobHistory, BlobRecord, Content},
    stored::Stored as _,
    tags,
};

/// Past states that are restored in one change.
const AT_ONCE: ScanLimit = ScanLimit { rows: 256, bytes: 1024 * 1024 };

/// The rows of deleted states.
struct DeletedRows {
    record: ReadId,
    /// Small content of the deleted blob with this etag.
    inline: Option<(Ticks, ReadId)>,
    past: Vec<(u64, ReadId)>,
}

impl Blobs {
    /// Restores a deleted blob, if there is one, and the deleted states of it; does nothing where none is deleted. Up
    /// to 256 states are restored with the blob; more follow.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`] where there is neither a blob nor a deleted one; a failed commit.
    pub(crate) async fn undelete(&self, blob: BlobKey) -> Result<(), BlobError> {
        for _ in 0..ATTEMPTS_MAX {
            while let Some(more) = self.try_undelete(&blob).await? {
                if !more {
                    return Ok(());
                }
            }
        }
        Err(BlobError::KeepsChanging(blob.name))
    }

    /// Returns whether there may be more to restore; none where the blob was changed meanwhile.
    async fn try_undelete(&self, blob: &BlobKey) -> Result<Option<bool>, BlobError> {
        let snapshot = self.engine.snapshot().await?;
        let stored = snapshot.get(&blob.row(BlobRow::Record, &[])).await?;
        let of_blob = (blob.container, &blob.name);
        let span = keys::numbered_rows(BlobRow::SoftDeleted, of_blob, CURRENT + 1..u64::MAX);
        let scan = snapshot.scan(&span, AT_ONCE).await?;
        drop(snapshot);
        let mut spec = ChangeSpec::new(blob.domain());
        let mut past = Vec::with_capacity(scan.entries.len());
        for entry in &scan.entries {
            let at = keys::time_of(&entry.key)?.get();
            past.push((at, spec.read(blob.row(BlobRow::Past, &[at]))));
        }
        let stored = decode_stored(stored.as_ref())?;
        let inline = stored.filter(|stored| {
            stored.deletion.is_some() && matches!(stored.content, Content::Inline { .. })
        });
        let rows = DeletedRows {
            record: spec.read(blob.row(BlobRow::Record, &[])),
            inline: inline.map(|stored| {
                let at = stored.etag.0;
                (at, spec.read(blob.row(BlobRow::Inline, &[at.get()])))
            }),
            past,
        };
        let (blob, more) = (blob.clone(), scan.more);
        transact(&*self.engine, spec, move |reads, version| {
            let stored = decode_stored(reads.get(rows.record))?;
            let mut record = stored.ok_or_else(|| blob.not_found())?;
            let mut writes = Writes::new();
            if record.deletion.is_some() {
                if let Content::Inline { .. } = record.content {
                    let at = record.etag.0;
                    let Some((_, row)) = rows.inline.filter(|(of, _)| *of == at) else {
                        return Ok((Writes::new(), None));
                    };
                    let bytes = reads.get(row);
                    let bytes = bytes.ok_or_else(|| BlobError::corrupt("inline content"))?;
                    writes.put(blob.row(BlobRow::Inline, &[]), bytes.clone());
                    writes.delete(reads.key(row).clone());
                }
                writes.delete(blob.row(BlobRow::SoftDeleted, &[CURRENT]));
                record.deletion = None;
                tags::reindex(&blob, &[], &record.tags, &mut writes);
                blob.require_compaction(&record, version, &mut writes);
            }
            let mut snapshots = 0;
            for (at, row) in &rows.past {
                let Some(past) = decode_stored(reads.get(*row))? else { continue };
                snapshots += u64::from(past.deletion.is_some() && past.version.is_none());
                let past = BlobRecord { deletion: None, ..past };
                writes.put(reads.key(*row).clone(), past.encode());
                writes.delete(blob.row(BlobRow::SoftDeleted, &[*at]));
            }
            record.history = BlobHistory {
                snapshots: record.history.snapshots + snapshots,
                newest_shared: Some(version.ticks()),
            };
            writes.put(reads.key(rows.record).clone(), record.encode());
            Ok::<_, BlobError>((writes, Some(more)))
        })
        .await?
    }
}
