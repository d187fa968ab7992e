//! The roles of callers with a bearer token.

use std::fmt;

use crate::{authorize::AccountNeed, caller::Letters};
use trestle_model::fault::{Fault, Reason};

/// What a bearer token permits in each account that its issuer acts for, in all services. A later role includes the
/// earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Nothing but user delegation keys, whose signatures then permit nothing: each permits at most what the role does.
    Delegator,
    /// Reads of data, metadata and service settings. Index tags of blobs are not included, as in Azure.
    Reader,
    /// Also writes, deletes and creates; receives of messages.
    Contributor,
    /// Everything, with access policies and the settings of the services.
    Owner,
}

/// The permissions of a reader, as letters of an account SAS: read, list, and find by tags.
const OF_READER: &str = "rlf";
/// The resource type of the service itself.
const OF_SERVICE: &str = "s";

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Delegator, Self::Reader, Self::Contributor, Self::Owner];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delegator => "delegator",
            Self::Reader => "reader",
            Self::Contributor => "contributor",
            Self::Owner => "owner",
        }
    }

    /// The role with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// Whether the role permits what an account SAS would need `need` for; none: what no account SAS permits.
    ///
    /// # Errors
    /// [`Reason::AuthorizationPermissionMismatch`] with the role.
    pub fn check(self, need: Option<AccountNeed>) -> Result<(), Fault> {
        let is_permitted = match (self, need) {
            (Self::Owner, _) => true,
            (Self::Delegator, _) | (_, None) => false,
            (Self::Contributor, Some(need)) => {
                need.resource_types != OF_SERVICE || reads(need.permissions)
            }
            (Self::Reader, Some(need)) => reads(need.permissions),
        };
        if is_permitted { Ok(()) } else { Err(self.denied()) }
    }

    /// Whether the role permits an operation that needs every one of these letters on the data of a resource.
    ///
    /// # Errors
    /// As [`Role::check`].
    pub fn check_letters(self, all_of: &str) -> Result<(), Fault> {
        let is_permitted = all_of.chars().all(|letter| self.permits(letter));
        if is_permitted { Ok(()) } else { Err(self.denied()) }
    }

    /// The permissions of a signature that the role has too.
    pub(crate) fn narrow(self, permissions: Letters) -> Letters {
        permissions.filter(|letter| self.permits(letter))
    }

    /// Whether the role has a permission on the data of a resource.
    fn permits(self, letter: char) -> bool {
        match self {
            Self::Delegator => false,
            Self::Reader => is_read(letter),
            Self::Contributor | Self::Owner => true,
        }
    }

    fn denied(self) -> Fault {
        let message = format!("the role of the token does not permit the operation: role=`{self}`");
        Fault::new(Reason::AuthorizationPermissionMismatch, message)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn is_read(letter: char) -> bool {
    OF_READER.contains(letter)
}

/// Whether each permission has an alternative that only reads.
fn reads(permissions: &[&str]) -> bool {
    permissions.iter().all(|one_of| one_of.chars().any(is_read))
}
