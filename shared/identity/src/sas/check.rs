//! The grant of a token now: the checks in their order, and the caller who passes them.
//!
//! Form, signature, time, protocol and address are checked here; stored access policy, service,
//! resource type, permission and key range by the service, which has the operation. Since the
//! policy comes before protocol and address, their errors for a token with a policy are sent to the
//! service with the caller, and the service returns them if the policy is valid.

use std::time::Duration;

use super::{Malformed, Resource, Scope, Terms, Token, string_to_sign};
use crate::{
    account::{Account, AccountSet},
    caller::{AccountGrant, Authority, Caller, Denied, Letters, PolicyRef, QueueGrant, TableGrant},
};
use trestle_service::{
    clock::Ticks,
    fault::{Fault, Reason},
    peer::Peer,
};

/// How much earlier than its start a token is accepted, because of clock skew. Its expiry is exact:
/// a token is never valid longer than it states.
pub const START_SKEW: Duration = Duration::from_secs(5 * 60);

/// Most accounts that are tried for a token without an account name: bounds the work of a call.
const TRIED_MAX: usize = 16;

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
pub struct Denial {
    /// The check that it fails.
    pub check: Check,
    /// The reason of the error.
    pub reason: Reason,
    /// The error text.
    pub message: String,
}

impl Denial {
    /// A denial by a check.
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

impl From<Malformed> for Denial {
    fn from(malformed: Malformed) -> Self {
        let message = format!("shared access signature: {malformed}");
        Self::new(Check::Form, Reason::InvalidAuthenticationInfo, message)
    }
}

impl From<Denial> for Denied {
    fn from(denial: Denial) -> Self {
        Self { reason: denial.reason, message: denial.message }
    }
}

impl From<Denial> for Fault {
    fn from(denial: Denial) -> Self {
        Self::new(denial.reason, denial.message)
    }
}

/// The time and the peer of a use of a token.
pub(super) struct Use<'a> {
    pub(super) now: Ticks,
    pub(super) peer: &'a Peer,
}

type Rule = fn(&Terms, &Use<'_>) -> Result<(), Denial>;

/// The checks after the signature, in their order.
pub(super) const RULES: [(Check, Rule); 3] =
    [(Check::Time, time), (Check::Protocol, protocol), (Check::Address, address)];

/// The parameters of a token that the call supplies and the token does not contain. Only the right
/// names match its signature.
#[derive(Debug, Clone, Default)]
pub struct Named<'a> {
    /// The account; without a name several accounts are tried.
    pub account: Option<&'a str>,
    /// The resource, if that is a queue or a container.
    pub resource: Option<Resource>,
}

impl<'a> From<Option<&'a str>> for Named<'a> {
    fn from(account: Option<&'a str>) -> Self {
        Self { account, resource: None }
    }
}

/// The caller that a token authenticates, in a call with the parameters in `named`.
///
/// # Errors
/// The first check that the token fails.
pub fn verify<'a>(
    token: &str,
    named: impl Into<Named<'a>>,
    accounts: &AccountSet,
    now: Ticks,
    peer: &Peer,
) -> Result<Caller, Denial> {
    let Named { account, resource } = named.into();
    let token = Token::parse(token, resource)?;
    let account = signer(&token, account, accounts)?;
    if account.is_disabled {
        return Err(Denial::disabled(account));
    }
    let usage = Use { now, peer };
    let denied = match RULES.iter().try_for_each(|(_, rule)| rule(&token.terms, &usage)) {
        Ok(()) => None,
        Err(denial) if is_for_after_the_policy(&token.terms, denial.check) => Some(denial.into()),
        Err(denial) => return Err(denial),
    };
    let authority = authority(token.terms, denied)?;
    Ok(Caller { account: account.name.clone(), authority })
}

/// Whether a check has to wait for a stored access policy, which a service stores.
fn is_for_after_the_policy(terms: &Terms, check: Check) -> bool {
    let is_of_a_service = matches!(terms.scope, Scope::Table { .. } | Scope::Queue { .. });
    check > Check::Policy && is_of_a_service && terms.policy.is_some()
}

/// The expiry of a verified token, in a call for this resource. None: the policy sets it.
#[must_use]
pub fn expiry_of(token: &str, resource: Option<Resource>) -> Option<Ticks> {
    let token = Token::parse(token, resource).ok()?;
    token.terms.expiry.map(|expiry| expiry.ticks())
}

fn signer<'a>(
    token: &Token,
    account: Option<&str>,
    accounts: &'a AccountSet,
) -> Result<&'a Account, Denial> {
    let text = |name: &str| string_to_sign(&token.terms, name);
    let signed = |name: &str| accounts.with_signature(name, text, &token.signature);
    let found = match account {
        Some(name) => signed(name),
        None if accounts.len() <= TRIED_MAX => {
            accounts.iter().find_map(|account| signed(account.name.as_str()))
        }
        None => {
            let rule = "must name the account of the signature in `trestle-account`";
            let rule = format!("{rule}, since this server has more than {TRIED_MAX} of them");
            return Err(Malformed::new("token", rule).into());
        }
    };
    found.ok_or_else(Denial::unknown)
}

fn time(terms: &Terms, usage: &Use<'_>) -> Result<(), Denial> {
    let fails = |message| Err(Denial::new(Check::Time, Reason::AuthenticationFailed, message));
    let skew = u64::try_from(START_SKEW.as_nanos() / 100).unwrap_or(u64::MAX);
    match (&terms.start, &terms.expiry) {
        (Some(start), _) if start.ticks().get() > usage.now.get().saturating_add(skew) => {
            fails(format!("the signature is not valid yet: st=`{start}`"))
        }
        (_, Some(expiry)) if expiry.ticks() <= usage.now => {
            fails(format!("the signature has expired: se=`{expiry}`"))
        }
        _ => Ok(()),
    }
}

fn protocol(terms: &Terms, usage: &Use<'_>) -> Result<(), Denial> {
    if terms.protocol == Some(super::Protocol::Https) && usage.peer.tls.is_none() {
        let message = "the signature asks for an encrypted connection: spr=`https`";
        let reason = Reason::AuthorizationProtocolMismatch;
        return Err(Denial::new(Check::Protocol, reason, message));
    }
    Ok(())
}

fn address(terms: &Terms, usage: &Use<'_>) -> Result<(), Denial> {
    let address = usage.peer.ip();
    match &terms.addresses {
        Some(range) if !range.has(address) => {
            let message = "the signature is not for this address";
            let message = format!("{message}: sip=`{range}`, address=`{address}`");
            Err(Denial::new(Check::Address, Reason::AuthorizationSourceIpMismatch, message))
        }
        _ => Ok(()),
    }
}

fn authority(terms: Terms, denied: Option<Denied>) -> Result<Authority, Denial> {
    let letters = |text: &str| Letters::parse(text).unwrap_or_default();
    let permissions = terms.letters();
    let (has_start, has_expiry) = (terms.start.is_some(), terms.expiry.is_some());
    let stated = (!terms.permissions.is_empty()).then_some(permissions);
    let policy = terms.policy.map(|id| PolicyRef { id, has_start, has_expiry, denied });
    match terms.scope {
        Scope::Account { services, resource_types, .. } => Ok(Authority::Account(AccountGrant {
            services: letters(&services),
            resource_types: letters(&resource_types),
            permissions,
        })),
        Scope::Table { name, range } => Ok(Authority::Table(TableGrant {
            table: name.to_ascii_lowercase(),
            permissions: stated,
            policy,
            range,
        })),
        Scope::Queue { name } => {
            Ok(Authority::Queue(QueueGrant { queue: name, permissions: stated, policy }))
        }
        Scope::Blob(_) => {
            let message = "the signature is not for this service";
            let reason = Reason::AuthorizationServiceMismatch;
            Err(Denial::new(Check::Service, reason, message))
        }
    }
}
