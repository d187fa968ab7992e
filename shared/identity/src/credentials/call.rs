//! The caller that the credentials of a call authenticate.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;

use super::basic::basic;
use crate::{
    account::{Account, AccountSet},
    authorize::NO_CREDENTIALS,
    bearer::check_private,
    caller::{Authority, Caller},
    sas::{self, Check, Denied, Named, Use, VerifiedTokens},
};
use trestle_model::{fault::Reason, name::AccountName, time::Ticks};
use trestle_rpc::{peer::Peer, upstream::kind::kind_of};

/// How the paths of the methods on blobs begin.
const BLOBS: &str = "/trestle.blob.v1.BlobService/";
/// Nanoseconds of a tick.
const NANOS_PER_TICK: u64 = 100;

/// The parts of a call that determine its caller.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The peer of its connection.
    pub peer: &'a Peer,
    /// Whether local callers need no credentials.
    pub is_open: bool,
    /// Whether an account key or a bearer token is accepted in plain text from another machine.
    pub allows_plaintext_keys: bool,
    /// The path of its method.
    pub path: &'a str,
}

impl Call<'_> {
    /// The caller that the credentials authenticate.
    ///
    /// # Errors
    /// Why they are invalid; the same for an absent account as for a wrong key or signature.
    pub fn caller(
        &self,
        accounts: &AccountSet,
        verified: &VerifiedTokens,
        now: Ticks,
    ) -> Result<Arc<Caller>, Denied> {
        let named = self.named_account()?;
        match self.authorization()? {
            None => self.without_credentials(named, accounts).map(Arc::new),
            Some(("basic", value)) => {
                self.reject_plaintext_key()?;
                basic(value, named, accounts).map(Arc::new)
            }
            Some(("bearer", token)) => {
                check_private(self.peer, self.allows_plaintext_keys)?;
                accounts.issuers().caller(token.trim(), named, accounts, now)
            }
            Some((_, token)) => {
                let named = Named { account: named, resource: self.named_resource()? };
                verified.verify(token, named, accounts, &Use { now, peer: self.peer })
            }
        }
    }

    /// How long an authenticated stream may last: to the expiry of its signature or token. None for unary
    /// calls, which end soon, and for credentials without an expiry.
    pub(super) fn stream_ends_in(&self, accounts: &AccountSet, now: Ticks) -> Option<Duration> {
        let (scheme, token) = self.authorization().ok()??;
        if kind_of(self.path).is_unary {
            return None;
        }
        let expiry = match scheme {
            "sharedaccesssignature" => sas::expiry_of(token, self.named_resource().ok()?)?,
            "bearer" => accounts.issuers().expiry_of(token.trim())?,
            _ => return None,
        };
        let ticks = expiry.get().saturating_sub(now.get());
        Some(Duration::from_nanos(ticks.saturating_mul(NANOS_PER_TICK)))
    }

    /// Rejects a key that others on the network could read, before it is checked: the error is the same for a wrong
    /// key.
    fn reject_plaintext_key(&self) -> Result<(), Denied> {
        let is_private = self.peer.tls.is_some() || self.peer.ip().is_loopback();
        if is_private || self.allows_plaintext_keys {
            return Ok(());
        }
        let message = "authorization: `Basic` has an account key, which must not be sent in plain text from \
                       another machine: use https or a shared access signature, or set \
                       gateway.allow_plaintext_keys in a private network";
        Err(Denied::new(Check::Protocol, Reason::AuthorizationProtocolMismatch, message))
    }

    fn without_credentials(
        &self,
        named: Option<&str>,
        accounts: &AccountSet,
    ) -> Result<Caller, Denied> {
        let account = AccountName::development();
        let is_named = named.is_none_or(|named| named == account.as_str());
        let exists = accounts.get(account.as_str()).is_some_and(|account| !account.is_disabled);
        let is_local = self.peer.ip().is_loopback();
        if self.is_open && is_local && is_named && exists {
            return Ok(Caller::owner(account));
        }
        let stated = named.and_then(|named| accounts.get(named));
        let is_allowed = |account: &&Account| account.allows_public_access && !account.is_disabled;
        if let Some(account) = stated.filter(is_allowed).filter(|_| self.may_be_public()) {
            let (account, authority) = (account.name.clone(), Authority::Anonymous);
            return Ok(Caller::new(account, authority));
        }
        Err(Denied::new(Check::Form, Reason::NoAuthenticationInformation, NO_CREDENTIALS))
    }

    /// Whether the method reads blobs, which a container may have opened to every caller. The service decides.
    fn may_be_public(&self) -> bool {
        self.path.starts_with(BLOBS) && kind_of(self.path).is_read
    }
}
