//! Authorization: pure decisions on the caller that the gateway authenticated.
//!
//! Calls on tables and settings are one [`TableAction`], which is permitted or denied before anything
//! is read. Calls on entities have an [`EntityAccess`]; together with the table it gives [`EntityPermissions`]:
//! which actions, on which keys. Checks come in a fixed order: stored access policy (of the table that
//! the signature is over, whatever the call is about), service, resource type, permission, key range.
//! All of them come before anything reports whether a resource exists.

mod bounds;
mod policy;
#[cfg(test)]
pub(crate) mod tests;

use trestle_identity::caller::{AccountGrant, Authority, Caller, Letters};
use trestle_service::fault::{Fault, Reason};

pub(crate) use self::{
    bounds::{EntityAccess, EntityAction, EntityPermissions},
    policy::{permissions, stated},
};

/// The letter of this service.
const TABLE_SERVICE: char = 't';

/// An action that is not on entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableAction {
    /// To list the tables of the account, or get one.
    ListTables,
    /// To create a table.
    CreateTable,
    /// To delete a table.
    DeleteTable,
    /// To read or change the stored access policies of a table: for owners only, or a signature
    /// could extend its own permissions.
    AccessPolicies,
    /// To read the settings of the service.
    ReadProperties,
    /// To change them.
    WriteProperties,
    /// To read the state of the service.
    ReadStats,
}

impl TableAction {
    /// An account grant must have one of these resource types and one of these permissions; none
    /// where no such grant suffices.
    fn account_grant(self) -> Option<(&'static str, &'static str)> {
        match self {
            // Azure documents both resource types.
            Self::ListTables => Some(("cs", "l")),
            Self::CreateTable => Some(("c", "cw")),
            Self::DeleteTable => Some(("c", "d")),
            Self::AccessPolicies => None,
            Self::ReadProperties | Self::ReadStats => Some(("s", "r")),
            Self::WriteProperties => Some(("s", "w")),
        }
    }
}

/// Whether a caller may do an action that is not on entities.
///
/// # Errors
/// The missing permission.
pub(crate) fn check(caller: &Caller, action: TableAction) -> Result<(), Fault> {
    let grant = match &caller.authority {
        Authority::Owner => return Ok(()),
        Authority::Account(grant) => grant,
        Authority::Table(_) => return Err(never()),
        Authority::Queue(_) => return Err(wrong_service()),
    };
    check_service(grant)?;
    let (resource_types, permissions) = action.account_grant().ok_or_else(never)?;
    check_resource_type(grant, resource_types)?;
    if permissions.chars().any(|letter| grant.permissions.has(letter)) {
        return Ok(());
    }
    Err(no_permission(permissions))
}

fn check_service(grant: &AccountGrant) -> Result<(), Fault> {
    if grant.services.has(TABLE_SERVICE) {
        return Ok(());
    }
    Err(wrong_service())
}

fn wrong_service() -> Fault {
    let message = format!("the signature is not for this service: required=`{TABLE_SERVICE}`");
    Fault::new(Reason::AuthorizationServiceMismatch, message)
}

/// Whether the grant has one of these resource types.
fn check_resource_type(grant: &AccountGrant, one_of: &str) -> Result<(), Fault> {
    if one_of.chars().any(|letter| grant.resource_types.has(letter)) {
        return Ok(());
    }
    let message =
        format!("the signature is not for this type of resource: required one of=`{one_of}`");
    Err(Fault::new(Reason::AuthorizationResourceTypeMismatch, message))
}

/// Whether every one of these permissions is granted.
fn check_permissions(granted: Letters, all_of: &str) -> Result<(), Fault> {
    if all_of.chars().all(|letter| granted.has(letter)) {
        return Ok(());
    }
    let message = format!("the signature lacks a permission: required all of=`{all_of}`");
    Err(Fault::new(Reason::AuthorizationPermissionMismatch, message))
}

fn no_permission(one_of: &str) -> Fault {
    let message = format!("the signature lacks a permission: required one of=`{one_of}`");
    Fault::new(Reason::AuthorizationPermissionMismatch, message)
}

/// The error of a call that no signature of this kind permits.
fn never() -> Fault {
    denied("a shared access signature of this kind never allows it")
}

fn denied(why: &str) -> Fault {
    let message = format!("this request is not authorized to perform this operation: {why}");
    Fault::new(Reason::AuthorizationFailure, message)
}
