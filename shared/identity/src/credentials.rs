//! Authentication: reads the credentials of a call, and determines its caller.
//!
//! `authorization` holds `SharedAccessSignature` and a token, or `Basic` and base64 of account and
//! key. Caller headers from a client are removed, and so are its credentials: no service behind this
//! layer sees them. The name of an account in `trestle-account` is only a hint which account the
//! credentials belong to, that of a queue in `trestle-queue` only a hint which queue a token is for.

mod expiring;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, net::IpAddr, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderMap,
    header::{AUTHORIZATION, HOST, ORIGIN},
    uri::Authority,
};
use tower::Service;

use crate::{
    account::{AccountSet, Accounts},
    caller::{ACCOUNT, ACCOUNT_HEADER, Caller, QUEUE, QUEUE_HEADER},
    sas::{self, Check, Denial, Named, Resource, TOKEN_BYTES_MAX},
};
use trestle_service::{
    clock::{Clock, Ticks},
    fault::{Reason, Violations},
    layer::{
        Answer, Request, Response,
        frame::{Step, StepLayer},
        refusal,
    },
    name::{AccountName, QueueName},
    peer::Peer,
    upstream::kind::kind_of,
};

/// Longest accepted value of `authorization`, in bytes: the longest token and its scheme.
const AUTHORIZATION_BYTES_MAX: usize = TOKEN_BYTES_MAX + 64;

/// Nanoseconds of a tick.
const NANOS_PER_TICK: u64 = 100;

/// The configuration of authentication. Clones share the accounts.
#[derive(Clone)]
pub struct Identity {
    /// The accounts.
    pub accounts: Accounts,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Whether callers without credentials, from loopback or from this process, are the owner of
    /// the development account.
    pub is_open: bool,
}

/// Puts a caller on every request, or refuses it.
pub type CredentialsLayer = StepLayer<Credentials>;

/// See the module.
#[derive(Clone)]
pub struct Credentials {
    identity: Identity,
}

/// Checks credentials with `identity`.
#[must_use]
pub fn layer(identity: Identity) -> CredentialsLayer {
    StepLayer(Credentials { identity })
}

impl Step for Credentials {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> Answer
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = Answer>,
    {
        let Identity { accounts, clock, is_open } = &self.identity;
        let peer = Peer::of(request.extensions());
        let call = Call { headers: request.headers(), peer: &peer, is_open: *is_open };
        let now = clock.now();
        match call.caller(&accounts.now(), now) {
            Ok(caller) => {
                let ends_in = call.stream_ends_in(request.uri().path(), now);
                request.headers_mut().remove(AUTHORIZATION);
                Arc::new(caller).insert(&mut request);
                let answer = inner.call(request);
                match ends_in {
                    None => answer,
                    Some(within) => expiring::answer(answer, within),
                }
            }
            Err(denial) => Box::pin(async move { Ok(refusal(denial.into())) }),
        }
    }
}

/// The parts of a call that determine its caller.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The peer of its connection.
    pub peer: &'a Peer,
    /// Whether local callers need no credentials.
    pub is_open: bool,
}

impl Call<'_> {
    /// The caller that the credentials authenticate.
    ///
    /// # Errors
    /// Why they are invalid; the same for an absent account as for a wrong key or signature.
    pub fn caller(&self, accounts: &AccountSet, now: Ticks) -> Result<Caller, Denial> {
        let named = self.named_account()?;
        match self.authorization()? {
            None => self.without_credentials(named, accounts),
            Some(("basic", value)) => basic(value, named, accounts),
            Some((_, token)) => {
                let named = Named { account: named, resource: self.named_queue()? };
                sas::verify(token, named, accounts, now, self.peer)
            }
        }
    }

    /// How long an authenticated stream may last: to the expiry of its signature. None for unary
    /// calls, which end soon, and for credentials without an expiry.
    fn stream_ends_in(&self, path: &str, now: Ticks) -> Option<Duration> {
        let Ok(Some(("sharedaccesssignature", token))) = self.authorization() else {
            return None;
        };
        if kind_of(path).is_unary {
            return None;
        }
        let expiry = sas::expiry_of(token, self.named_queue().ok()?)?;
        let ticks = expiry.get().saturating_sub(now.get());
        Some(Duration::from_nanos(ticks.saturating_mul(NANOS_PER_TICK)))
    }

    /// The queue that the call names, checked for its form only.
    fn named_queue(&self) -> Result<Option<Resource>, Denial> {
        let mut values = self.headers.get_all(QUEUE).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let is_name = |name: &&str| {
            let mut violations = Violations::default();
            QueueName::parse((*name).to_owned(), QUEUE_HEADER, &mut violations).is_some()
        };
        match value.to_str().ok().filter(is_name) {
            Some(name) if values.next().is_none() => Ok(Some(Resource::Queue(name.to_owned()))),
            _ => Err(malformed(QUEUE_HEADER, "must be one name of a queue")),
        }
    }

    /// The account that the call names, checked for its form only.
    fn named_account(&self) -> Result<Option<&str>, Denial> {
        let mut values = self.headers.get_all(ACCOUNT).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let name = value.to_str().ok().filter(|name| AccountName::parse(name).is_some());
        match name {
            Some(name) if values.next().is_none() => Ok(Some(name)),
            _ => {
                let rule = "must be one name of 3 to 24 lower-case letters and digits";
                Err(malformed(ACCOUNT_HEADER, rule))
            }
        }
    }

    /// The scheme, `basic` or `sharedaccesssignature`, and what follows it.
    fn authorization(&self) -> Result<Option<(&'static str, &str)>, Denial> {
        let fails = |rule: &str| Err(malformed("authorization", rule));
        let mut values = self.headers.get_all(AUTHORIZATION).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return fails("must not be there more than once");
        }
        if value.len() > AUTHORIZATION_BYTES_MAX {
            return fails(&format!("must have at most {AUTHORIZATION_BYTES_MAX} bytes"));
        }
        let Ok(text) = value.to_str() else {
            return fails("must be visible ASCII");
        };
        // The error does not repeat the scheme: it could be a token without a scheme.
        let known =
            "must be `SharedAccessSignature` and a token, or `Basic` and base64 of account:key";
        let Some((scheme, rest)) = text.split_once(' ') else {
            return fails(known);
        };
        let schemes = ["basic", "sharedaccesssignature"];
        match schemes.into_iter().find(|known| scheme.eq_ignore_ascii_case(known)) {
            Some(scheme) => Ok(Some((scheme, rest))),
            None => fails(known),
        }
    }

    fn without_credentials(
        &self,
        named: Option<&str>,
        accounts: &AccountSet,
    ) -> Result<Caller, Denial> {
        let account = AccountName::development();
        let is_meant = named.is_none_or(|named| named == account.as_str());
        let is_there = accounts.get(account.as_str()).is_some_and(|account| !account.is_disabled);
        let is_local = self.peer.ip().is_loopback() && !self.is_page_by_other_name();
        if self.is_open && is_local && is_meant && is_there {
            return Ok(Caller::owner(account));
        }
        let message = "the call has no credentials: `authorization` is required";
        Err(Denial::new(Check::Form, Reason::NoAuthenticationInformation, message))
    }

    /// Whether a browser page calls, and addresses this machine by a foreign host name.
    ///
    /// The owner of a domain can point it at the user's own machine once a page is loaded (DNS
    /// rebinding). The browser then treats the call as same-origin, and checks no cross-origin
    /// rule.
    fn is_page_by_other_name(&self) -> bool {
        let host = self.headers.get(HOST).filter(|_| self.headers.contains_key(ORIGIN));
        host.is_some_and(|host| !host.to_str().is_ok_and(is_own_name))
    }
}

/// Whether a host, its port aside, is `localhost` or an address of loopback.
fn is_own_name(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn malformed(header: &str, rule: &str) -> Denial {
    let message = format!("{header}: {rule}");
    Denial::new(Check::Form, Reason::InvalidAuthenticationInfo, message)
}

fn basic(value: &str, named: Option<&str>, accounts: &AccountSet) -> Result<Caller, Denial> {
    let read = || {
        let text = String::from_utf8(STANDARD.decode(value.trim()).ok()?).ok()?;
        let (name, key) = text.split_once(':')?;
        Some((name.to_owned(), STANDARD.decode(key).ok()?))
    };
    let Some((name, key)) = read() else {
        let rule = "`Basic` must be followed by base64 of account:key, the key in base64 itself";
        return Err(malformed("authorization", rule));
    };
    let account = accounts.with_key(&name, &key);
    let is_meant = named.is_none_or(|named| named == name);
    let account = account.filter(|_| is_meant).ok_or_else(Denial::unknown)?;
    if account.is_disabled {
        return Err(Denial::disabled(account));
    }
    Ok(Caller::owner(account.name.clone()))
}
