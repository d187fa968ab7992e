//! Deleting a blob, its snapshots, or one of them. What their contents leave behind is decided by the sweeper.

#[cfg(test)]
mod tests;

use trestle_kv::{
    ChangeSpec, ReadId, Reads, ScanLimit, Span, Version, Writes, after_key, transact,
};
use trestle_model::time::Ticks;
use uuid::Uuid;

use super::{
    BlobKey, BlobState, Blobs, StateName, decode_record, remove_inline, replace::ReplacedRows,
};
use crate::{
    blocks::ATTEMPTS_MAX,
    conditions::{Conditions, WriteKind},
    error::BlobError,
    keys::{self, BlobRow},
    lease::LeaseError,
    record::{BlobRecord, Content, Deletion, Retention, Retired},
    stored::Stored as _,
    tags,
};

/// Snapshots that are deleted in one change.
const SNAPSHOTS_AT_ONCE: usize = 256;
/// Past states that are read at once.
const SCAN: ScanLimit = ScanLimit { rows: SNAPSHOTS_AT_ONCE, bytes: 1024 * 1024 };

/// What a call deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteScope {
    /// The blob, which must have no snapshots.
    Blob,
    /// The blob and its snapshots.
    WithSnapshots,
    /// The snapshots of the blob.
    SnapshotsOnly,
    /// One snapshot.
    Snapshot(Ticks),
    /// One version that is not the blob itself.
    Version(Ticks),
}

/// Whether a blob may be deleted; one with staged blocks only has no record.
///
/// # Errors
/// A lease or a condition that does not permit it, or snapshots that it excludes.
fn check_delete(
    current: Option<&BlobRecord>,
    scope: DeleteScope,
    (conditions, lease_id): (&Conditions, Option<Uuid>),
    now: Ticks,
) -> Result<(), BlobError> {
    let lease = match (current, lease_id) {
        // A lease protects the blob, and not its snapshots.
        (Some(current), id) if scope == DeleteScope::SnapshotsOnly => {
            current.lease.check_read(id, now)
        }
        (Some(current), id) => current.lease.check_write(id, now).map(drop),
        (None, Some(_)) => Err(LeaseError::NotPresent),
        (None, None) => Ok(()),
    };
    lease.map_err(BlobError::BlobLease)?;
    conditions.check_write(current, WriteKind::Change)?;
    let has_snapshots = current.is_some_and(|current| current.history.snapshots > 0);
    match scope {
        DeleteScope::Blob if has_snapshots => Err(BlobError::SnapshotsPresent),
        _ => Ok(()),
    }
}

/// What a delete requires, and what it keeps.
#[derive(Debug, Clone)]
struct DeleteRequirements {
    scope: DeleteScope,
    conditions: Conditions,
    lease_id: Option<Uuid>,
    retention: Retention,
}

/// What is left to do after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeleteProgress {
    Done,
    /// There are more snapshots than one change deletes; this one deleted so many.
    More(usize),
}

impl Blobs {
    /// Deletes a blob with its staged blocks, or snapshots. Up to 256 snapshots are deleted in the change that deletes
    /// the blob; of more, the oldest are deleted before it.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], [`BlobError::SnapshotsPresent`], a lease or a condition that does not permit it, or
    /// a failed commit.
    pub(crate) async fn delete(
        &self,
        blob: BlobKey,
        scope: DeleteScope,
        (conditions, lease_id): (Conditions, Option<Uuid>),
        retention: Retention,
    ) -> Result<(), BlobError> {
        let required = DeleteRequirements { scope, conditions, lease_id, retention };
        match scope {
            DeleteScope::Snapshot(at) => return self.delete_one(blob, at, required).await,
            DeleteScope::Version(id) => {
                let snapshot = self.engine.snapshot().await?;
                let (state, _) = StateName::Version(id).find(&*snapshot, &blob).await?;
                drop(snapshot);
                let BlobState::Past(at) = state else { return Err(BlobError::CurrentVersion) };
                return self.delete_one(blob, at, required).await;
            }
            _ => {}
        }
        let mut attempts = 0;
        while attempts < ATTEMPTS_MAX {
            let snapshots = match scope {
                DeleteScope::Blob => Vec::new(),
                _ => self.oldest_snapshots(&blob).await?,
            };
            match self.try_delete(&blob, &snapshots, required.clone()).await? {
                DeleteProgress::Done => return Ok(()),
                DeleteProgress::More(deleted) => attempts += usize::from(deleted == 0),
            }
        }
        Err(BlobError::KeepsChanging(blob.name))
    }

    /// The names of the oldest snapshots, up to a bound.
    async fn oldest_snapshots(&self, blob: &BlobKey) -> Result<Vec<Ticks>, BlobError> {
        let snapshot = self.engine.snapshot().await?;
        let mut span = blob.past();
        let mut found = Vec::new();
        loop {
            let scan = snapshot.scan(&span, SCAN).await?;
            for entry in &scan.entries {
                if decode_record(Some(&entry.value))?.is_some_and(|past| past.version.is_none()) {
                    found.push(keys::time_of(&entry.key)?);
                }
            }
            found.truncate(SNAPSHOTS_AT_ONCE);
            let last = scan.entries.last().filter(|_| scan.more);
            match last.filter(|_| found.len() < SNAPSHOTS_AT_ONCE) {
                Some(last) => span = Span::new(after_key(&last.key), span.end),
                None => return Ok(found),
            }
        }
    }

    async fn try_delete(
        &self,
        blob: &BlobKey,
        snapshots: &[Ticks],
        required: DeleteRequirements,
    ) -> Result<DeleteProgress, BlobError> {
        let (blob, scope, retention) = (blob.clone(), required.scope, required.retention);
        let mut spec = ChangeSpec::new(blob.domain());
        let rows = ReplacedRows::new(&blob, &mut spec, retention);
        let past = |at: &Ticks| (*at, spec.read(blob.row(BlobRow::Past, &[at.get()])));
        let past: Vec<_> = snapshots.iter().map(past).collect();
        transact(&*self.engine, spec, move |reads, version| {
            let now = version.ticks();
            let replaced = rows.get(reads)?;
            let (current, staged) = (replaced.current.as_ref(), replaced.staging);
            if current.is_none() && (staged.is_none() || scope == DeleteScope::SnapshotsOnly) {
                return Err(blob.not_found());
            }
            check_delete(current, scope, (&required.conditions, required.lease_id), now)?;
            let mut writes = Writes::new();
            let deletion = retention.deletion(now);
            let deleted = delete_past(&blob, reads, &past, (version, deletion), &mut writes)?;
            let left = current.map_or(0, |current| current.history.snapshots);
            let left = left.saturating_sub(deleted as u64);
            if left > 0 || scope == DeleteScope::SnapshotsOnly {
                if let Some(mut current) = current.filter(|_| deleted > 0).cloned() {
                    current.history.snapshots = left;
                    writes.put(reads.key(rows.record).clone(), current.encode());
                }
                let is_done = left == 0;
                let more = DeleteProgress::More(deleted);
                return Ok((writes, if is_done { DeleteProgress::Done } else { more }));
            }
            let mut retired = Retired::default();
            let is_kept = replaced.keep_deleted(&blob, (retention, version), &mut writes)?;
            let lost = current.filter(|_| !is_kept);
            if let Some(current) = lost {
                writes.delete(reads.key(rows.record).clone());
                retired.content(&current.content);
            }
            remove_inline(current, blob.row(BlobRow::Inline, &[]), &mut writes);
            blob.forget_compaction(current, &mut writes);
            tags::reindex(&blob, tags::indexed(current), &[], &mut writes);
            if staged.is_some() {
                writes.delete(reads.key(rows.staging).clone());
            }
            retired.staging(staged.as_ref());
            blob.retire(&retired, lost.is_some_and(BlobRecord::is_shared), version, &mut writes);
            Ok((writes, DeleteProgress::Done))
        })
        .await?
    }

    /// Deletes a snapshot or a version.
    async fn delete_one(
        &self,
        blob: BlobKey,
        at: Ticks,
        required: DeleteRequirements,
    ) -> Result<(), BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        let rows = [(at, spec.read(blob.row(BlobRow::Past, &[at.get()])))];
        transact(&*self.engine, spec, move |reads, version| {
            let ([(_, row)], now) = (rows, version.ticks());
            let past = decode_record(reads.get(row))?.ok_or_else(|| blob.not_found())?;
            let is_version = matches!(required.scope, DeleteScope::Version(_));
            if past.version.is_some() != is_version {
                return Err(blob.not_found());
            }
            let base = decode_record(reads.get(record))?;
            let lease = base.as_ref().map(|base| base.lease).unwrap_or_default();
            lease.check_read(required.lease_id, now).map_err(BlobError::BlobLease)?;
            required.conditions.check_write(Some(&past), WriteKind::Change)?;
            let mut writes = Writes::new();
            let deletion = required.retention.deletion(now);
            delete_past(&blob, reads, &rows, (version, deletion), &mut writes)?;
            if let Some(mut base) = base.filter(|_| !is_version) {
                base.history.snapshots = base.history.snapshots.saturating_sub(1);
                writes.put(reads.key(record).clone(), base.encode());
            }
            Ok((writes, ()))
        })
        .await?
    }
}

/// Deletes those of the snapshots that still exist, and returns how many. With a deletion, they can be restored.
fn delete_past(
    blob: &BlobKey,
    reads: &Reads<'_>,
    past: &[(Ticks, ReadId)],
    (version, deletion): (Version, Option<Deletion>),
    writes: &mut Writes,
) -> Result<usize, BlobError> {
    let mut deleted = 0;
    for (at, row) in past {
        let Some(snapshot) = decode_record(reads.get(*row))? else { continue };
        deleted += 1;
        if deletion.is_some() {
            blob.put_past(*at, &BlobRecord { deletion, ..snapshot }, writes);
            continue;
        }
        writes.delete(reads.key(*row).clone());
        let mut retired = Retired::default();
        retired.content(&snapshot.content);
        if matches!(snapshot.content, Content::Inline { .. }) {
            writes.delete(blob.row(BlobRow::Inline, &[at.get()]));
        }
        blob.retire_shared(&retired, Some(*at), version, writes);
    }
    Ok(deleted)
}
