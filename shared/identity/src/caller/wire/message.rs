//! The message of an [`Authority`] that is less than full access.

use std::borrow::Cow;

use prost::Message;

use crate::{
    bearer::Role,
    caller::{AccountGrant, Authority, Caller, GrantedResource, Letters, PolicyRef, ResourceGrant},
    field_values::FieldValues,
};
use trestle_model::fault::{Fault, Reason};
use trestle_model::name::AccountName;

/// At most one of the first three and the role; none of them is full access, which only a message with a source states.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GrantWire {
    #[prost(message, optional, tag = "1")]
    pub(super) account: Option<AccountWire>,
    #[prost(message, optional, tag = "2")]
    pub(super) resource: Option<ResourceWire>,
    #[prost(bool, tag = "3")]
    pub(super) is_anonymous: bool,
    #[prost(message, optional, boxed, tag = "4")]
    pub(super) source: Option<Box<GrantWire>>,
    #[prost(string, tag = "5")]
    pub(super) role: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AccountWire {
    #[prost(string, tag = "1")]
    pub(super) services: String,
    #[prost(string, tag = "2")]
    pub(super) resource_types: String,
    #[prost(string, tag = "3")]
    pub(super) permissions: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceWire {
    #[prost(string, tag = "1")]
    pub(super) service: String,
    #[prost(string, tag = "2")]
    pub(super) resource_type: String,
    #[prost(string, tag = "3")]
    pub(super) name: String,
    #[prost(string, optional, tag = "4")]
    pub(super) permissions: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(super) policy: Option<PolicyWire>,
    #[prost(message, repeated, tag = "6")]
    pub(super) bounds: Vec<BoundWire>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PolicyWire {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(bool, tag = "2")]
    pub(super) has_start: bool,
    #[prost(bool, tag = "3")]
    pub(super) has_expiry: bool,
    #[prost(message, optional, tag = "4")]
    pub(super) denied: Option<DeniedWire>,
}

/// The error of a check that follows that of the policy.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DeniedWire {
    #[prost(enumeration = "Reason", tag = "1")]
    pub(super) reason: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BoundWire {
    #[prost(string, tag = "1")]
    pub(super) field: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

impl GrantWire {
    /// The grant of an authorization; the default message for full access.
    pub(super) fn of(authority: &Authority) -> Self {
        match authority {
            Authority::Owner => Self::default(),
            // A process of a version without roles rejects it: an anonymous caller with an account is no grant.
            Authority::Role(role) => Self {
                account: Some(AccountWire::default()),
                is_anonymous: true,
                role: role.as_str().to_owned(),
                ..Self::default()
            },
            Authority::Account(grant) => Self { account: Some(grant.into()), ..Self::default() },
            Authority::Resource(grant) => Self { resource: Some(grant.into()), ..Self::default() },
            Authority::Anonymous => Self { is_anonymous: true, ..Self::default() },
        }
    }

    /// The caller with this grant; none where it is malformed. The grant of a source is less than full access.
    pub(super) fn caller(mut self, account: AccountName) -> Option<Caller> {
        let source = match self.source.take() {
            None => None,
            Some(source) if source.source.is_some() => return None,
            Some(source) => Some(Box::new(source.authority()?)),
        };
        let authority = match self == Self::default() && source.is_some() {
            true => Authority::Owner,
            false => self.authority()?,
        };
        Some(Caller { account, authority, source })
    }

    fn authority(self) -> Option<Authority> {
        if !self.role.is_empty() {
            let role = Role::parse(&self.role)?;
            return (self == Self::of(&Authority::Role(role))).then_some(Authority::Role(role));
        }
        match (self.account, self.resource, self.is_anonymous) {
            (Some(account), None, false) => account.grant().map(Authority::Account),
            (None, Some(resource), false) => resource.grant().map(Authority::Resource),
            (None, None, true) => Some(Authority::Anonymous),
            _ => None,
        }
    }
}

impl From<&AccountGrant> for AccountWire {
    fn from(grant: &AccountGrant) -> Self {
        Self {
            services: grant.services.to_string(),
            resource_types: grant.resource_types.to_string(),
            permissions: grant.permissions.to_string(),
        }
    }
}

impl AccountWire {
    fn grant(&self) -> Option<AccountGrant> {
        Some(AccountGrant {
            services: Letters::parse(&self.services)?,
            resource_types: Letters::parse(&self.resource_types)?,
            permissions: Letters::parse(&self.permissions)?,
        })
    }
}

impl From<&ResourceGrant> for ResourceWire {
    fn from(grant: &ResourceGrant) -> Self {
        let GrantedResource { service, resource_type, name } = &grant.resource;
        let bounds = grant.bounds.iter();
        Self {
            service: service.to_string(),
            resource_type: resource_type.to_string(),
            name: name.clone(),
            permissions: grant.permissions.map(|letters| letters.to_string()),
            policy: grant.policy.as_ref().map(PolicyWire::from),
            bounds: bounds.map(|(field, value)| BoundWire::new(field, value)).collect(),
        }
    }
}

impl ResourceWire {
    fn grant(self) -> Option<ResourceGrant> {
        let permissions = match self.permissions {
            None => None,
            Some(letters) => Some(Letters::parse(&letters)?),
        };
        let policy = match self.policy {
            None => None,
            Some(policy) => Some(policy.reference()?),
        };
        let count = self.bounds.len();
        let bounds = self.bounds.into_iter().map(|bound| (bound.field, bound.value));
        let bounds: FieldValues = bounds.collect();
        // With a bound twice it could be wider than intended.
        let is_whole = !self.service.is_empty() && bounds.iter().count() == count;
        let resource = GrantedResource {
            service: Cow::Owned(self.service),
            resource_type: Cow::Owned(self.resource_type),
            name: self.name,
        };
        is_whole.then_some(ResourceGrant { resource, permissions, policy, bounds })
    }
}

impl BoundWire {
    fn new(field: &str, value: &str) -> Self {
        Self { field: field.to_owned(), value: value.to_owned() }
    }
}

impl From<&PolicyRef> for PolicyWire {
    fn from(policy: &PolicyRef) -> Self {
        let denied = |fault: &Fault| DeniedWire {
            reason: i32::from(fault.reason),
            message: fault.message.clone(),
        };
        Self {
            id: policy.id.clone(),
            has_start: policy.has_start,
            has_expiry: policy.has_expiry,
            denied: policy.denied.as_deref().map(denied),
        }
    }
}

impl PolicyWire {
    fn reference(self) -> Option<PolicyRef> {
        let denied = match self.denied {
            None => None,
            Some(DeniedWire { reason, message }) => {
                Some(Box::new(Fault::new(Reason::try_from(reason).ok()?, message)))
            }
        };
        let Self { id, has_start, has_expiry, .. } = self;
        Some(PolicyRef { id, has_start, has_expiry, denied })
    }
}
