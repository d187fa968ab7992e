//! The authorization of a caller in an account.

use std::borrow::Cow;

use super::Letters;
use crate::{bearer::Role, field_values::FieldValues, spec::ServiceSpec};
use trestle_model::fault::Fault;

/// The authorization of a caller in an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authority {
    /// Full access: the caller has a key of the account.
    Owner,
    /// The role in a bearer token.
    Role(Role),
    /// What a shared access signature over the account grants.
    Account(AccountGrant),
    /// What a shared access signature over one resource grants.
    Resource(ResourceGrant),
    /// A caller without credentials, to whom the account may have opened containers of blobs for reading.
    Anonymous,
}

impl Authority {
    /// The grant over one resource, if it is one with a stored access policy.
    #[must_use]
    pub fn by_policy(&self) -> Option<(&ResourceGrant, &PolicyRef)> {
        match self {
            Self::Owner | Self::Role(_) | Self::Account(_) | Self::Anonymous => None,
            Self::Resource(grant) => Some((grant, grant.policy.as_ref()?)),
        }
    }

    /// The stored access policy that completes it, if any.
    #[must_use]
    pub fn policy(&self) -> Option<&PolicyRef> {
        self.by_policy().map(|(_, policy)| policy)
    }

    /// The error of every call, if that policy is valid.
    #[must_use]
    pub fn denied(&self) -> Option<&Fault> {
        self.policy()?.denied.as_deref()
    }
}

/// A shared access signature over an account. Its times were checked; the service checks services,
/// resource types and permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountGrant {
    /// Letters of `bqtfl`: blob, queue, table, file, log.
    pub services: Letters,
    /// Letters of `sco`: service, container (a table, for one), object (an entity).
    pub resource_types: Letters,
    /// Letters such as `rwdlacup`.
    pub permissions: Letters,
}

/// A shared access signature over one resource. Its own times were checked; the service checks
/// those of a stored access policy, as it stores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceGrant {
    /// The resource.
    pub resource: GrantedResource,
    /// Letters that the service declares; none if the policy sets them.
    pub permissions: Option<Letters>,
    /// The stored access policy that the signature refers to.
    pub policy: Option<PolicyRef>,
    /// What bounds the grant within the resource: a range of keys, a snapshot.
    pub bounds: FieldValues,
}

/// A resource of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedResource {
    /// The name of the service.
    pub service: Cow<'static, str>,
    /// The code of its type; empty where the service has one type only.
    pub resource_type: Cow<'static, str>,
    /// Its name, segments separated by `/`; in lower case where case is ignored.
    pub name: String,
}

impl ResourceGrant {
    /// Everything in a resource, with these permissions.
    #[must_use]
    pub fn new(service: &ServiceSpec, resource_type: &'static str, name: &str) -> Self {
        let resource = GrantedResource {
            service: Cow::Borrowed(service.name),
            resource_type: Cow::Borrowed(resource_type),
            name: service.folded(name),
        };
        Self { resource, permissions: None, policy: None, bounds: FieldValues::default() }
    }

    /// Whether it is for a resource of this service.
    #[must_use]
    pub fn is_of(&self, service: &ServiceSpec) -> bool {
        self.resource.service == service.name
    }

    /// Whether the resource with this name is that of the grant, or below it.
    #[must_use]
    pub fn covers(&self, service: &ServiceSpec, name: &str) -> bool {
        let name = service.folded(name);
        let Some(below) = name.strip_prefix(&self.resource.name).filter(|_| self.is_of(service))
        else {
            return false;
        };
        let resource_type = service.resource_type(&self.resource.resource_type);
        resource_type
            .is_some_and(|it| below.is_empty() || it.covers_below && below.starts_with('/'))
    }
}

/// A reference to a stored access policy, which is checked before anything else about a signature
/// that is authentic and valid now. Start, expiry and permissions must each be set exactly
/// once, so it contains which of them the signature sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRef {
    /// The id of the policy.
    pub id: String,
    /// Whether the signature sets a start.
    pub has_start: bool,
    /// Whether the signature sets an expiry.
    pub has_expiry: bool,
    /// The error if the policy completes the signature: a check after that of the policy has
    /// failed. It replaces the permissions of the signature.
    pub denied: Option<Box<Fault>>,
}

impl PolicyRef {
    /// Whether the checks after that of the policy were passed.
    ///
    /// # Errors
    /// The error of the first check that failed.
    pub fn passed(&self) -> Result<(), Fault> {
        self.denied.as_deref().map_or(Ok(()), |denied| Err(denied.clone()))
    }
}
