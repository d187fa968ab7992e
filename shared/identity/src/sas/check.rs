//! What a token grants now: the checks in their order, and the caller who passes them.
//!
//! Form, signature, time, protocol and address are checked here; stored access policy, service,
//! resource type, permission and key range by the service, which knows the operation. Since the
//! policy comes before protocol and address, what these say of a token that names one goes to the
//! service with the caller, who answers it where the policy holds.

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

/// How much earlier than its start a token is taken, for clocks that differ. Its end is exact: a
/// token never lives longer than it says.
pub const START_SKEW: Duration = Duration::from_secs(5 * 60);

/// Most accounts that a token which names none is tried against: bounds the work of a call.
const TRIED_MAX: usize = 16;

/// The checks of a token, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The form of the token and of its fields.
    Form,
    /// The signature, and with it the account and its keys.
    Signature,
    /// Whether the account is switched on.
    Account,
    /// The start and the end that the token states.
    Time,
    /// The stored access policy. By the service.
    Policy,
    /// The protocol of the connection.
    Protocol,
    /// The address at its other end.
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

/// Why a token grants nothing. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    /// The check that it fails.
    pub check: Check,
    /// The failure of the call.
    pub reason: Reason,
    /// The same for people.
    pub message: String,
}

impl Denial {
    /// A denial by a check.
    #[must_use]
    pub fn new(check: Check, reason: Reason, message: impl Into<String>) -> Self {
        Self { check, reason, message: message.into() }
    }

    /// What everybody hears whose account, key or signature is wrong: which of them it is would
    /// tell what accounts there are.
    #[must_use]
    pub fn unknown() -> Self {
        let message = "the account, its key or the signature is wrong";
        Self::new(Check::Signature, Reason::AuthenticationFailed, message)
    }

    /// What the owner of a disabled account hears.
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

/// When and from where a token is used.
pub(super) struct Use<'a> {
    pub(super) now: Ticks,
    pub(super) peer: &'a Peer,
}

type Rule = fn(&Terms, &Use<'_>) -> Result<(), Denial>;

/// The checks after the signature, in their order.
pub(super) const RULES: [(Check, Rule); 3] =
    [(Check::Time, time), (Check::Protocol, protocol), (Check::Address, address)];

/// What a call says of its token that the token does not say itself. Only the right names make
/// the signature a right one.
#[derive(Debug, Clone, Default)]
pub struct Named<'a> {
    /// The account; without a name the accounts are tried.
    pub account: Option<&'a str>,
    /// What it is over, if that is a queue or a container.
    pub resource: Option<Resource>,
}

impl<'a> From<Option<&'a str>> for Named<'a> {
    fn from(account: Option<&'a str>) -> Self {
        Self { account, resource: None }
    }
}

/// The caller that a token makes of whoever has it, in a call that names what `named` says.
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

/// Whether a check has to wait for a stored access policy, which a service has.
fn is_for_after_the_policy(terms: &Terms, check: Check) -> bool {
    let is_of_a_service = matches!(terms.scope, Scope::Table { .. } | Scope::Queue { .. });
    check > Check::Policy && is_of_a_service && terms.policy.is_some()
}

/// When a token ends that was verified, in a call that names this resource. None: it leaves that to
/// its policy.
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
