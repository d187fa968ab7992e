//! Creating, changing, leasing and deleting containers.

use std::time::Duration;

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Lock, Writes, transact};
use trestle_model::{name::AccountName, time::Ticks};
use uuid::Uuid;

use super::Containers;
use crate::{
    conditions::{Conditions, WriteKind},
    error::BlobError,
    etag::ETag,
    keys,
    lease::{LeaseAction, LeaseResult, ResourceLease},
    names::ContainerName,
    record::{ContainerId, ContainerRecord, Deletion, Metadata, PublicAccess},
    stored::Stored as _,
};

/// A container to create.
#[derive(Debug, Clone)]
pub(crate) struct NewContainer {
    /// Its name.
    pub(crate) name: ContainerName,
    /// Its metadata.
    pub(crate) metadata: Metadata,
    /// What callers without credentials may read.
    pub(crate) public_access: PublicAccess,
}

/// What a call changes of a container.
#[derive(Debug, Clone)]
pub(crate) enum ContainerChange {
    /// Replaces the metadata.
    Metadata(Metadata),
    /// Replaces the access policies, which are encoded, and what callers without credentials may read.
    Policies(Bytes, PublicAccess),
    /// Applies an action to the lease.
    Lease(LeaseAction),
    /// Deletes it. It can be restored for as long, if at all.
    Delete(Option<Duration>),
}

impl Containers {
    /// Creates a container.
    ///
    /// # Errors
    /// [`BlobError::ContainerExists`], a used quota, or a failed commit.
    pub(crate) async fn create(
        &self,
        account: &AccountName,
        new: NewContainer,
    ) -> Result<ContainerRecord, BlobError> {
        let room = self.room(account).await?;
        let full = room.full();
        let id = self.ids.container().await?;
        let key = keys::container(account, &new.name);
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        let existing = spec.read(key.clone());
        transact(&*self.engine, spec, move |reads, version| {
            if reads.get(existing).is_some() {
                return Err(BlobError::ContainerExists(new.name.clone()));
            }
            if let Some(full) = &full {
                return Err(full.rejected().into());
            }
            let record = ContainerRecord {
                id,
                etag: ETag(version.ticks()),
                created_at: version.ticks(),
                metadata: new.metadata.clone(),
                policies: Bytes::new(),
                lease: ResourceLease::Absent,
                deletion: None,
                public_access: new.public_access,
            };
            let mut writes = Writes::new();
            writes.put(key.clone(), record.encode());
            Ok((writes, record))
        })
        .await?
    }

    /// Changes a container. Returns it as it is then, and the result of an action on its lease.
    ///
    /// # Errors
    /// [`BlobError::ContainerNotFound`], a condition or the lease that does not permit it, or a failed commit.
    pub(crate) async fn change(
        &self,
        account: &AccountName,
        name: ContainerName,
        change: ContainerChange,
        (conditions, lease_id): (Conditions, Option<Uuid>),
    ) -> Result<(ContainerRecord, Option<LeaseResult>), BlobError> {
        let found = self.find(account, &name).await?;
        let id = found.ok_or_else(|| BlobError::ContainerNotFound(name.clone()))?.id;
        let key = keys::container(account, &name);
        let deleted = match change {
            ContainerChange::Delete(Some(_)) => keys::soft_deleted_container(account, &name, id),
            _ => keys::deleted_container(id),
        };
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        spec.also(keys::own_domain(&deleted), Lock::Exclusive);
        let stored = spec.read(key.clone());
        transact(&*self.engine, spec, move |reads, version| {
            let not_found = || BlobError::ContainerNotFound(name.clone());
            let now = version.ticks();
            let mut record = ContainerRecord::decode(reads.get(stored).ok_or_else(not_found)?)?;
            // Deleted and created again meanwhile: the call is about the first.
            if record.id != id {
                return Err(not_found());
            }
            let is_delete = matches!(change, ContainerChange::Delete(_));
            check(&record, is_delete, (&conditions, lease_id), now)?;
            let result = apply(&mut record, &change, now)?;
            let mut writes = Writes::new();
            match change {
                ContainerChange::Delete(kept_for) => {
                    let value = match kept_for.map(|period| Deletion::at(now, period)) {
                        Some(deletion) => deleted_record(&record, deletion).encode(),
                        None => keys::encode_number(now.get()),
                    };
                    writes.delete(key.clone()).put(deleted.clone(), value)
                }
                _ => writes.put(key.clone(), record.encode()),
            };
            Ok((writes, (record, result)))
        })
        .await?
    }
}

impl Containers {
    /// Restores a deleted container with its blobs. It has no lease.
    ///
    /// # Errors
    /// [`BlobError::ContainerNotFound`] where there is no such deleted one, [`BlobError::ContainerExists`] where its
    /// name was used again, a used quota, or a failed commit.
    pub(crate) async fn undelete(
        &self,
        account: &AccountName,
        (name, id): (ContainerName, ContainerId),
        may_open: bool,
    ) -> Result<ContainerRecord, BlobError> {
        let room = self.room(account).await?;
        let full = room.full();
        let key = keys::container(account, &name);
        let deleted = keys::soft_deleted_container(account, &name, id);
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        spec.also(keys::own_domain(&deleted), Lock::Exclusive);
        let (existing, stored) = (spec.read(key.clone()), spec.read(deleted.clone()));
        transact(&*self.engine, spec, move |reads, _| {
            let not_found = || BlobError::ContainerNotFound(name.clone());
            let record = ContainerRecord::decode(reads.get(stored).ok_or_else(not_found)?)?;
            if reads.get(existing).is_some() {
                return Err(BlobError::ContainerExists(name.clone()));
            }
            if let Some(full) = &full {
                return Err(full.rejected().into());
            }
            let public_access =
                if may_open { record.public_access } else { PublicAccess::default() };
            let record = ContainerRecord { deletion: None, public_access, ..record };
            let mut writes = Writes::new();
            writes.delete(deleted.clone()).put(key.clone(), record.encode());
            Ok((writes, record))
        })
        .await?
    }
}

fn deleted_record(record: &ContainerRecord, deletion: Deletion) -> ContainerRecord {
    let lease = ResourceLease::Absent;
    ContainerRecord { lease, deletion: Some(deletion), ..record.clone() }
}

/// Whether lease and conditions permit a change. Only a delete requires the id of an active lease.
fn check(
    record: &ContainerRecord,
    is_delete: bool,
    (conditions, lease_id): (&Conditions, Option<Uuid>),
    now: Ticks,
) -> Result<(), BlobError> {
    let lease = record.lease;
    let permitted = match is_delete {
        true => lease.check_write(lease_id, now).map(drop),
        false => lease.check_read(lease_id, now),
    };
    permitted.map_err(BlobError::ContainerLease)?;
    Ok(conditions.check_write(Some(record.etag), WriteKind::Change)?)
}

fn apply(
    record: &mut ContainerRecord,
    change: &ContainerChange,
    now: Ticks,
) -> Result<Option<LeaseResult>, BlobError> {
    match change {
        ContainerChange::Metadata(metadata) => record.metadata.clone_from(metadata),
        ContainerChange::Policies(policies, public_access) => {
            record.policies.clone_from(policies);
            record.public_access = *public_access;
        }
        ContainerChange::Lease(action) => {
            let applied = record.lease.apply(*action, now).map_err(BlobError::ContainerLease)?;
            record.lease = applied.0;
            return Ok(Some(applied.1));
        }
        ContainerChange::Delete(_) => return Ok(None),
    }
    record.etag = ETag(now);
    Ok(None)
}
