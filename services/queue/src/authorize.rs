//! What a caller may do: pure decisions on what the gateway vouches for, before the store is asked whether something
//! exists. Checks come in a fixed order: service, resource type, permission.

use trestle_service::{
    caller::{AccountGrant, Authority, Caller},
    fault::{Fault, Reason},
};

/// The letter of this service.
const QUEUE_SERVICE: char = 'q';

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// To list the queues of the account.
    ListQueues,
    /// To create a queue.
    CreateQueue,
    /// To read the settings of a queue, and how it is.
    ReadQueue,
    /// To change its settings.
    WriteQueue,
    /// To delete it.
    DeleteQueue,
    /// To read or change its stored access policies: for owners only, or a signature could give itself more.
    AccessPolicies,
    /// To send messages.
    Add,
    /// To receive and delete messages.
    Process,
    /// To look at messages.
    Peek,
    /// To update a message.
    Update,
    /// To delete every message.
    Clear,
    /// To move messages from one queue to another.
    Redrive,
    /// To read the settings of the service.
    ReadProperties,
    /// To change them.
    WriteProperties,
    /// To read the state of the service.
    ReadStats,
}

impl Need {
    /// The resource type that an account grant must have, and the permissions of which it must have one, each time;
    /// none where no such grant suffices.
    fn of_account_grant(self) -> Option<(char, &'static [&'static str])> {
        match self {
            Self::ListQueues => Some(('s', &["l"])),
            Self::CreateQueue => Some(('c', &["cw"])),
            Self::ReadQueue => Some(('c', &["r"])),
            Self::WriteQueue => Some(('c', &["w"])),
            Self::DeleteQueue => Some(('c', &["d"])),
            Self::AccessPolicies => None,
            Self::Add => Some(('o', &["a"])),
            Self::Process => Some(('o', &["p"])),
            Self::Peek => Some(('o', &["r"])),
            Self::Update => Some(('o', &["u"])),
            Self::Clear => Some(('o', &["d"])),
            // What it would take to do the same message by message.
            Self::Redrive => Some(('o', &["p", "a"])),
            Self::ReadProperties | Self::ReadStats => Some(('s', &["r"])),
            Self::WriteProperties => Some(('s', &["w"])),
        }
    }
}

/// Whether a caller may do what a call needs.
///
/// # Errors
/// The failure that says what the caller lacks.
pub(crate) fn check(caller: &Caller, need: Need) -> Result<(), Fault> {
    let grant = match &caller.authority {
        Authority::Owner => return Ok(()),
        Authority::Account(grant) => grant,
        Authority::Table(_) => return Err(wrong_service()),
    };
    check_grant(grant, need)
}

fn check_grant(grant: &AccountGrant, need: Need) -> Result<(), Fault> {
    if !grant.services.has(QUEUE_SERVICE) {
        return Err(wrong_service());
    }
    let (resource_type, permissions) = need.of_account_grant().ok_or_else(|| {
        let why = "a shared access signature of this kind never allows it";
        let message = format!("this request is not authorized to perform this operation: {why}");
        Fault::new(Reason::AuthorizationFailure, message)
    })?;
    if !grant.resource_types.has(resource_type) {
        let what = "the signature is not for this type of resource";
        let message = format!("{what}: required=`{resource_type}`");
        return Err(Fault::new(Reason::AuthorizationResourceTypeMismatch, message));
    }
    let lacks = |one_of: &&&str| !one_of.chars().any(|letter| grant.permissions.has(letter));
    if let Some(one_of) = permissions.iter().find(lacks) {
        let message = format!("the signature lacks a permission: required one of=`{one_of}`");
        return Err(Fault::new(Reason::AuthorizationPermissionMismatch, message));
    }
    Ok(())
}

fn wrong_service() -> Fault {
    let message = format!("the signature is not for this service: required=`{QUEUE_SERVICE}`");
    Fault::new(Reason::AuthorizationServiceMismatch, message)
}

#[cfg(test)]
mod tests {
    use trestle_service::caller::Letters;

    use super::*;

    fn outcome(
        services: &str,
        resource_types: &str,
        permissions: &str,
        need: Need,
    ) -> Option<Reason> {
        let letters = |text| Letters::parse(text).expect("letters");
        let grant = AccountGrant {
            services: letters(services),
            resource_types: letters(resource_types),
            permissions: letters(permissions),
        };
        check_grant(&grant, need).err().map(|fault| fault.reason)
    }

    #[test]
    fn each_operation_asks_for_its_resource_type_and_its_permission() {
        let table = [
            (Need::ListQueues, "s", "l"),
            (Need::CreateQueue, "c", "c"),
            (Need::CreateQueue, "c", "w"),
            (Need::ReadQueue, "c", "r"),
            (Need::WriteQueue, "c", "w"),
            (Need::DeleteQueue, "c", "d"),
            (Need::Add, "o", "a"),
            (Need::Process, "o", "p"),
            (Need::Peek, "o", "r"),
            (Need::Update, "o", "u"),
            (Need::Clear, "o", "d"),
            (Need::Redrive, "o", "ap"),
            (Need::ReadProperties, "s", "r"),
            (Need::WriteProperties, "s", "w"),
            (Need::ReadStats, "s", "r"),
        ];
        for (need, resource_type, permission) in table {
            assert_eq!(outcome("q", resource_type, permission, need), None, "{need:?}");
            let other_types: String = "sco".replace(resource_type, "");
            let mismatch = Some(Reason::AuthorizationResourceTypeMismatch);
            assert_eq!(outcome("q", &other_types, permission, need), mismatch, "{need:?}");
            let others: String = "rwdlacup".chars().filter(|l| !permission.contains(*l)).collect();
            let mismatch = match need {
                Need::CreateQueue => None,
                _ => Some(Reason::AuthorizationPermissionMismatch),
            };
            assert_eq!(outcome("q", resource_type, &others, need), mismatch, "{need:?}");
            let mismatch = Some(Reason::AuthorizationServiceMismatch);
            assert_eq!(outcome("bt", resource_type, permission, need), mismatch, "{need:?}");
        }
        assert_eq!(
            outcome("q", "sco", "rwdlacup", Need::AccessPolicies),
            Some(Reason::AuthorizationFailure)
        );
    }

    #[test]
    fn a_redrive_needs_both_permissions() {
        for permission in ["a", "p"] {
            let mismatch = Some(Reason::AuthorizationPermissionMismatch);
            assert_eq!(outcome("q", "o", permission, Need::Redrive), mismatch);
        }
    }
}
