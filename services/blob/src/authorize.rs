//! Authorization: pure decisions on the caller that the gateway authenticated, before a response reveals whether
//! something exists. The order of checks is fixed: stored access policy (of the container in the signature), service,
//! resource type, resource, permission.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use trestle_identity::{
    access_policy,
    authorize::{
        AccountNeed, anonymous, check_one_of, check_resource, never, not_authorized, wrong_service,
    },
    caller::{Authority, Caller, Letters, ResourceGrant},
    spec::{BLOB, SNAPSHOT},
};
use trestle_model::{fault::Fault, name::AccountName, time::Ticks};
use trestle_proto::service::v1::AccessPolicy;

use crate::record::PublicAccess;

/// The operation that a call needs permission for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobNeed {
    /// To list the containers of the account.
    ListContainers,
    /// To create a container.
    CreateContainer,
    /// To read a container.
    ReadContainer,
    /// To change its metadata or its lease.
    WriteContainer,
    /// To delete it.
    DeleteContainer,
    /// To read or change its stored access policies: for owners only, or a signature could give itself more.
    AccessPolicies,
    /// To list the blobs of a container.
    ListBlobs,
    /// To read a blob.
    Read,
    /// To write a blob, which with the permission to create must be new.
    Create,
    /// To write a blob.
    Write,
    /// To append to a blob.
    Append,
    /// To take a snapshot of a blob.
    Snapshot,
    /// To delete a blob, a snapshot or a previous version: which, the request states.
    DeleteAny,
    /// To delete a blob or a snapshot.
    Delete,
    /// To delete a previous version.
    DeleteVersion,
    /// To read or set the tags of a blob, or to use them in a condition.
    Tags,
    /// To list the tags of blobs beside their names.
    ListTags,
    /// To find blobs by their tags: where, the request states.
    Find,
    /// To find blobs in every container.
    FindInAccount,
    /// To find blobs in one container.
    FindInContainer,
    /// To break the lease of a blob, the only action on one that needs no permission to write.
    BreakLease,
    /// To break the lease of a container.
    BreakContainerLease,
    /// To read the settings or the state of the service.
    ReadService,
    /// To change its settings.
    WriteService,
}

impl BlobNeed {
    /// What an account SAS must have; none where it does not suffice.
    fn of_account_grant(self) -> Option<AccountNeed> {
        let need = |resource_types, permissions| Some(AccountNeed { resource_types, permissions });
        match self {
            Self::ListContainers => need("s", &["l"]),
            Self::CreateContainer => need("c", &["cw"]),
            Self::ReadContainer => need("c", &["r"]),
            Self::WriteContainer => need("c", &["w"]),
            Self::DeleteContainer => need("c", &["d"]),
            Self::AccessPolicies => None,
            Self::ListBlobs => need("c", &["l"]),
            Self::Read => need("o", &["r"]),
            Self::Create => need("o", &["cw"]),
            Self::Write => need("o", &["w"]),
            Self::Append => need("o", &["aw"]),
            Self::Snapshot => need("o", &["cw"]),
            Self::DeleteAny => need("o", &["dx"]),
            Self::Delete => need("o", &["d"]),
            Self::DeleteVersion => need("o", &["x"]),
            Self::Tags => need("o", &["t"]),
            Self::ListTags => need("c", &["t"]),
            Self::Find => need("sc", &["f"]),
            Self::FindInAccount => need("s", &["f"]),
            Self::FindInContainer => need("c", &["f"]),
            Self::BreakLease => need("o", &["dw"]),
            Self::BreakContainerLease => need("c", &["dw"]),
            Self::ReadService => need("s", &["r"]),
            Self::WriteService => need("s", &["w"]),
        }
    }

    /// What a container must have opened to callers without credentials; none where nothing suffices.
    fn public_access(self) -> Option<PublicAccess> {
        match self {
            Self::Read => Some(PublicAccess::Blobs),
            Self::ReadContainer | Self::ListBlobs => Some(PublicAccess::Container),
            _ => None,
        }
    }

    /// The permissions of which a grant on a container or a blob must have one; none where no such grant suffices.
    fn of_resource_grant(self) -> Option<&'static str> {
        match self {
            Self::Read => Some("r"),
            Self::Create | Self::Snapshot => Some("cw"),
            Self::Write => Some("w"),
            Self::Append => Some("aw"),
            Self::DeleteAny => Some("dx"),
            Self::Delete => Some("d"),
            Self::DeleteVersion => Some("x"),
            Self::Tags | Self::ListTags => Some("t"),
            Self::Find | Self::FindInContainer => Some("f"),
            Self::BreakLease => Some("dw"),
            Self::ListBlobs => Some("l"),
            Self::ListContainers
            | Self::CreateContainer
            | Self::ReadContainer
            | Self::WriteContainer
            | Self::DeleteContainer
            | Self::AccessPolicies
            | Self::FindInAccount
            | Self::BreakContainerLease
            | Self::ReadService
            | Self::WriteService => None,
        }
    }
}

/// A caller that has the permission that a call needs, on some container or blob.
#[derive(Debug, Clone)]
pub(crate) struct BlobAccess {
    caller: Arc<Caller>,
    need: BlobNeed,
    /// The permissions by the stored access policy of the caller, when the call began.
    by_policy: Option<Letters>,
    /// The snapshot or the version that the call names, and no other state of the blob.
    state: Option<NamedState>,
}

/// A state of a blob as a call names it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedState {
    /// The type of resource of a signature for it.
    resource_type: &'static str,
    time: String,
}

impl BlobAccess {
    /// The access of a caller, with the permissions that its stored access policy leaves it, if it has one.
    ///
    /// # Errors
    /// When the caller has the permission nowhere.
    pub(crate) fn new(
        caller: Arc<Caller>,
        by_policy: Option<Letters>,
        need: BlobNeed,
    ) -> Result<Self, Fault> {
        match &caller.authority {
            Authority::Owner => {}
            Authority::Role(role) => role.check(need.of_account_grant())?,
            Authority::Anonymous if need.public_access().is_none() => return Err(anonymous()),
            Authority::Anonymous => {}
            Authority::Account(grant) => {
                AccountNeed::check(need.of_account_grant(), grant, &BLOB)?;
            }
            Authority::Resource(grant) if !grant.is_of(&BLOB) => return Err(wrong_service(&BLOB)),
            // The policy, if the signature names one, is checked again where the container is found.
            Authority::Resource(grant) => {
                let one_of = need.of_resource_grant().ok_or_else(never)?;
                let stated = if grant.policy.is_some() { by_policy } else { grant.permissions };
                check_one_of(stated.unwrap_or_default(), one_of)?;
            }
        }
        Ok(Self { caller, need, by_policy, state: None })
    }

    /// The access of a call that names a snapshot or a version, if one of both texts is not empty.
    pub(crate) fn to_state(&self, snapshot: &str, version_id: &str) -> Self {
        let named = |resource_type, time: &str| {
            (!time.is_empty()).then(|| NamedState { resource_type, time: time.to_owned() })
        };
        let state = named("bs", snapshot).or_else(|| named("bv", version_id));
        Self { state, ..self.clone() }
    }

    /// The access of the same caller to what a call needs beside.
    ///
    /// # Errors
    /// As [`BlobAccess::new`].
    pub(crate) fn also(&self, need: BlobNeed) -> Result<Self, Fault> {
        Self::new(Arc::clone(&self.caller), self.by_policy, need)
    }

    /// The access of the same call to the source of a copy, whose URL may have a signature of its own.
    ///
    /// # Errors
    /// As [`BlobAccess::new`].
    pub(crate) fn to_source(&self, need: BlobNeed) -> Result<Self, Fault> {
        match &self.caller.source {
            None => self.also(need),
            // A stored access policy of its own is not looked up, so it grants nothing.
            Some(_) => Self::new(Arc::new(self.caller.at_source()), None, need),
        }
    }

    /// The account that the call works in.
    pub(crate) fn account(&self) -> &AccountName {
        &self.caller.account
    }

    /// Checks that a caller without credentials may read this much of a container. An absent one is as a private one.
    /// A previous version is not public: its content was replaced or deleted.
    ///
    /// # Errors
    /// That of a call without credentials.
    pub(crate) fn check_public(&self, level: PublicAccess) -> Result<(), Fault> {
        let is_enough = self.need.public_access().is_some_and(|needed| level >= needed);
        let is_version = self.state.as_ref().is_some_and(|state| state.resource_type == "bv");
        match self.is_anonymous() && (is_version || !is_enough) {
            true => Err(anonymous()),
            false => Ok(()),
        }
    }

    /// Whether the caller has no credentials.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.caller.authority == Authority::Anonymous
    }

    /// A signature for a snapshot or a version is for calls that name it, and one for a blob for all of its states.
    fn check_state(&self, grant: &ResourceGrant) -> Result<(), Fault> {
        let resource_type = &*grant.resource.resource_type;
        if !["bs", "bv"].contains(&resource_type) {
            return Ok(());
        }
        let is_named = self.state.as_ref().is_some_and(|state| {
            state.resource_type == resource_type
                && grant.bounds.get(SNAPSHOT) == Some(state.time.as_str())
        });
        match is_named {
            true => Ok(()),
            false => Err(not_authorized("the signature is for another state of the blob")),
        }
    }

    /// Whether the container decides, which may change while a call reads: by a stored access policy, or by its public
    /// access.
    pub(crate) fn may_be_revoked(&self) -> bool {
        self.is_by_policy() || self.is_anonymous()
    }

    /// Whether a stored access policy decides.
    pub(crate) fn is_by_policy(&self) -> bool {
        self.caller.authority.policy().is_some()
    }

    /// Checks the permission on the container, or on the blob in it, where the container has these stored access
    /// policies.
    ///
    /// # Errors
    /// When it is another resource than the one granted, the policy does not hold now, or the permission is not given.
    pub(crate) fn check(
        &self,
        resource: &str,
        policies: &[AccessPolicy],
        now: Ticks,
    ) -> Result<(), Fault> {
        let Authority::Resource(grant) = &self.caller.authority else { return Ok(()) };
        check_resource(grant, &BLOB, resource)?;
        self.check_state(grant)?;
        let one_of = self.need.of_resource_grant().ok_or_else(never)?;
        check_one_of(access_policy::permissions(grant, policies, now)?, one_of)
    }
}
