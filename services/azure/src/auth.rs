//! Authentication of a request: a signature with a key of the account, or a shared access signature
//! in its query.
//!
//! A request without credentials is never the owner here, not even on loopback: unlike gRPC, a page
//! of any origin can send these requests without a CORS preflight.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::header;
use trestle_identity::{
    account::{AccountSet, Signature},
    caller::Caller,
    credentials::Identity,
    sas::{self, Check, Denial, Named, Resource},
    shared_key::{Scheme, queue, table},
};
use trestle_service::{clock::Ticks, fault::Reason};

use crate::{head::Head, protocol::Signing};

/// The header with the date of a request, which takes precedence over `Date`.
const DATE: &str = "x-ms-date";
/// The suffix of the account in the path of a read-only replica.
const SECONDARY: &str = "-secondary";

/// The caller that the credentials of a request authenticate.
///
/// # Errors
/// Why they are invalid; the same for an absent account as for a wrong signature.
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
        return sas::verify(&token, named, &accounts, now, &head.peer).map_err(of_signature);
    };
    if values.next().is_some() {
        return Err(malformed("must not be there more than once"));
    }
    let value = value.to_str().map_err(|_| malformed("must be visible ASCII"))?;
    let authorization = Authorization::parse(value)?;
    signed(head, signing, authorization, &accounts, now)
}

/// The resource of a signature by the address of the request, if the signature does not contain it.
fn named(head: &Head, signing: Signing) -> Option<Resource> {
    // Without the name of a queue, no signature for a queue matches, and it is refused as a wrong
    // one.
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
        // A malformed signature is treated as a wrong one, as Azure does.
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
        // It handles the ways to sign the address of a replica itself.
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

/// The fields of a shared access signature in the query, as they were sent; empty without a
/// signature.
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

/// The error of a refused shared access signature. Malformed fields give the error of a wrong
/// signature, as in Azure: only a malformed header `Authorization` has an error of its own.
fn of_signature(denial: Denial) -> Denial {
    match denial.check {
        Check::Form => Denial { reason: Reason::AuthenticationFailed, ..denial },
        _ => denial,
    }
}

fn malformed(rule: &str) -> Denial {
    let message = format!("authorization: {rule}");
    Denial::new(Check::Form, Reason::InvalidAuthenticationInfo, message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Method, Uri};
    use tonic::body::Body;
    use trestle_identity::account::{Account, AccountKey, Accounts};
    use trestle_service::{
        clock::{Clock, ManualClock},
        layer::Request,
    };

    use super::*;

    const NOW: &str = "Sat, 21 Nov 2026 12:00:00 GMT";
    const PATH: &str = "/devstoreaccount1/mytable(PartitionKey='pk1',RowKey='a%20b')";

    fn identity(account: Account) -> Identity {
        let now = Ticks::from_unix(1_795_262_400, 0).expect("in range");
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(now));
        Identity { accounts: Accounts::new([account]), clock, is_open: true }
    }

    fn head(target: &str, headers: &[(&'static str, &str)]) -> Head {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = target.parse::<Uri>().expect("a target");
        for (name, value) in [("host", "127.0.0.1")].iter().chain(headers) {
            request.headers_mut().append(*name, value.parse().expect("a value"));
        }
        Head::take(&mut request, "table").expect("a head")
    }

    /// The header of a request for `path`, signed with the development key.
    fn signature(path: &str) -> String {
        let signed = table::Signed {
            scheme: Scheme::Full,
            method: "GET",
            content_md5: "",
            content_type: "",
            date: NOW,
            path,
            comp: None,
        };
        let made = signed.sign("devstoreaccount1", &AccountKey::development());
        format!("SharedKey devstoreaccount1:{}", STANDARD.encode(made))
    }

    fn reason(head: &Head) -> Result<String, Reason> {
        let caller = caller(head, Signing::Table, &identity(Account::development()));
        caller.map(|caller| caller.account.to_string()).map_err(|denial| denial.reason)
    }

    #[test]
    fn a_signed_request_is_authenticated_as_the_owner() {
        let authorization = signature(PATH);
        let signed = [("x-ms-date", NOW), ("authorization", authorization.as_str())];
        let lower = [("date", NOW), ("authorization", authorization.as_str())];

        assert_eq!(reason(&head(PATH, &signed)), Ok("devstoreaccount1".to_owned()));
        assert_eq!(
            reason(&head(&format!("{PATH}?$select=a"), &signed)).as_deref(),
            Ok("devstoreaccount1")
        );
        assert_eq!(reason(&head(PATH, &lower)).as_deref(), Ok("devstoreaccount1"));
        // Another path, another date, another account in the path.
        let failed = Err(Reason::AuthenticationFailed);
        assert_eq!(reason(&head("/devstoreaccount1/other", &signed)), failed);
        assert_eq!(reason(&head("/acme/mytable", &signed)), failed);
        let late = [("x-ms-date", "Sat, 21 Nov 2026 12:15:01 GMT"), signed[1]];
        assert_eq!(reason(&head(PATH, &late)), failed);
        assert_eq!(reason(&head(PATH, &signed[1..])), failed);
    }

    #[test]
    fn the_path_of_a_replica_is_signed_as_sent_or_as_that_of_the_account() {
        let path = "/devstoreaccount1-secondary/mytable";
        for signed in [path, "/devstoreaccount1/mytable"] {
            let authorization = signature(signed);
            let headers = [("x-ms-date", NOW), ("authorization", authorization.as_str())];
            assert!(reason(&head(path, &headers)).is_ok(), "{signed}");
        }
    }

    #[test]
    fn malformed_credentials_have_another_error_than_wrong_ones() {
        let of = |value: &str| reason(&head(PATH, &[("x-ms-date", NOW), ("authorization", value)]));

        for value in ["SharedKey", "Bearer x", "Basic a:b", "SharedKey devstoreaccount1", ""] {
            assert_eq!(of(value), Err(Reason::InvalidAuthenticationInfo), "{value}");
        }
        for value in [
            "SharedKey devstoreaccount1:",
            "SharedKeyLite devstoreaccount1:AAAA",
            "SharedKey nobody:x",
        ] {
            assert_eq!(of(value), Err(Reason::AuthenticationFailed), "{value}");
        }
        let twice = [("authorization", "SharedKey a:b"), ("authorization", "SharedKey a:b")];
        assert_eq!(reason(&head(PATH, &twice)), Err(Reason::InvalidAuthenticationInfo));
        assert_eq!(reason(&head(PATH, &[])), Err(Reason::NoAuthenticationInformation));
    }

    #[test]
    fn only_the_owner_learns_that_an_account_is_disabled() {
        let authorization = signature(PATH);
        let account = Account { is_disabled: true, ..Account::development() };
        let reason = |authorization: &str| {
            let head = head(PATH, &[("x-ms-date", NOW), ("authorization", authorization)]);
            caller(&head, Signing::Table, &identity(account.clone())).expect_err("refused").reason
        };

        assert_eq!(reason(&authorization), Reason::AccountIsDisabled);
        assert_eq!(reason("SharedKey devstoreaccount1:AAAA"), Reason::AuthenticationFailed);
    }

    #[test]
    fn accepts_a_token_in_the_query_beside_other_parameters() {
        let token = "st=2026-01-01T00%3A00%3A00Z&se=2036-01-01T00%3A00%3A00Z&sp=raud\
                     &sv=2019-02-02&tn=MyTable&sig=V%2BPw4sMiRz%2BRn85tY8GqS7W2A40isFItVAjCjzruwO0%3D";
        let of = |query: String| reason(&head(&format!("/devstoreaccount1/MyTable?{query}"), &[]));

        assert_eq!(
            of(format!("$filter=a%20eq%201&{token}&timeout=5")).as_deref(),
            Ok("devstoreaccount1")
        );
        assert_eq!(of(token.replace("sp=raud", "sp=r")), Err(Reason::AuthenticationFailed));
        // A malformed signature is a wrong one.
        assert_eq!(of(format!("{token}&sp=raud")), Err(Reason::AuthenticationFailed));
    }
}
