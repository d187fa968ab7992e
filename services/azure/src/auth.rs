//! Authentication of a request: a signature with a key of the account, a shared access signature in its query, or a
//! bearer token.
//!
//! A request without credentials is never the owner, not even on loopback: unlike gRPC, a page
//! of any origin can send these requests without a CORS preflight.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{Method, header};
use trestle_identity::{
    account::{AccountSet, Signature},
    authorize::NO_CREDENTIALS,
    bearer::check_private,
    caller::{Authority, Caller},
    credentials::Identity,
    sas::{self, Check, Denied, Named, NamedResource, Use},
    shared_key::{Scheme, SignedRequest},
    spec::ServiceSpec,
};
use trestle_model::fault::{Fault, Reason};
use trestle_model::time::Ticks;

use crate::{blob::route::resource, head::RequestHead, params::Params};

/// The caller that the credentials of a request authenticate.
///
/// # Errors
/// Why they are invalid; the same for an absent account as for a wrong signature.
pub(crate) fn caller(
    head: &RequestHead,
    service: &'static ServiceSpec,
    identity: &Identity,
) -> Result<Arc<Caller>, Denied> {
    verify(head, service, identity, (&identity.accounts.now(), identity.clock.now()))
}

/// The same for these accounts, at this time.
///
/// # Errors
/// As above.
pub(crate) fn verify(
    head: &RequestHead,
    service: &'static ServiceSpec,
    identity: &Identity,
    (accounts, now): (&AccountSet, Ticks),
) -> Result<Arc<Caller>, Denied> {
    if head.is_website {
        return visitor(head, accounts).map(Arc::new);
    }
    let mut values = head.headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        let token = token(head.uri.query().unwrap_or_default(), &head.params);
        if token.is_empty() {
            if let Some(anonymous) = anonymous(head, service, accounts) {
                return Ok(Arc::new(anonymous));
            }
            let reason = Reason::NoAuthenticationInformation;
            return Err(Denied::new(Check::Form, reason, NO_CREDENTIALS));
        }
        let resource = named(&head.path, &head.params, service);
        return by_token(&token, resource, head, identity, (accounts, now));
    };
    if values.next().is_some() {
        return Err(malformed("must not be repeated"));
    }
    let value = value.to_str().map_err(|_| malformed("must be visible ASCII"))?;
    if let Some(token) = bearer_token(value) {
        check_private(&head.peer, identity.allows_plaintext_keys)?;
        return accounts.issuers().caller(token, Some(head.account.as_str()), accounts, now);
    }
    let authorization = Authorization::parse(value)?;
    signed(head, service, authorization, accounts, now).map(Arc::new)
}

/// The caller of a request by a shared access signature.
fn by_token(
    token: &str,
    resource: Option<NamedResource>,
    head: &RequestHead,
    identity: &Identity,
    (accounts, now): (&AccountSet, Ticks),
) -> Result<Arc<Caller>, Denied> {
    let named = Named { account: Some(head.account.as_str()), resource };
    let usage = Use { now, peer: &head.peer };
    identity.verified.verify(token, named, accounts, &usage).map_err(of_signature)
}

/// A caller without credentials, of a service whose containers may be open to every client, where the account allows
/// it. The service decides what that caller may read.
fn anonymous(
    head: &RequestHead,
    service: &'static ServiceSpec,
    accounts: &AccountSet,
) -> Option<Caller> {
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let account = accounts.get(head.account.as_str()).filter(|_| is_read && service.has_paths)?;
    let is_allowed = account.allows_public_access && !account.is_disabled;
    is_allowed.then(|| Caller::new(account.name.clone(), Authority::Anonymous))
}

/// The caller of a request to a website, whatever credentials it has: as Azure has it, a website is public also where
/// the account allows no public containers, and `blob::website` reads nothing else.
fn visitor(head: &RequestHead, accounts: &AccountSet) -> Result<Caller, Denied> {
    let account = accounts.get(head.account.as_str()).filter(|account| !account.is_disabled);
    let account = account.ok_or_else(|| {
        let message = "there is no website at this address";
        Denied::new(Check::Form, Reason::ResourceNotFound, message)
    })?;
    Ok(Caller::new(account.name.clone(), Authority::Anonymous))
}

/// The resource of a signature by the address of the request, if the signature does not contain it.
fn named(path: &str, params: &Params, service: &'static ServiceSpec) -> Option<NamedResource> {
    if service.name_field.is_some() {
        return None;
    }
    // Without a name no signature for a resource matches, and it is rejected as a wrong one.
    let name = match service.has_paths {
        true => resource(path, params).unwrap_or_default(),
        false => path.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned(),
    };
    let parameter = |names: &[&str]| names.iter().find_map(|name| params.get(name));
    let fields = service.fields.iter();
    let fields = fields.filter_map(|field| Some((field.name, parameter(field.of_request)?)));
    Some(NamedResource { service, name, fields: fields.collect() })
}

/// The URL of the source of a copy, in the account of the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignedUrl<'a> {
    /// The path after the account, as it was sent.
    pub(crate) path: &'a str,
    /// The query, as it was sent.
    pub(crate) query: &'a str,
}

/// The authorization of the signature in the URL of the source of a copy; none where it has no signature.
///
/// # Errors
/// Why the signature is invalid.
pub(crate) fn of_source(
    url: SignedUrl<'_>,
    head: &RequestHead,
    service: &'static ServiceSpec,
    identity: &Identity,
) -> Result<Option<Authority>, Fault> {
    let params = Params::parse(url.query)?;
    let token = token(url.query, &params);
    if token.is_empty() {
        return Ok(None);
    }
    let resource = named(url.path, &params, service);
    let at = (&*identity.accounts.now(), identity.clock.now());
    let source = by_token(&token, resource, head, identity, at)?;
    match source.authority.denied() {
        Some(denied) => Err(denied.clone()),
        None => Ok(Some(source.authority.clone())),
    }
}

/// The bearer token in a header `Authorization`.
pub(crate) fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The header of a request that is signed with a key.
#[derive(Debug, Clone, Copy)]
struct Authorization<'a> {
    scheme: Scheme,
    account: &'a str,
    signature: Signature,
}

impl<'a> Authorization<'a> {
    fn parse(value: &'a str) -> Result<Self, Denied> {
        const RULE: &str = "must be `SharedKey` or `SharedKeyLite`, and account:signature, or `Bearer` and a token";
        let (scheme, rest) = value.trim().split_once(' ').ok_or_else(|| malformed(RULE))?;
        let scheme = match scheme {
            "SharedKey" => Scheme::Full,
            "SharedKeyLite" => Scheme::Lite,
            _ => return Err(malformed(RULE)),
        };
        let (account, signature) = rest.trim().split_once(':').ok_or_else(|| malformed(RULE))?;
        let decoded = STANDARD.decode(signature).ok();
        let signature = decoded.and_then(|bytes| Signature::try_from(bytes).ok());
        // A malformed signature is treated as a wrong one, as Azure does.
        let signature = signature.unwrap_or_default();
        Ok(Self { scheme, account, signature })
    }
}

fn signed(
    head: &RequestHead,
    service: &'static ServiceSpec,
    authorization: Authorization<'_>,
    accounts: &AccountSet,
    now: Ticks,
) -> Result<Caller, Denied> {
    let Authorization { scheme, account, signature } = authorization;
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    let (method, headers) = (head.method.as_str(), &head.headers);
    let request = SignedRequest { service, scheme, method, headers, path, query };
    request.verify(account, &signature, accounts, now)?;
    let found = accounts.get(account).filter(|_| account == head.account.as_str());
    match found {
        Some(found) if found.is_disabled => Err(Denied::disabled(found)),
        Some(found) => Ok(Caller::owner(found.name.clone())),
        None => Err(Denied::unknown()),
    }
}

/// The fields of a shared access signature in the query, as they were sent; empty without a
/// signature.
fn token(query: &str, params: &Params) -> String {
    if params.get("sig").is_none() {
        return String::new();
    }
    let pairs = query.split('&');
    let fields = pairs.filter(|pair| {
        let name = pair.split_once('=').map_or(*pair, |(name, _)| name);
        sas::is_field(name)
    });
    fields.collect::<Vec<_>>().join("&")
}

/// The error of a rejected shared access signature. Malformed fields return the error of a wrong
/// signature, as in Azure: only a malformed header `Authorization` has an error of its own.
fn of_signature(denied: Denied) -> Denied {
    match denied.check {
        Check::Form => Denied { reason: Reason::AuthenticationFailed, ..denied },
        _ => denied,
    }
}

fn malformed(rule: &str) -> Denied {
    let message = format!("authorization: {rule}");
    Denied::new(Check::Form, Reason::InvalidAuthenticationInfo, message)
}

#[cfg(test)]
mod tests;
