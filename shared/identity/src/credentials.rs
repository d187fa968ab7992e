//! Authentication: reads the credentials of a call, and determines its caller.
//!
//! `authorization` holds `SharedAccessSignature` and a token, `Basic` and base64 of account and key, or `Bearer` and a
//! token of an issuer. Caller headers from a client are removed, and so are its credentials: no service behind this
//! layer sees them. The name of an account in `trestle-account` is only a hint which account the credentials belong to;
//! for a bearer token it selects one of its accounts. That of a queue in `trestle-queue` is only a hint which queue a
//! token is for.

mod basic;
mod call;
mod expiring;
mod headers;
mod revoked;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, sync::Arc};

use http::header::AUTHORIZATION;
use tower::Service;

use self::revoked::OpenCall;
pub use self::{call::Call, revoked::end_when_revoked};
use crate::{
    account::{Account, Accounts},
    caller::{Authority, Caller},
    ending::end_call,
    public_key::{AllowedPage, PageAccount, PrivateHosts, RequestSource},
    sas::{Denied, VerifiedTokens},
};
use trestle_model::{fault::Fault, time::Clock};
use trestle_rpc::layer::middleware::{Middleware, MiddlewareLayer};
use trestle_rpc::layer::{Request, Response, ResponseFuture, error_response};
use trestle_rpc::peer::Peer;
use trestle_rpc::quota::CallQuotas;

/// The configuration of authentication. Clones share the accounts.
#[derive(Clone)]
pub struct Identity {
    /// The accounts.
    pub accounts: Accounts,
    /// The wall clock, and not the service time of a store: clients and issuers of tokens wrote their times by it. A
    /// service time that slews after a step would reject valid tokens, and accept expired ones, for hours.
    pub clock: Arc<dyn Clock>,
    /// Whether callers without credentials, from loopback or from this process, are the owner of
    /// the development account.
    pub is_open: bool,
    /// Whether account keys and bearer tokens are accepted in plain text from other machines.
    pub allows_plaintext_keys: bool,
    /// The hosts for which the public key of the development account counts.
    pub private_hosts: PrivateHosts,
    /// The signatures that were verified before. Clones share them.
    pub verified: Arc<VerifiedTokens>,
    /// The quotas of accounts on calls; none: nothing is limited.
    pub quotas: Option<Arc<CallQuotas>>,
}

impl Identity {
    /// Authentication by `accounts` and a wall clock.
    #[must_use]
    pub fn new(accounts: Accounts, clock: Arc<dyn Clock>, is_open: bool) -> Self {
        let private_hosts = PrivateHosts::default();
        let (allows_plaintext_keys, verified, quotas) = (false, Arc::default(), None);
        Self { accounts, clock, is_open, allows_plaintext_keys, private_hosts, verified, quotas }
    }

    /// Checks a caller that the public key of the development account authenticates, or no key: every web page has
    /// both, so such a request must not be one of a page of others.
    ///
    /// # Errors
    /// See [`PrivateHosts::check`].
    pub fn check_public_key(
        &self,
        caller: &Caller,
        source: &RequestSource<'_>,
    ) -> Result<(), Denied> {
        if !caller.account.is_development() {
            return Ok(());
        }
        // A bearer token has another key.
        let is_other = matches!(caller.authority, Authority::Anonymous | Authority::Role(_));
        let accounts = self.accounts.now();
        let account = accounts.get(caller.account.as_str()).filter(|_| !is_other);
        if account.is_some_and(Account::has_public_key) {
            self.private_hosts.check(source)?;
        }
        Ok(())
    }
}

/// Puts a caller on every request, or rejects it.
pub type CredentialsLayer = MiddlewareLayer<Credentials>;

/// See the module.
#[derive(Clone)]
pub struct Credentials {
    identity: Identity,
}

/// Checks credentials with `identity`.
#[must_use]
pub fn layer(identity: Identity) -> CredentialsLayer {
    MiddlewareLayer(Credentials { identity })
}

impl Middleware for Credentials {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let Identity { accounts, clock, is_open, allows_plaintext_keys, verified, .. } =
            &self.identity;
        let peer = Peer::of(request.extensions());
        let path = request.uri().path();
        let (headers, is_open) = (request.headers(), *is_open);
        let allows_plaintext_keys = *allows_plaintext_keys;
        let call = Call { headers, peer: &peer, is_open, allows_plaintext_keys, path };
        let now = clock.now();
        let source = RequestSource {
            method: request.method(),
            is_read: request.method().is_safe(),
            uri: request.uri(),
            headers: request.headers(),
            is_allowed_page: request.extensions().get::<AllowedPage>().is_some(),
        };
        // Before the accounts are read, so that no change is missed between.
        let changes = revoked::is_long(path).then(|| accounts.subscribe());
        let current = accounts.now();
        let caller = call.caller(&current, verified, now).and_then(|caller| {
            // Before any rejection of the caller: the rules of other accounts must not show it to the page.
            if let Some(page) = request.extensions().get::<PageAccount>() {
                page.0.get_or_init(|| caller.account.clone());
            }
            self.identity.check_public_key(&caller, &source)?;
            Ok(caller)
        });
        let ends_in = match caller {
            Ok(_) => call.stream_ends_in(&current, now),
            Err(_) => None,
        };
        let end = caller.as_ref().ok().zip(changes).map(|(caller, changes)| {
            let verified = Arc::clone(verified);
            OpenCall::new(&call, Arc::clone(caller), verified, now).end(changes)
        });
        let caller = caller.map_err(Fault::from).and_then(|caller| {
            caller.take_share(&mut request, self.identity.quotas.as_ref())?;
            Ok(caller)
        });
        match caller {
            Ok(caller) => {
                request.headers_mut().remove(AUTHORIZATION);
                caller.insert(&mut request);
                let answer = match end {
                    None => inner.call(request),
                    Some(end) => end_call(inner.call(request), end),
                };
                match ends_in {
                    None => answer,
                    Some(within) => expiring::answer(answer, within),
                }
            }
            Err(fault) => Box::pin(async move { Ok(error_response(fault)) }),
        }
    }
}
