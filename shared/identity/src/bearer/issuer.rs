//! Issuers, and the callers that their tokens authenticate.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use quick_cache::sync::Cache;

use super::{
    BEARER_BYTES_MAX, PublicKeys, Role,
    jwt::{Claims, Jwt, USER_BYTES_MAX},
};
use crate::{
    account::AccountSet,
    caller::{Authority, Caller},
    sas::{Check, Denied},
};
use trestle_model::{fault::Reason, name::AccountName, time::Ticks};
use trestle_rpc::peer::Peer;

/// Most verified tokens that are cached.
const TOKENS_MAX: usize = 1024;
/// Longest token that is cached, in bytes: bounds the cache to a few MiB.
const CACHED_BYTES_MAX: usize = BEARER_BYTES_MAX / 2;

/// An issuer of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// Its name in the settings.
    pub name: String,
    /// The claim `iss` of its tokens.
    pub issuer: String,
    /// What the claim `aud` of its tokens must have.
    pub audience: String,
    /// Its keys.
    pub keys: PublicKeys,
    /// Where tokens that name another key are recorded.
    pub misses: KeyMisses,
    /// How much its clock may differ from ours.
    pub clock_skew: Duration,
    /// The accounts that its tokens act for.
    pub accounts: Vec<AccountName>,
    /// The claim with the role, a text or an array of texts.
    pub role_claim: String,
    /// The values of that claim.
    pub roles: RoleValues,
}

/// Whether a token named a key that its issuer does not have: a reason to fetch its keys again. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct KeyMisses(Arc<AtomicBool>);

impl KeyMisses {
    /// Records such a token.
    pub fn record(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether there was one.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Not a part of what an issuer is.
impl PartialEq for KeyMisses {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for KeyMisses {}

/// The value of the claim for each role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleValues {
    /// That of [`Role::Delegator`].
    pub delegator: String,
    /// That of [`Role::Reader`].
    pub reader: String,
    /// That of [`Role::Contributor`].
    pub contributor: String,
    /// That of [`Role::Owner`].
    pub owner: String,
}

impl RoleValues {
    fn value(&self, role: Role) -> &str {
        match role {
            Role::Delegator => &self.delegator,
            Role::Reader => &self.reader,
            Role::Contributor => &self.contributor,
            Role::Owner => &self.owner,
        }
    }
}

impl Issuer {
    /// The highest role in the claims.
    fn role(&self, claims: &Claims) -> Option<Role> {
        let has =
            |role: &Role| claims.texts(&self.role_claim).any(|it| it == self.roles.value(*role));
        Role::ALL.into_iter().rev().find(has)
    }
}

/// The issuers of a process, and the tokens that were verified with their keys. A reload makes a new value, so that no
/// token remains verified by an earlier one.
pub struct Issuers {
    issuers: Vec<Issuer>,
    verified: Cache<String, Arc<VerifiedBearer>>,
}

/// The user of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BearerUser {
    /// The claim `iss`.
    pub issuer: String,
    /// The claim `oid`, or without it `sub`.
    pub id: String,
    /// The role.
    pub role: Role,
}

/// A token with a valid signature, of an issuer by its index.
#[derive(Debug)]
struct VerifiedBearer {
    issuer: usize,
    role: Role,
    user: Option<String>,
    starts: Option<Ticks>,
    expires: Ticks,
}

impl Default for Issuers {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// Prints nothing of the tokens, which are secrets.
impl fmt::Debug for Issuers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuers").field(&self.issuers).finish()
    }
}

impl PartialEq for Issuers {
    fn eq(&self, other: &Self) -> bool {
        self.issuers == other.issuers
    }
}

impl Eq for Issuers {}

impl Issuers {
    /// These issuers; `iss` of each must be unique.
    #[must_use]
    pub fn new(issuers: Vec<Issuer>) -> Self {
        Self { issuers, verified: Cache::new(TOKENS_MAX) }
    }

    /// Every issuer.
    pub fn iter(&self) -> impl Iterator<Item = &Issuer> {
        self.issuers.iter()
    }

    /// The caller that a token authenticates, in the account `named`; without a name, in the only account of the
    /// issuer.
    ///
    /// # Errors
    /// [`Reason::InvalidAuthenticationInfo`] for an invalid token, [`Reason::AuthorizationPermissionMismatch`] for one
    /// without a role, [`Reason::AuthorizationFailure`] for another account.
    pub fn caller(
        &self,
        token: &str,
        named: Option<&str>,
        accounts: &AccountSet,
        now: Ticks,
    ) -> Result<Arc<Caller>, Denied> {
        let verified = self.verified(token)?;
        let issuer = self.issuers.get(verified.issuer).ok_or_else(unknown)?;
        verified.check_time(issuer.clock_skew, now)?;
        let account = match (named, issuer.accounts.as_slice()) {
            (Some(named), accounts) => accounts.iter().find(|account| account.as_str() == named),
            (None, [account]) => Some(account),
            (None, _) => {
                let message = "trestle-account: required, since the issuer of the token acts for \
                               several accounts";
                return Err(Denied::new(Check::Form, Reason::InvalidAuthenticationInfo, message));
            }
        };
        // The same for an absent account as for one of another issuer.
        let account = account.and_then(|account| accounts.get(account.as_str()));
        let account = account.ok_or_else(|| {
            let message = "the issuer of the token does not act for this account";
            Denied::new(Check::Account, Reason::AuthorizationFailure, message)
        })?;
        if account.is_disabled {
            return Err(Denied::disabled(account));
        }
        let authority = Authority::Role(verified.role);
        Ok(Arc::new(Caller::new(account.name.clone(), authority)))
    }

    /// The user of a token that authenticated a caller.
    ///
    /// # Errors
    /// [`Reason::AuthorizationFailure`] for a token without the claim, and those of [`Issuers::caller`].
    pub fn user(&self, token: &str) -> Result<BearerUser, Denied> {
        let verified = self.verified(token)?;
        let issuer = self.issuers.get(verified.issuer).ok_or_else(unknown)?.issuer.clone();
        let id = verified.user.clone().ok_or_else(|| {
            let message = format!(
                "bearer token: the claim `oid`, or without it `sub`, must be 1 to {USER_BYTES_MAX} visible ASCII \
                 characters: it names the user of a delegation key"
            );
            Denied::new(Check::Operation, Reason::AuthorizationFailure, message)
        })?;
        Ok(BearerUser { issuer, id, role: verified.role })
    }

    /// Whether the issuer with this claim `iss` acts for an account.
    pub(crate) fn acts_for(&self, issuer: &str, account: &str) -> bool {
        let found = self.issuers.iter().find(|it| it.issuer == issuer);
        found.is_some_and(|it| it.accounts.iter().any(|name| name.as_str() == account))
    }

    /// When a token expires; none for an invalid one.
    pub(crate) fn expiry_of(&self, token: &str) -> Option<Ticks> {
        let verified = self.verified(token).ok()?;
        Some(verified.expires.after(self.issuers.get(verified.issuer)?.clock_skew))
    }

    /// The token with a valid signature, whenever it is valid.
    fn verified(&self, token: &str) -> Result<Arc<VerifiedBearer>, Denied> {
        if let Some(verified) = self.verified.get(token) {
            return Ok(verified);
        }
        let verified = Arc::new(self.verify(token)?);
        if token.len() <= CACHED_BYTES_MAX {
            self.verified.insert(token.to_owned(), Arc::clone(&verified));
        }
        Ok(verified)
    }

    fn verify(&self, token: &str) -> Result<VerifiedBearer, Denied> {
        let jwt = Jwt::parse(token).map_err(|rule| invalid(Check::Form, rule))?;
        let fails = |rule: &str| Err(invalid(Check::Signature, rule));
        let mut issuers = self.issuers.iter().enumerate();
        let found = issuers.find(|(_, issuer)| issuer.issuer == jwt.claims.iss);
        let (index, issuer) = found.ok_or_else(unknown)?;
        let signed = jwt.signed.as_bytes();
        match issuer.keys.verify(jwt.algorithm, jwt.key_id.as_deref(), signed, &jwt.signature) {
            None => {
                issuer.misses.record();
                return match issuer.keys.is_empty() {
                    true => fails("the keys of its issuer were not fetched yet"),
                    false => fails("`kid` must be a key of its issuer"),
                };
            }
            Some(false) => return fails("the signature is wrong"),
            Some(true) => {}
        }
        // After the signature: only tokens of the issuer get these errors.
        if !jwt.claims.is_for(&issuer.audience) {
            return fails("`aud` must have the audience of gateway.issuers");
        }
        let times = jwt.claims.expiry().zip(jwt.claims.start().ok());
        let Some((expires, starts)) = times else {
            return fails("`exp` and `nbf` must be seconds since 1970");
        };
        let role = issuer.role(&jwt.claims).ok_or_else(|| {
            let claim = &issuer.role_claim;
            let message =
                format!("bearer token: the claim `{claim}` must have a role of its issuer");
            Denied::new(Check::Operation, Reason::AuthorizationPermissionMismatch, message)
        })?;
        let user = jwt.claims.user().map(str::to_owned);
        Ok(VerifiedBearer { issuer: index, role, user, starts, expires })
    }
}

impl VerifiedBearer {
    fn check_time(&self, skew: Duration, now: Ticks) -> Result<(), Denied> {
        if now >= self.expires.after(skew) {
            return Err(invalid(Check::Time, "the token expired: `exp` must be in the future"));
        }
        if self.starts.is_some_and(|starts| now.after(skew) < starts) {
            return Err(invalid(Check::Time, "the token is not valid yet: `nbf` is in the future"));
        }
        Ok(())
    }
}

/// Rejects a token that others on the network could read, before it is checked.
///
/// # Errors
/// [`Reason::AuthorizationProtocolMismatch`].
pub fn check_private(peer: &Peer, allows_plaintext: bool) -> Result<(), Denied> {
    if peer.tls.is_some() || peer.ip().is_loopback() || allows_plaintext {
        return Ok(());
    }
    let message = "authorization: a bearer token must not be sent in plain text from another machine: use https, \
                   or set gateway.allow_plaintext_keys in a private network";
    Err(Denied::new(Check::Protocol, Reason::AuthorizationProtocolMismatch, message))
}

/// The error of a token of another issuer.
fn unknown() -> Denied {
    invalid(Check::Signature, "`iss` must be an issuer in gateway.issuers")
}

fn invalid(check: Check, rule: &str) -> Denied {
    let message = format!("authorization: bearer token: {rule}");
    Denied::new(check, Reason::InvalidAuthenticationInfo, message)
}
