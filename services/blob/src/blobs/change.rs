//! Changing an existing blob: properties, metadata, tags, tier and lease.

use trestle_kv::{ChangeSpec, Version, Writes, transact};
use uuid::Uuid;

use super::{BlobKey, Blobs, replace::ReplacedRows};
use crate::{
    conditions::{Conditions, WriteKind},
    error::BlobError,
    etag::ETag,
    lease::{LeaseAction, LeaseResult},
    record::{BlobHistory, BlobRecord, ContentProperties, Metadata, Retention},
    stored::Stored as _,
    tags::{self, Tags},
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
        /// Whether the state before remains as a version.
        versions: bool,
    },
    /// Replaces the tags.
    Tags(Tags),
    /// Sets the access tier.
    Tier(Tier),
    /// Applies an action to the lease.
    Lease(LeaseAction),
}

impl BlobChange {
    /// What the change keeps of the state before: properties alone make no version, as with Azure.
    fn retention(&self) -> Retention {
        let versions = matches!(self, Self::Update { metadata: Some(_), versions: true, .. });
        Retention { versions, ..Retention::default() }
    }
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
) -> Result<ChangedBlob, BlobError> {
    let (mut record, now) = (current, version.ticks());
    match change {
        BlobChange::Update { properties, metadata, .. } => {
            let lease = record.lease.check_write(lease_id, now);
            record.lease = lease.map_err(BlobError::BlobLease)?;
            conditions.check_write(Some(&record), WriteKind::Change)?;
            record.check_online()?;
            record.properties = properties.clone().unwrap_or(record.properties);
            record.metadata = metadata.clone().unwrap_or(record.metadata);
            record.etag = ETag(now);
            record.copy = None;
            Ok(ChangedBlob { record, lease: None })
        }
        BlobChange::Tags(tags) => {
            let lease = record.lease.check_write(lease_id, now);
            record.lease = lease.map_err(BlobError::BlobLease)?;
            conditions.check_write(Some(&record), WriteKind::Change)?;
            record.tags.clone_from(tags);
            Ok(ChangedBlob { record, lease: None })
        }
        BlobChange::Tier(tier) => {
            record.lease.check_read(lease_id, now).map_err(BlobError::BlobLease)?;
            conditions.check_write(Some(&record), WriteKind::Change)?;
            tier.check_kind(record.content.kind())?;
            record.tier = Some(AssignedTier::set(record.tier, *tier, now));
            Ok(ChangedBlob { record, lease: None })
        }
        BlobChange::Lease(action) => {
            record.lease.check_read(lease_id, now).map_err(BlobError::BlobLease)?;
            conditions.check_write(Some(&record), WriteKind::Change)?;
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
        let retention = change.retention();
        let rows = ReplacedRows::new(&blob, &mut spec, retention);
        transact(&*self.engine, spec, move |reads, version| {
            let replaced = rows.get(reads)?;
            let current = replaced.current.clone().ok_or_else(|| blob.not_found())?;
            let required = (&conditions, lease_id);
            let mut changed = decide_change(current, &change, required, version)?;
            let mut writes = Writes::new();
            if replaced.keep(&blob, (retention, version), &mut writes)?.is_some() {
                changed.record.version = Some(version.ticks());
                // The version before has the same content.
                let newest_shared = Some(version.ticks());
                changed.record.history = BlobHistory { newest_shared, ..changed.record.history };
            }
            let before = tags::indexed(replaced.current.as_ref());
            tags::reindex(&blob, before, &changed.record.tags, &mut writes);
            writes.put(reads.key(rows.record).clone(), changed.record.encode());
            Ok::<_, BlobError>((writes, changed))
        })
        .await?
    }
}
