//! Changing an existing blob: properties, metadata, tier and lease.

use trestle_kv::{ChangeSpec, Version, Writes, transact};
use trestle_service::clock::Ticks;
use uuid::Uuid;

use super::{BlobKey, Blobs, decode_record};
use crate::{
    conditions::{Conditions, WriteKind},
    error::BlobError,
    etag::ETag,
    keys::BlobRow,
    lease::{LeaseAction, LeaseResult},
    record::{BlobRecord, ContentProperties, Metadata},
    stored::Stored as _,
    tier::{AssignedTier, Tier},
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
    /// Sets the access tier.
    Tier(Tier),
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
/// A lease, a condition or a tier that does not permit it.
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
            record.check_online()?;
            record.properties = properties.clone().unwrap_or(record.properties);
            record.metadata = metadata.clone().unwrap_or(record.metadata);
            record.etag = ETag(version.ticks());
            record.copy = None;
            Ok(ChangedBlob { record, lease: None })
        }
        BlobChange::Tier(tier) => {
            record.lease.check_read(lease_id, now).map_err(BlobError::BlobLease)?;
            conditions.check_write(Some(record.etag), WriteKind::Change)?;
            tier.check_kind(record.content.kind())?;
            record.tier = Some(AssignedTier::set(record.tier, *tier, version.ticks()));
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

impl Blobs {
    /// Changes a blob.
    ///
    /// # Errors
    /// [`BlobError::BlobNotFound`], a lease, a condition or a tier that does not permit it, or a failed commit.
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
}
