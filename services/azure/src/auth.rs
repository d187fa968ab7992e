//! Who makes a request: a key of the account that signed it, or a shared access signature in its
//! query.
//!
//! There is no owner without credentials here, not even on loopback: unlike gRPC, a page of any
//! origin can send these requests without asking first.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::header;
use trestle_service::{
    account::{AccountSet, Signature},
    caller::Caller,
    clock::Ticks,
    fault::Reason,
    layer::credentials::Identity,
    sas::{self, Check, Denial, Named, Resource},
    shared_key::{Scheme, queue, table},
};

use crate::{head::Head, protocol::Signing};

/// The header with the date of a request, which counts before `Date`.
const DATE: &str = "x-ms-date";
/// What the path of a read-only replica has more than that of its account.
const SECONDARY: &str = "-secondary";

/// The caller that the credentials of a request make.
///
/// # Errors
/// Why they make none; the same for an account that is not there as for a wrong signature.
pub(crate) fn caller(head: &Head, signing: Signing, identity: &Identity) -> Result<Caller, Denial> {
    let (accounts, now) = (identity.accounts.now(), identity.clock.now());
    let mut values = head.headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        let token = token(head);
        if token.is_empty() {
            let message = "the request has no credentials: a header `Authorization` or a shared \
                           access signature is required";
            let reason = Reason::NoAuthenticationInformation;
            return Err(Denial::new(Check::Form, reason, message));
        }
        let named = Named { account: Some(head.account.as_str()), resource: named(head, signing) };
        return sas::verify(&token, named, &accounts, now, &head.peer);
    };
    if values.next().is_some() {
        return Err(malformed("must not be there more than once"));
    }
    let value = value.to_str().map_err(|_| malformed("must be visible ASCII"))?;
    let authorization = Authorization::parse(value)?;
    signed(head, signing, authorization, &accounts, now)
}

/// What the address of a request says that a signature is over, where that does not say so itself.
fn named(head: &Head, signing: Signing) -> Option<Resource> {
    // Where no queue is named, no signature over a queue fits, and it is refused as a wrong one.
    let first = head.path.trim_start_matches('/').split('/').next().unwrap_or_default();
    (signing == Signing::Queue).then(|| Resource::Queue(first.to_owned()))
}

/// The header of a request that is signed with a key.
#[derive(Debug, Clone, Copy)]
struct Authorization<'a> {
    scheme: Scheme,
    account: &'a str,
    signature: Signature,
}

impl<'a> Authorization<'a> {
    fn parse(value: &'a str) -> Result<Self, Denial> {
        let known = "must be `SharedKey` or `SharedKeyLite`, and account:signature";
        let (scheme, rest) = value.trim().split_once(' ').ok_or_else(|| malformed(known))?;
        let scheme = match scheme {
            "SharedKey" => Scheme::Full,
            "SharedKeyLite" => Scheme::Lite,
            _ => return Err(malformed(known)),
        };
        let (account, signature) = rest.trim().split_once(':').ok_or_else(|| malformed(known))?;
        let decoded = STANDARD.decode(signature).ok();
        let signature = decoded.and_then(|bytes| Signature::try_from(bytes).ok());
        // What is no signature at all is treated as a wrong one, as Azure does.
        let signature = signature.unwrap_or_default();
        Ok(Self { scheme, account, signature })
    }
}

fn signed(
    head: &Head,
    signing: Signing,
    authorization: Authorization<'_>,
    accounts: &AccountSet,
    now: Ticks,
) -> Result<Caller, Denial> {
    let Authorization { scheme, account, signature } = authorization;
    let own_path = head.uri.path();
    // Clients sign the path of a replica either as they send it, or as that of the account.
    let primary = head.is_secondary.then(|| own_path.replacen(SECONDARY, "", 1));
    let paths = [Some(own_path), primary.as_deref()];
    let is_signed = paths.into_iter().flatten().any(|path| match signing {
        Signing::Table => of_table(head, scheme, path).verify(account, &signature, accounts, now),
        // It knows the ways in which a replica is signed itself.
        Signing::Queue => of_queue(head, scheme).verify(account, &signature, accounts, now),
    });
    let found = accounts.get(account).filter(|_| is_signed && account == head.account.as_str());
    match found {
        Some(found) if found.is_disabled => Err(Denial::disabled(found)),
        Some(found) => Ok(Caller::owner(found.name.clone())),
        None => Err(Denial::unknown()),
    }
}

fn of_queue(head: &Head, scheme: Scheme) -> queue::Signed<'_> {
    let path = head.uri.path();
    let query = head.uri.query().unwrap_or_default();
    queue::Signed { scheme, method: head.method.as_str(), headers: &head.headers, path, query }
}

fn of_table<'a>(head: &'a Head, scheme: Scheme, path: &'a str) -> table::Signed<'a> {
    table::Signed {
        scheme,
        method: head.method.as_str(),
        content_md5: head.header("content-md5").unwrap_or_default(),
        content_type: head.header(header::CONTENT_TYPE).unwrap_or_default(),
        date: head.header(DATE).or(head.header(header::DATE)).unwrap_or_default(),
        path,
        comp: head.params.get("comp"),
    }
}

/// The fields of a shared access signature out of the query, as they were sent; empty where there
/// is no signature.
fn token(head: &Head) -> String {
    if head.params.get("sig").is_none() {
        return String::new();
    }
    let pairs = head.uri.query().unwrap_or_default().split('&');
    let fields = pairs.filter(|pair| {
        let name = pair.split_once('=').map_or(*pair, |(name, _)| name);
        sas::is_field(name)
    });
    fields.collect::<Vec<_>>().join("&")
}

fn malformed(rule: &str) -> Denial {
    let message = format!("authorization: {rule}");
    Denial::new(Check::Form, Reason::InvalidAuthenticationInfo, message)
}
