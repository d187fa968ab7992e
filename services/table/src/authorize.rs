//! Authorization: pure decisions on the caller that the gateway authenticated.
//!
//! Calls on tables and settings are one [`TableAction`], which is permitted or denied before anything
//! is read. Calls on entities have an [`EntityAccess`]; together with the table it yields [`EntityPermissions`]:
//! which actions, on which keys. Checks have a fixed order: stored access policy (of the table of
//! the SAS, for any call), service, resource type, permission, key range.
//! All of them precede any report whether a resource exists.

mod bounds;
#[cfg(test)]
pub(crate) mod tests;

use trestle_identity::{
    authorize::{AccountNeed, anonymous, never, wrong_service},
    caller::{Authority, Caller},
    spec::TABLE,
};
use trestle_model::fault::Fault;

pub(crate) use self::bounds::{EntityAccess, EntityAction, EntityPermissions};

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
    /// To read in it which partitions are hot: their keys are data of the account.
    ReadHottestPartitions,
}

impl TableAction {
    /// What an account SAS must have; none where it does not suffice.
    fn account_need(self) -> Option<AccountNeed> {
        let need = |resource_types, permissions| Some(AccountNeed { resource_types, permissions });
        match self {
            // Azure documents both resource types.
            Self::ListTables => need("cs", &["l"]),
            Self::CreateTable => need("c", &["cw"]),
            Self::DeleteTable => need("c", &["d"]),
            Self::AccessPolicies => None,
            Self::ReadProperties | Self::ReadStats => need("s", &["r"]),
            Self::WriteProperties => need("s", &["w"]),
            Self::ReadHottestPartitions => need("o", &["r"]),
        }
    }
}

/// Whether a caller may do an action that is not on entities.
///
/// # Errors
/// The missing permission.
pub(crate) fn check(caller: &Caller, action: TableAction) -> Result<(), Fault> {
    match &caller.authority {
        Authority::Owner => Ok(()),
        Authority::Role(role) => role.check(action.account_need()),
        Authority::Account(grant) => AccountNeed::check(action.account_need(), grant, &TABLE),
        Authority::Resource(grant) if grant.is_of(&TABLE) => Err(never()),
        Authority::Resource(_) => Err(wrong_service(&TABLE)),
        Authority::Anonymous => Err(anonymous()),
    }
}
