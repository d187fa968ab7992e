//! The grant of a token now: the checks in their order, and the caller who passes them.
//!
//! Checks form, signature, time, protocol and address; stored access policy, service,
//! resource type, permission and key range by the service, which has the operation. Since the
//! policy precedes protocol and address, their errors for a token with a policy are sent to the
//! service with the caller, and the service returns them if the policy is valid.

use super::{
    Check, Delegation, Denied, Malformed, NamedResource, Scope, Terms, Token,
    rules::{Use, check_use},
    string_to_sign,
};
use crate::{
    account::{Account, AccountSet, Signature},
    bearer::Role,
    caller::{AccountGrant, Authority, Caller, Letters, PolicyRef, ResourceGrant},
};
use trestle_model::fault::{Fault, Reason};
use trestle_model::time::Ticks;
use trestle_rpc::peer::Peer;

/// Most accounts that are tried for a token without an account name: bounds the work of a call.
pub(super) const TRIED_MAX: usize = 16;

/// The parameters of a token that the call supplies and the token does not contain. Only the right
/// names match its signature.
#[derive(Debug, Clone, Default)]
pub struct Named<'a> {
    /// The account; without a name several accounts are tried.
    pub account: Option<&'a str>,
    /// The resource, for a token that does not contain it.
    pub resource: Option<NamedResource>,
}

impl Named<'_> {
    /// Bytes of all texts.
    pub(super) fn bytes(&self) -> usize {
        let of_resource = |named: &NamedResource| {
            let fields = named.fields.iter().map(|(name, value)| name.len() + value.len());
            named.name.len() + fields.sum::<usize>()
        };
        self.account.map_or(0, str::len) + self.resource.as_ref().map_or(0, of_resource)
    }
}

impl<'a> From<Option<&'a str>> for Named<'a> {
    fn from(account: Option<&'a str>) -> Self {
        Self { account, resource: None }
    }
}

/// A token that passed the checks, and its account.
pub(super) struct Accepted<'a> {
    pub(super) account: &'a Account,
    pub(super) terms: Terms,
    /// The role of the user whose delegation key signed it; none: a key of the account did.
    role: Option<Role>,
    /// The error that is for after the policy.
    denied: Option<Box<Fault>>,
}

impl Accepted<'_> {
    /// The caller that the token authenticates.
    ///
    /// # Errors
    /// A token for a service that this server does not have.
    pub(super) fn caller(&self) -> Result<Caller, Denied> {
        let authority = authority(&self.terms, self.role, self.denied.clone())?;
        Ok(Caller::new(self.account.name.clone(), authority))
    }

    /// Whether the token passed every check, so that it passes again while time and peer allow it.
    pub(super) fn is_unconditional(&self) -> bool {
        self.denied.is_none()
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
) -> Result<Caller, Denied> {
    accept(token, named.into(), accounts, &Use { now, peer })?.caller()
}

/// Checks a token.
///
/// # Errors
/// As [`verify`], but for a service that this server does not have.
pub(super) fn accept<'a>(
    token: &str,
    named: Named<'_>,
    accounts: &'a AccountSet,
    usage: &Use<'_>,
) -> Result<Accepted<'a>, Denied> {
    let Named { account, resource } = named;
    let Token { terms, signature } = Token::parse(token, resource)?;
    let (account, role) = signer(&terms, &signature, account, accounts)?;
    if account.is_disabled {
        return Err(Denied::disabled(account));
    }
    if !is_delegated_still(&terms, account, accounts) {
        let message = "the issuer of the user whose delegation key signed the token does not act for the account";
        return Err(Denied::new(Check::Account, Reason::AuthenticationFailed, message));
    }
    let denied = match check_use(&terms, usage) {
        Ok(()) => None,
        Err(denied) if is_for_after_the_policy(&terms, denied.check) => {
            Some(Box::new(denied.into()))
        }
        Err(denied) => return Err(denied),
    };
    Ok(Accepted { account, terms, role, denied })
}

/// Whether the issuer of the user whose delegation key signed a token acts for the account, if such a key signed it.
pub(super) fn is_delegated_still(terms: &Terms, account: &Account, accounts: &AccountSet) -> bool {
    let acts = |delegation: &Delegation| {
        accounts.issuers().acts_for(&delegation.key.issuer, account.name.as_str())
    };
    terms.delegation.as_deref().is_none_or(acts)
}

/// Whether a check has to wait for a stored access policy, which a service stores.
fn is_for_after_the_policy(terms: &Terms, check: Check) -> bool {
    let is_of_a_service = matches!(&terms.scope, Scope::Resource(scope) if scope.service.is_served);
    check > Check::Policy && is_of_a_service && terms.policy.is_some()
}

/// The expiry of a verified token, in a call for this resource. None: the policy sets it.
#[must_use]
pub fn expiry_of(token: &str, resource: Option<NamedResource>) -> Option<Ticks> {
    let token = Token::parse(token, resource).ok()?;
    token.terms.ends()
}

fn signer<'a>(
    terms: &Terms,
    signature: &Signature,
    account: Option<&str>,
    accounts: &'a AccountSet,
) -> Result<(&'a Account, Option<Role>), Denied> {
    let signed = |name: &str| {
        let text = string_to_sign(terms, name);
        match &terms.delegation {
            None => Some((accounts.with_signature(name, &text, signature)?, None)),
            Some(delegation) => {
                let account = accounts.get(name);
                let role = delegation.key.role((name, account), &text, signature)?;
                Some((account?, Some(role)))
            }
        }
    };
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
    found.ok_or_else(Denied::unknown)
}

fn authority(
    terms: &Terms,
    role: Option<Role>,
    denied: Option<Box<Fault>>,
) -> Result<Authority, Denied> {
    let letters = |text: &str| Letters::parse(text).unwrap_or_default();
    let permissions = terms.letters();
    let permissions = role.map_or(permissions, |role| role.narrow(permissions));
    let (has_start, has_expiry) = (terms.start.is_some(), terms.expiry.is_some());
    let stated = (!terms.permissions.is_empty()).then_some(permissions);
    let policy = terms.policy.clone();
    let policy = policy.map(|id| PolicyRef { id, has_start, has_expiry, denied });
    match &terms.scope {
        Scope::Account { services, resource_types, .. } => Ok(Authority::Account(AccountGrant {
            services: letters(services),
            resource_types: letters(resource_types),
            permissions,
        })),
        Scope::Resource(scope) if scope.service.is_served => {
            let resource_type =
                scope.resource_type().map_or("", |resource_type| resource_type.code);
            let grant = ResourceGrant::new(scope.service, resource_type, &scope.name);
            let bounds = scope.bounds();
            Ok(Authority::Resource(ResourceGrant { permissions: stated, policy, bounds, ..grant }))
        }
        Scope::Resource(_) => {
            let message = "the signature is not for this service";
            let reason = Reason::AuthorizationServiceMismatch;
            Err(Denied::new(Check::Service, reason, message))
        }
    }
}
