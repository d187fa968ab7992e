//! Ends a call when the credentials that opened it are revoked: the key that they are, or that signed them, is removed
//! from its account or its issuer, or the account is removed or disabled.
//!
//! The accounts notify the calls when they change; each call verifies its credentials again then, by the time of its
//! authentication. So the call of a key that the account keeps continues, and the expiry of a signature is not checked
//! here.

use std::{future::pending, sync::Arc};

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};
use tokio::sync::watch;

use super::Call;
use crate::{
    account::AccountSet,
    caller::{ACCOUNT, Authority, Caller},
    ending::{End, end_call},
    sas::{Denied, VerifiedTokens},
    spec::SERVICES,
};
use trestle_model::{fault::Fault, time::Ticks};
use trestle_rpc::{layer::ResponseFuture, peer::Peer, upstream::kind::kind_of};

/// The credentials of a call, kept while the call runs.
pub(super) struct OpenCall {
    headers: HeaderMap,
    peer: Peer,
    is_open: bool,
    path: String,
    /// The time of the authentication.
    now: Ticks,
    caller: Arc<Caller>,
    verified: Arc<VerifiedTokens>,
}

/// Whether a call may run for longer than a change of the accounts should wait. Unary calls complete soon, except those
/// that wait for data.
pub(super) fn is_long(path: &str) -> bool {
    let kind = kind_of(path);
    !kind.is_unary || kind.may_wait
}

impl OpenCall {
    /// The call of `caller`, which was authenticated at the time `now`.
    pub(super) fn new(
        call: &Call<'_>,
        caller: Arc<Caller>,
        verified: Arc<VerifiedTokens>,
        now: Ticks,
    ) -> Self {
        Self {
            headers: credentials_of(call.headers),
            peer: call.peer.clone(),
            is_open: call.is_open,
            path: call.path.to_owned(),
            now,
            caller,
            verified,
        }
    }

    /// Completes when `accounts`, which were subscribed to before the authentication, revoke the credentials.
    pub(super) fn end(self, accounts: watch::Receiver<Arc<AccountSet>>) -> End {
        let caller = Arc::clone(&self.caller);
        end(caller, accounts, move |accounts| self.check(accounts))
    }

    fn check(&self, accounts: &AccountSet) -> Result<(), Denied> {
        let Self { headers, peer, is_open, path, .. } = self;
        // The connection was checked when the call began.
        let call = Call { headers, peer, is_open: *is_open, allows_plaintext_keys: true, path };
        call.caller(accounts, &self.verified, self.now).map(drop)
    }
}

/// Completes when `accounts` change so that `check` rejects the credentials of a caller.
fn end(
    caller: Arc<Caller>,
    mut accounts: watch::Receiver<Arc<AccountSet>>,
    check: impl Fn(&AccountSet) -> Result<(), Denied> + Send + 'static,
) -> End {
    Box::pin(async move {
        while accounts.changed().await.is_ok() {
            let current = Arc::clone(&accounts.borrow());
            if let Err(denied) = check(&current) {
                return revoked(&denied, &caller, &current);
            }
        }
        // The accounts of the process do not change any more.
        pending().await
    })
}

/// The response of a call of another protocol, which ends when `accounts` change so that `check` rejects its
/// credentials. They are subscribed to before the authentication, so that no change is missed between.
pub fn end_when_revoked(
    answer: ResponseFuture,
    caller: Arc<Caller>,
    accounts: watch::Receiver<Arc<AccountSet>>,
    check: impl Fn(&AccountSet) -> Result<(), Denied> + Send + 'static,
) -> ResponseFuture {
    end_call(answer, end(caller, accounts, check))
}

/// The headers that credentials are read from.
fn credentials_of(headers: &HeaderMap) -> HeaderMap {
    let named = SERVICES.iter().flat_map(|service| service.headers());
    let named = named.map(HeaderName::from_static);
    let mut kept = HeaderMap::new();
    for name in [AUTHORIZATION, ACCOUNT].into_iter().chain(named) {
        for value in headers.get_all(&name) {
            kept.append(name.clone(), value.clone());
        }
    }
    kept
}

/// The error of a call that ends. It may name the cause: the caller had valid credentials of the account.
fn revoked(denied: &Denied, caller: &Caller, accounts: &AccountSet) -> Fault {
    let account = accounts.get(caller.account.as_str());
    let cause = match account {
        None => "the account was removed",
        Some(account) if account.is_disabled => "the account was disabled",
        Some(_) if matches!(caller.authority, Authority::Anonymous) => {
            "the account does not allow public access any more"
        }
        Some(_) if matches!(caller.authority, Authority::Role(_)) => {
            "the token of the call is not valid any more by the settings of its issuer"
        }
        Some(_) => "the key of the call was removed from the account",
    };
    let message = format!("revoked during the call: {cause}: account=`{}`", caller.account);
    Fault::new(denied.reason, message)
}
