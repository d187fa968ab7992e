//! Authorization: pure decisions on the caller that the gateway authenticated, before a response reveals whether
//! something exists. The order of checks is fixed: stored access policy (of the queue in the signature, whatever the
//! queue of the call), service, resource type, queue, permission.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use trestle_identity::{
    access_policy,
    authorize::{
        AccountNeed, anonymous, check_all_of, check_resource, never, not_authorized, wrong_service,
    },
    caller::{Authority, Caller},
    spec::QUEUE,
};
use trestle_model::fault::Fault;
use trestle_model::name::{AccountName, QueueName};
use trestle_model::time::Ticks;
use trestle_proto::service::v1::AccessPolicy;

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
    /// What an account SAS must have; none where it does not suffice.
    fn of_account_grant(self) -> Option<AccountNeed> {
        let need = |resource_types, permissions| Some(AccountNeed { resource_types, permissions });
        match self {
            Self::ListQueues => need("s", &["l"]),
            Self::CreateQueue => need("c", &["cw"]),
            Self::ReadQueue => need("c", &["r"]),
            Self::WriteQueue => need("c", &["w"]),
            Self::DeleteQueue => need("c", &["d"]),
            Self::AccessPolicies => None,
            Self::Add => need("o", &["a"]),
            Self::Process => need("o", &["p"]),
            Self::Peek => need("o", &["r"]),
            Self::Update => need("o", &["u"]),
            Self::Clear => need("o", &["d"]),
            // The permissions for the same operation, message by message.
            Self::Redrive => need("o", &["p", "a"]),
            Self::ReadProperties | Self::ReadStats => need("s", &["r"]),
            Self::WriteProperties => need("s", &["w"]),
        }
    }

    /// The permission that a grant on the queue must have; none where no such grant suffices.
    fn of_queue_grant(self) -> Option<&'static str> {
        match self {
            Self::ReadQueue | Self::Peek => Some("r"),
            Self::Add => Some("a"),
            Self::Update => Some("u"),
            Self::Process => Some("p"),
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
pub(crate) struct QueueAccess {
    caller: Arc<Caller>,
    need: Need,
}

impl QueueAccess {
    /// The access of a caller.
    ///
    /// # Errors
    /// When the caller has the permission on no queue.
    pub(crate) fn new(caller: Arc<Caller>, need: Need) -> Result<Self, Fault> {
        match &caller.authority {
            Authority::Owner => {}
            Authority::Role(role) => role.check(need.of_account_grant())?,
            Authority::Anonymous => return Err(anonymous()),
            Authority::Account(grant) => {
                AccountNeed::check(need.of_account_grant(), grant, &QUEUE)?;
            }
            Authority::Resource(grant) if !grant.is_of(&QUEUE) => {
                return Err(wrong_service(&QUEUE));
            }
            Authority::Resource(grant) if !grant.bounds.is_empty() => {
                return Err(not_authorized("the signature has bounds that are not supported"));
            }
            // The policy, if the signature names one, is checked where the queue is found.
            Authority::Resource(grant) => match (need.of_queue_grant(), &grant.policy) {
                (None, _) => return Err(never()),
                (Some(letter), None) => {
                    check_all_of(grant.permissions.unwrap_or_default(), letter)?;
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
        self.caller.authority.policy().is_some()
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
        let Authority::Resource(grant) = &self.caller.authority else { return Ok(()) };
        check_resource(grant, &QUEUE, queue.as_str())?;
        let letter = self.need.of_queue_grant().ok_or_else(never)?;
        check_all_of(access_policy::permissions(grant, policies, now)?, letter)
    }
}

/// Checks the permission for a call that is not on the messages of one queue.
///
/// # Errors
/// The error that names the missing permission.
pub(crate) fn check(caller: &Arc<Caller>, need: Need) -> Result<(), Fault> {
    QueueAccess::new(Arc::clone(caller), need).map(drop)
}
