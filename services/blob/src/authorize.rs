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
    caller::{Authority, Caller},
    spec::BLOB,
};
use trestle_proto::service::v1::AccessPolicy;
use trestle_service::{clock::Ticks, fault::Fault, name::AccountName};

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
    /// To find blobs by their tags.
    Find,
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
            Self::Write => need("o", &["w"]),
            Self::Append => need("o", &["aw"]),
            Self::Snapshot => need("o", &["cw"]),
            Self::DeleteAny => need("o", &["dx"]),
            Self::Delete => need("o", &["d"]),
            Self::DeleteVersion => need("o", &["x"]),
            Self::Tags => need("o", &["t"]),
            Self::Find => need("sc", &["f"]),
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
            Self::Write => Some("w"),
            Self::Append => Some("aw"),
            Self::Snapshot => Some("w"),
            Self::DeleteAny => Some("dx"),
            Self::Delete => Some("d"),
            Self::DeleteVersion => Some("x"),
            Self::Tags => Some("t"),
            Self::Find => Some("f"),
            Self::ListBlobs => Some("l"),
            Self::ListContainers
            | Self::CreateContainer
            | Self::ReadContainer
            | Self::WriteContainer
            | Self::DeleteContainer
            | Self::AccessPolicies
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
}

impl BlobAccess {
    /// The access of a caller.
    ///
    /// # Errors
    /// When the caller has the permission nowhere.
    pub(crate) fn new(caller: Arc<Caller>, need: BlobNeed) -> Result<Self, Fault> {
        match &caller.authority {
            Authority::Owner => {}
            Authority::Anonymous if need.public_access().is_none() => return Err(anonymous()),
            Authority::Anonymous => {}
            Authority::Account(grant) => {
                AccountNeed::check(need.of_account_grant(), grant, &BLOB)?;
            }
            Authority::Resource(grant) if !grant.is_of(&BLOB) => return Err(wrong_service(&BLOB)),
            Authority::Resource(grant) if !grant.bounds.is_empty() => {
                return Err(not_authorized("the signature has bounds that are not supported"));
            }
            // The policy, if the signature names one, is checked where the container is found.
            Authority::Resource(grant) => match (need.of_resource_grant(), &grant.policy) {
                (None, _) => return Err(never()),
                (Some(one_of), None) => {
                    check_one_of(grant.permissions.unwrap_or_default(), one_of)?;
                }
                (Some(_), Some(_)) => {}
            },
        }
        Ok(Self { caller, need })
    }

    /// The access of the same caller to what a call needs beside.
    ///
    /// # Errors
    /// As [`BlobAccess::new`].
    pub(crate) fn also(&self, need: BlobNeed) -> Result<Self, Fault> {
        Self::new(Arc::clone(&self.caller), need)
    }

    /// The account that the call works in.
    pub(crate) fn account(&self) -> &AccountName {
        &self.caller.account
    }

    /// Checks that a caller without credentials may read this much of a container. An absent one is as a private one.
    ///
    /// # Errors
    /// That of a call without credentials.
    pub(crate) fn check_public(&self, level: PublicAccess) -> Result<(), Fault> {
        let is_enough = self.need.public_access().is_some_and(|needed| level >= needed);
        match self.is_anonymous() && !is_enough {
            true => Err(anonymous()),
            false => Ok(()),
        }
    }

    /// Whether the caller has no credentials.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.caller.authority == Authority::Anonymous
    }

    /// Checks that the access is to every container of the account.
    ///
    /// # Errors
    /// That of a signature for a container or a blob.
    pub(crate) fn check_account(&self) -> Result<(), Fault> {
        match &self.caller.authority {
            Authority::Resource(_) => Err(never()),
            Authority::Anonymous => Err(anonymous()),
            Authority::Owner | Authority::Account(_) => Ok(()),
        }
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
        let one_of = self.need.of_resource_grant().ok_or_else(never)?;
        check_one_of(access_policy::permissions(grant, policies, now)?, one_of)
    }
}
