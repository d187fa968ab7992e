//! Authorization: pure decisions on the caller that the gateway authenticated, before a response reveals whether
//! something exists. The order of checks is fixed: stored access policy (of the queue in the signature, whatever the
//! queue of the call), service, resource type, queue, permission.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use trestle_identity::{
    access_policy::{self, Reference},
    caller::{AccountGrant, Authority, Caller, Letters, QueueGrant},
};
use trestle_proto::service::v1::AccessPolicy;
use trestle_service::{
    clock::Ticks,
    fault::{Fault, Reason},
    name::{AccountName, QueueName},
};

/// The letter of this service in an account SAS.
const QUEUE_SERVICE: char = 'q';

/// The operation that a call needs permission for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// To list the queues of the account.
    ListQueues,
    /// To create a queue.
    CreateQueue,
    /// To read the settings and the statistics of a queue.
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
    /// To peek at messages.
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
            // The permissions for the same operation, message by message.
            Self::Redrive => Some(('o', &["p", "a"])),
            Self::ReadProperties | Self::ReadStats => Some(('s', &["r"])),
            Self::WriteProperties => Some(('s', &["w"])),
        }
    }

    /// The permission that a grant on the queue must have; none where no such grant suffices.
    fn of_queue_grant(self) -> Option<char> {
        match self {
            Self::ReadQueue | Self::Peek => Some('r'),
            Self::Add => Some('a'),
            Self::Update => Some('u'),
            Self::Process => Some('p'),
            Self::ListQueues
            | Self::CreateQueue
            | Self::WriteQueue
            | Self::DeleteQueue
            | Self::AccessPolicies
            | Self::Clear
            | Self::Redrive
            | Self::ReadProperties
            | Self::WriteProperties
            | Self::ReadStats => None,
        }
    }
}

/// An authorized caller: it has the permission that a call needs, on the messages of some queue.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    caller: Arc<Caller>,
    need: Need,
}

impl Access {
    /// The access of a caller.
    ///
    /// # Errors
    /// When the caller has the permission on no queue.
    pub(crate) fn new(caller: Arc<Caller>, need: Need) -> Result<Self, Fault> {
        match &caller.authority {
            Authority::Owner => {}
            Authority::Account(grant) => check_grant(grant, need)?,
            Authority::Table(_) => return Err(wrong_service()),
            // The policy, if the signature names one, is checked where the queue is found.
            Authority::Queue(grant) => match (need.of_queue_grant(), &grant.policy) {
                (None, _) => return Err(never()),
                (Some(letter), None) => {
                    check_letter(grant.permissions.unwrap_or_default(), letter)?;
                }
                (Some(_), Some(_)) => {}
            },
        }
        Ok(Self { caller, need })
    }

    /// The access of an owner.
    #[cfg(test)]
    pub(crate) fn owner(account: AccountName) -> Self {
        Self { caller: Arc::new(Caller::owner(account)), need: Need::Process }
    }

    /// The account that the call works in.
    pub(crate) fn account(&self) -> &AccountName {
        &self.caller.account
    }

    /// Whether a stored access policy decides, which may change while the call waits.
    pub(crate) fn is_by_policy(&self) -> bool {
        matches!(&self.caller.authority, Authority::Queue(grant) if grant.policy.is_some())
    }

    /// Checks the permission on this queue, which has these stored access policies, before a response reveals whether
    /// the queue exists.
    ///
    /// # Errors
    /// When it is another queue than the one granted, the policy does not hold now, or the permission is not given.
    pub(crate) fn check(
        &self,
        queue: &QueueName,
        policies: &[AccessPolicy],
        now: Ticks,
    ) -> Result<(), Fault> {
        let Authority::Queue(grant) = &self.caller.authority else { return Ok(()) };
        if grant.queue != queue.as_str() {
            return Err(refused("the signature is for another queue"));
        }
        let letter = self.need.of_queue_grant().ok_or_else(never)?;
        check_letter(permissions(grant, policies, now)?, letter)
    }
}

/// The permissions of a grant on a queue with these policies, now.
///
/// # Errors
/// See [`access_policy::permissions`].
pub(crate) fn permissions(
    grant: &QueueGrant,
    policies: &[AccessPolicy],
    now: Ticks,
) -> Result<Letters, Fault> {
    let reference = Reference { permissions: grant.permissions, policy: grant.policy.as_ref() };
    access_policy::permissions(reference, policies, now)
}

/// Checks the permission for a call that is not on the messages of one queue.
///
/// # Errors
/// The error that names the missing permission.
pub(crate) fn check(caller: &Arc<Caller>, need: Need) -> Result<(), Fault> {
    Access::new(Arc::clone(caller), need).map(drop)
}

fn check_letter(granted: Letters, letter: char) -> Result<(), Fault> {
    if granted.has(letter) {
        return Ok(());
    }
    let message = format!("the signature lacks a permission: required=`{letter}`");
    Err(Fault::new(Reason::AuthorizationPermissionMismatch, message))
}

fn check_grant(grant: &AccountGrant, need: Need) -> Result<(), Fault> {
    if !grant.services.has(QUEUE_SERVICE) {
        return Err(wrong_service());
    }
    let (resource_type, permissions) = need.of_account_grant().ok_or_else(never)?;
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

/// The error of a call that no signature of this kind allows.
fn never() -> Fault {
    refused("a shared access signature of this kind never allows it")
}

fn refused(why: &str) -> Fault {
    let message = format!("this request is not authorized to perform this operation: {why}");
    Fault::new(Reason::AuthorizationFailure, message)
}

fn wrong_service() -> Fault {
    let message = format!("the signature is not for this service: required=`{QUEUE_SERVICE}`");
    Fault::new(Reason::AuthorizationServiceMismatch, message)
}
