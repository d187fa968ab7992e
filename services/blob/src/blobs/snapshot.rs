//! Taking a snapshot: a past state of its own that shares the content of the blob.

#[cfg(test)]
mod tests;

use trestle_kv::{ChangeSpec, Version, Writes, transact};
use trestle_model::time::Ticks;
use uuid::Uuid;

use super::{BlobKey, Blobs, decode_record};
use crate::{
    conditions::{Conditions, WriteKind},
    error::BlobError,
    etag::ETag,
    keys::BlobRow,
    lease::ResourceLease,
    record::{BlobHistory, BlobRecord, Content, Metadata},
    stored::Stored as _,
};

/// A blob and a snapshot of it, as a change leaves them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CreatedSnapshot {
    /// The blob.
    base: BlobRecord,
    /// The snapshot.
    snapshot: BlobRecord,
    /// The name of the snapshot.
    at: Ticks,
}

/// A snapshot of the current state. It has the etag of the blob, unless it gets metadata of its own.
///
/// # Errors
/// A lease or a condition that does not permit it.
fn decide_snapshot(
    current: BlobRecord,
    metadata: Option<&Metadata>,
    (conditions, lease_id): (&Conditions, Option<Uuid>),
    version: Version,
) -> Result<CreatedSnapshot, BlobError> {
    let at = version.ticks();
    current.lease.check_read(lease_id, at).map_err(BlobError::BlobLease)?;
    conditions.check_write(Some(&current), WriteKind::Change)?;
    current.check_online()?;
    let snapshot = BlobRecord {
        etag: if metadata.is_some() { ETag(at) } else { current.etag },
        metadata: metadata.unwrap_or(&current.metadata).clone(),
        lease: ResourceLease::Absent,
        history: BlobHistory::default(),
        version: None,
        ..current.clone()
    };
    let snapshots = current.history.snapshots + 1;
    let history = BlobHistory { snapshots, newest_shared: Some(at) };
    Ok(CreatedSnapshot { base: BlobRecord { history, ..current }, snapshot, at })
}

impl Blobs {
    /// Takes a snapshot of a blob, with other metadata if there is any. Returns its time and its record.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], a lease or a condition that does not permit it, or a failed commit.
    pub(crate) async fn snapshot(
        &self,
        blob: BlobKey,
        metadata: Option<Metadata>,
        (conditions, lease_id): (Conditions, Option<Uuid>),
    ) -> Result<(Ticks, BlobRecord), BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        let inline = spec.read(blob.row(BlobRow::Inline, &[]));
        transact(&*self.engine, spec, move |reads, version| {
            let current = decode_record(reads.get(record))?.ok_or_else(|| blob.not_found())?;
            let required = (&conditions, lease_id);
            let created = decide_snapshot(current, metadata.as_ref(), required, version)?;
            let number = created.at.get();
            let mut writes = Writes::new();
            writes.put(reads.key(record).clone(), created.base.encode());
            writes.put(blob.row(BlobRow::Past, &[number]), created.snapshot.encode());
            if matches!(created.base.content, Content::Inline { .. }) {
                let bytes =
                    reads.get(inline).ok_or_else(|| BlobError::corrupt("inline content"))?;
                writes.put(blob.row(BlobRow::Inline, &[number]), bytes.clone());
            }
            Ok::<_, BlobError>((writes, (created.at, created.snapshot)))
        })
        .await?
    }
}
