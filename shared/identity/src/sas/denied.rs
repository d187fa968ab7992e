//! The checks of a token, and the error of one that it fails.

use super::Malformed;
use crate::account::Account;
use trestle_model::fault::{Fault, Reason};

/// The checks of a token, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The form of the token and of its fields.
    Form,
    /// The signature, and with it the account and its keys.
    Signature,
    /// Whether the account is enabled.
    Account,
    /// The start and the expiry in the token.
    Time,
    /// The stored access policy. By the service.
    Policy,
    /// The protocol of the connection.
    Protocol,
    /// The address of the peer.
    Address,
    /// The service. By the service.
    Service,
    /// Resource type, permission and key range. By the service.
    Operation,
}

impl Check {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Signature => "signature",
            Self::Account => "account",
            Self::Time => "time",
            Self::Policy => "policy",
            Self::Protocol => "protocol",
            Self::Address => "address",
            Self::Service => "service",
            Self::Operation => "operation",
        }
    }
}

/// The error of a token without a grant. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denied {
    /// The check that it fails.
    pub check: Check,
    /// The reason of the error.
    pub reason: Reason,
    /// The error text.
    pub message: String,
}

impl Denied {
    /// An error of a check.
    #[must_use]
    pub fn new(check: Check, reason: Reason, message: impl Into<String>) -> Self {
        Self { check, reason, message: message.into() }
    }

    /// The same error for a wrong account, key or signature: a difference would disclose which
    /// accounts exist.
    #[must_use]
    pub fn unknown() -> Self {
        let message = "the account, its key or the signature is wrong";
        Self::new(Check::Signature, Reason::AuthenticationFailed, message)
    }

    /// The error for the owner of a disabled account.
    #[must_use]
    pub fn disabled(account: &Account) -> Self {
        let message = format!("the account is disabled: account=`{}`", account.name);
        Self::new(Check::Account, Reason::AccountIsDisabled, message)
    }
}

impl From<Malformed> for Denied {
    fn from(malformed: Malformed) -> Self {
        let message = format!("shared access signature: {malformed}");
        Self::new(Check::Form, Reason::InvalidAuthenticationInfo, message)
    }
}

impl From<Denied> for Fault {
    fn from(denied: Denied) -> Self {
        Self::new(denied.reason, denied.message)
    }
}
