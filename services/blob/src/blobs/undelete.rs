//! Restoring what was deleted: the blob, and past states of it.

#[cfg(test)]
mod tests;

use trestle_kv::{ChangeSpec, ReadId, Reads, ScanLimit, Version, Writes, transact};
use trestle_model::time::Ticks;

use super::{BlobKey, Blobs, decode_stored, replace::CURRENT};
use crate::{
    blocks::ATTEMPTS_MAX,
    error::BlobError,
    keys::{self, BlobRow},
    record::{BlobHistory, BlobKind, BlobRecord, Content, Retired, Staging},
    stored::Stored as _,
    tags,
};

/// Past states that are restored in one change.
const AT_ONCE: ScanLimit = ScanLimit { rows: 256, bytes: 1024 * 1024 };

/// The rows of deleted states.
struct DeletedRows {
    record: ReadId,
    staging: ReadId,
    /// Small content of the deleted blob with this etag.
    inline: Option<(Ticks, ReadId)>,
    past: Vec<(u64, ReadId)>,
}

impl DeletedRows {
    /// Restores small content. Returns false where the blob was changed meanwhile.
    fn restore_inline(
        &self,
        (blob, record): (&BlobKey, &BlobRecord),
        reads: &Reads<'_>,
        writes: &mut Writes,
    ) -> Result<bool, BlobError> {
        let Content::Inline { .. } = record.content else { return Ok(true) };
        let Some((_, row)) = self.inline.filter(|(of, _)| *of == record.etag.0) else {
            return Ok(false);
        };
        let bytes = reads.get(row).ok_or_else(|| BlobError::corrupt("inline content"))?;
        writes.put(blob.row(BlobRow::Inline, &[]), bytes.clone());
        writes.delete(reads.key(row).clone());
        Ok(true)
    }
}

/// What one change restored.
struct Undeleted {
    /// Whether there is a blob, or a version was restored.
    is_found: bool,
    /// Where there may be more to restore.
    next: Option<u64>,
}

impl Blobs {
    /// Restores a deleted blob, if there is one, and the deleted states of it; does nothing where none is deleted. Up
    /// to 256 states are restored with the blob; more follow. Without a blob versions are restored, and no snapshots.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`] where there is neither a blob nor a deleted one or a deleted version; a failed
    /// commit.
    pub(crate) async fn undelete(&self, blob: BlobKey) -> Result<(), BlobError> {
        let (mut from, mut is_found) = (CURRENT + 1, false);
        for _ in 0..ATTEMPTS_MAX {
            while let Some(undeleted) = self.try_undelete(&blob, from).await? {
                is_found |= undeleted.is_found;
                match undeleted.next {
                    Some(next) => from = next,
                    None if is_found => return Ok(()),
                    None => return Err(blob.not_found()),
                }
            }
        }
        Err(BlobError::KeepsChanging(blob.name))
    }

    /// Restores the states from a number on; none where the blob was changed meanwhile.
    async fn try_undelete(
        &self,
        blob: &BlobKey,
        from: u64,
    ) -> Result<Option<Undeleted>, BlobError> {
        let snapshot = self.engine.snapshot().await?;
        let stored = snapshot.get(&blob.row(BlobRow::Record, &[])).await?;
        let of_blob = (blob.container, &blob.name);
        let span = keys::numbered_rows(BlobRow::SoftDeleted, of_blob, from..u64::MAX);
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
            staging: spec.read(blob.row(BlobRow::Staging, &[])),
            inline: inline.map(|stored| {
                let at = stored.etag.0;
                (at, spec.read(blob.row(BlobRow::Inline, &[at.get()])))
            }),
            past,
        };
        let last = rows.past.last().filter(|_| scan.more);
        let (blob, next) = (blob.clone(), last.map(|(at, _)| at.saturating_add(1)));
        transact(&*self.engine, spec, move |reads, version| {
            let mut record = decode_stored(reads.get(rows.record))?;
            let mut writes = Writes::new();
            let deleted = record.as_mut().filter(|record| record.deletion.is_some());
            if let Some(record) = deleted {
                if !rows.restore_inline((&blob, record), reads, &mut writes)? {
                    return Ok((Writes::new(), None));
                }
                writes.delete(blob.row(BlobRow::SoftDeleted, &[CURRENT]));
                record.deletion = None;
                tags::reindex(&blob, &[], &record.tags, &mut writes);
                blob.require_compaction(record, version, &mut writes);
                if record.content.kind() != BlobKind::Block {
                    blob.drop_staged((reads, rows.staging), version, &mut writes)?;
                }
            }
            let (mut snapshots, mut is_found) = (0, record.is_some());
            for (at, row) in &rows.past {
                let Some(past) = decode_stored(reads.get(*row))? else { continue };
                if record.is_none() && past.version.is_none() {
                    continue;
                }
                is_found = true;
                snapshots += u64::from(past.deletion.is_some() && past.version.is_none());
                let past = BlobRecord { deletion: None, ..past };
                writes.put(reads.key(*row).clone(), past.encode());
                writes.delete(blob.row(BlobRow::SoftDeleted, &[*at]));
            }
            if let Some(mut record) = record {
                record.history = BlobHistory {
                    snapshots: record.history.snapshots + snapshots,
                    newest_shared: Some(version.ticks()),
                };
                writes.put(reads.key(rows.record).clone(), record.encode());
            }
            Ok::<_, BlobError>((writes, Some(Undeleted { is_found, next })))
        })
        .await?
    }
}

impl BlobKey {
    /// Drops staged blocks, which only a block blob can have.
    fn drop_staged(
        &self,
        (reads, row): (&Reads<'_>, ReadId),
        version: Version,
        writes: &mut Writes,
    ) -> Result<(), BlobError> {
        let staging = reads.get(row).map(|value| Staging::decode(value)).transpose()?;
        if staging.is_some() {
            writes.delete(reads.key(row).clone());
        }
        let mut retired = Retired::default();
        retired.staging(staging.as_ref());
        self.retire(&retired, false, version, writes);
        Ok(())
    }
}
