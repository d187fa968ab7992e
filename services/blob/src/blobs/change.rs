//! Changing an existing blob: properties, metadata and lease; and deleting it.

use trestle_kv::{ChangeSpec, Version, Writes, transact};
use trestle_service::clock::Ticks;
use uuid::Uuid;

use super::{BlobKey, Blobs, decode_record, remove_inline};
use crate::{
    conditions::{Conditions, WriteKind},
    error::BlobError,
    etag::ETag,
    keys::BlobRow,
    lease::{LeaseAction, LeaseError, LeaseResult},
    record::{BlobRecord, ContentProperties, Metadata, Retired, Staging},
    stored::Stored as _,
};

/// What a call changes of a blob.
#[derive(Debug, Clone)]
pub(crate) enum BlobChange {
    /// Replaces properties and metadata; absent ones remain.
    Update {
        /// The new properties.
        properties: Option<ContentProperties>,
        /// The new metadata.
        metadata: Option<Metadata>,
    },
    /// Applies an action to the lease.
    Lease(LeaseAction),
}

/// A blob after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedBlob {
    /// Its record.
    pub(crate) record: BlobRecord,
    /// The result of an action on its lease.
    pub(crate) lease: Option<LeaseResult>,
}

/// A blob after a change, from the current record.
///
/// # Errors
/// A lease or a condition that does not permit it.
fn decide_change(
    current: BlobRecord,
    change: &BlobChange,
    (conditions, lease_id): (&Conditions, Option<Uuid>),
    version: Version,
    now: Ticks,
) -> Result<ChangedBlob, BlobError> {
    let mut record = current;
    match change {
        BlobChange::Update { properties, metadata } => {
            let lease = record.lease.check_write(lease_id, now);
            record.lease = lease.map_err(BlobError::BlobLease)?;
            conditions.check_write(Some(record.etag), WriteKind::Change)?;
            record.properties = properties.clone().unwrap_or(record.properties);
            record.metadata = metadata.clone().unwrap_or(record.metadata);
            record.etag = ETag(version.ticks());
            Ok(ChangedBlob { record, lease: None })
        }
        BlobChange::Lease(action) => {
            record.lease.check_read(lease_id, now).map_err(BlobError::BlobLease)?;
            conditions.check_write(Some(record.etag), WriteKind::Change)?;
            let (lease, result) = record.lease.apply(*action, now).map_err(BlobError::BlobLease)?;
            record.lease = lease;
            Ok(ChangedBlob { record, lease: Some(result) })
        }
    }
}

/// Whether a blob may be deleted; one with staged blocks only has no record.
///
/// # Errors
/// A lease or a condition that does not permit it.
fn check_delete(
    current: Option<&BlobRecord>,
    (conditions, lease_id): (&Conditions, Option<Uuid>),
    now: Ticks,
) -> Result<(), BlobError> {
    let lease = match (current, lease_id) {
        (Some(current), id) => current.lease.check_write(id, now).map(drop),
        (None, Some(_)) => Err(LeaseError::NotPresent),
        (None, None) => Ok(()),
    };
    lease.map_err(BlobError::BlobLease)?;
    let etag = current.map(|current| current.etag);
    Ok(conditions.check_write(etag, WriteKind::Change)?)
}

impl Blobs {
    /// Changes a blob.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], a lease or a condition that does not permit it, or a failed commit.
    pub(crate) async fn change(
        &self,
        blob: BlobKey,
        change: BlobChange,
        (conditions, lease_id): (Conditions, Option<Uuid>),
    ) -> Result<ChangedBlob, BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        let now = self.now();
        transact(&*self.engine, spec, move |reads, version| {
            let current = decode_record(reads.get(record))?.ok_or_else(|| blob.not_found())?;
            let required = (&conditions, lease_id);
            let changed = decide_change(current, &change, required, version, now)?;
            let mut writes = Writes::new();
            writes.put(reads.key(record).clone(), changed.record.encode());
            Ok::<_, BlobError>((writes, changed))
        })
        .await?
    }

    /// Deletes a blob with its staged blocks.
    ///
    /// # Errors
    /// As [`Blobs::change`].
    pub(crate) async fn delete(
        &self,
        blob: BlobKey,
        (conditions, lease_id): (Conditions, Option<Uuid>),
    ) -> Result<(), BlobError> {
        let mut spec = ChangeSpec::new(blob.domain());
        let record = spec.read(blob.row(BlobRow::Record, &[]));
        let staging = spec.read(blob.row(BlobRow::Staging, &[]));
        let now = self.now();
        transact(&*self.engine, spec, move |reads, version| {
            let current = decode_record(reads.get(record))?;
            let staged = reads.get(staging).map(|value| Staging::decode(value)).transpose()?;
            if current.is_none() && staged.is_none() {
                return Err(blob.not_found());
            }
            check_delete(current.as_ref(), (&conditions, lease_id), now)?;
            let (mut writes, mut retired) = (Writes::new(), Retired::default());
            if let Some(current) = &current {
                writes.delete(reads.key(record).clone());
                retired.content(&current.content);
            }
            remove_inline(current.as_ref(), blob.row(BlobRow::Inline, &[]), &mut writes);
            blob.forget_compaction(current.as_ref(), &mut writes);
            if staged.is_some() {
                writes.delete(reads.key(staging).clone());
            }
            retired.staging(staged.as_ref());
            blob.retire(&retired, version, &mut writes);
            Ok((writes, ()))
        })
        .await?
    }
}
