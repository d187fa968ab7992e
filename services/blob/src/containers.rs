//! The containers of every account: finding, creating, changing, leasing, listing and deleting them.

mod change;
mod list;
#[cfg(test)]
mod restore_tests;
#[cfg(test)]
mod tests;
mod usage;

use std::sync::Arc;

use bytes::Bytes;
use trestle_identity::{
    access_policy,
    caller::{Caller, Letters},
    spec::BLOB,
};
use trestle_kv::{Engine, count};
use trestle_model::{fault::Violations, name::AccountName, time::Clock};
use trestle_proto::service::v1::AccessPolicy;
use trestle_rpc::quota::{CreationRoom, StorageLimit, StorageQuotas};

pub(crate) use self::{
    change::{ContainerChange, NewContainer},
    list::{LIST_BYTES_MAX, ListContainers, position},
};
use crate::{
    authorize::BlobAccess,
    error::BlobError,
    ids::Ids,
    keys,
    names::{BlobName, ContainerName},
    record::ContainerRecord,
    stored::Stored as _,
};

/// The containers of every account.
#[derive(Clone)]
pub(crate) struct Containers {
    pub(crate) engine: Arc<dyn Engine>,
    /// The wall clock. Stored access policies name times by it, as signatures do.
    clock: Arc<dyn Clock>,
    ids: Arc<Ids>,
    storage: StorageQuotas,
}

impl Containers {
    /// Works on `engine`; `clock` is the wall clock.
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Arc<dyn Clock>, ids: Arc<Ids>) -> Self {
        Self { engine, clock, ids, storage: StorageQuotas::default() }
    }

    /// With quotas of accounts on what they store.
    pub(crate) fn with_quotas(self, storage: StorageQuotas) -> Self {
        Self { storage, ..self }
    }

    /// Whether an account may have one more container.
    ///
    /// # Errors
    /// A failed read.
    async fn room(&self, account: &AccountName) -> Result<CreationRoom, BlobError> {
        let count = |max| count(&*self.engine, keys::containers(account, ""), max);
        Ok(self.storage.room(account, StorageLimit::Containers, count).await?)
    }

    /// How many exist, in all accounts, up to a maximum.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn count(&self, containers_max: usize) -> Result<usize, BlobError> {
        Ok(count(&*self.engine, keys::all_containers(), containers_max).await?)
    }

    /// The permissions that a stored access policy leaves a caller, none without one. Rejects one whose policy is not
    /// valid now, or that fails a check that comes next, before the response reveals anything about the call.
    ///
    /// # Errors
    /// The denied permission of the policy or of the check after it; or a failed read.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<Option<Letters>, BlobError> {
        let Some((grant, policy)) = caller.authority.by_policy() else {
            return Ok(None);
        };
        // The service of the grant stores the policy itself.
        if !grant.is_of(&BLOB) {
            policy.passed()?;
            return Ok(None);
        }
        let name = grant.resource.name.split('/').next().unwrap_or_default().to_owned();
        let name = ContainerName::parse(name, "", &mut Violations::default());
        let container = match &name {
            Some(name) => self.find(&caller.account, name).await?,
            None => None,
        };
        let policies = container.map(|it| policies_of(&it)).transpose()?.unwrap_or_default();
        Ok(Some(access_policy::permissions(grant, &policies, self.clock.now())?))
    }

    /// A container by its name, for a caller with the permission that the call needs on it, or on a blob in it.
    ///
    /// # Errors
    /// A missing permission; then [`BlobError::ContainerNotFound`]; or a failed read.
    pub(crate) async fn open(
        &self,
        access: &BlobAccess,
        name: &ContainerName,
        blob: Option<&BlobName>,
    ) -> Result<ContainerRecord, BlobError> {
        let found = self.find(access.account(), name).await?;
        let policies = match &found {
            Some(container) if access.is_by_policy() => policies_of(container)?,
            _ => Vec::new(),
        };
        let resource = blob.map(|blob| format!("{name}/{blob}"));
        let resource = resource.as_deref().unwrap_or(name.as_str());
        access.check_public(found.as_ref().map(|it| it.public_access).unwrap_or_default())?;
        access.check(resource, &policies, self.clock.now())?;
        found.ok_or_else(|| BlobError::ContainerNotFound(name.clone()))
    }

    /// A container by its name, if it exists.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn find(
        &self,
        account: &AccountName,
        name: &ContainerName,
    ) -> Result<Option<ContainerRecord>, BlobError> {
        let value = self.engine.get(&keys::container(account, name)).await?;
        value.map(|value| ContainerRecord::decode(&value)).transpose()
    }
}

/// The stored access policies of a container.
///
/// # Errors
/// [`BlobError::Corrupt`].
pub(crate) fn policies_of(container: &ContainerRecord) -> Result<Vec<AccessPolicy>, BlobError> {
    if container.policies.is_empty() {
        return Ok(Vec::new());
    }
    let policies = access_policy::decode(&container.policies);
    policies.map_err(|_| BlobError::corrupt("access policies"))
}

/// The stored form of access policies; empty for none.
pub(crate) fn encode_policies(policies: Vec<AccessPolicy>) -> Bytes {
    if policies.is_empty() { Bytes::new() } else { access_policy::encode(policies) }
}
