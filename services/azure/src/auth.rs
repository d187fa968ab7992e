//! Authentication of a request: a signature with a key of the account, or a shared access signature
//! in its query.
//!
//! A request without credentials is never the owner, not even on loopback: unlike gRPC, a page
//! of any origin can send these requests without a CORS preflight.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::header;
use trestle_identity::{
    account::{AccountSet, Signature},
    caller::Caller,
    credentials::Identity,
    sas::{self, Check, Denied, Named, NamedResource},
    shared_key::{Scheme, SignedRequest},
    spec::ServiceSpec,
};
use trestle_service::{clock::Ticks, fault::Reason};

use crate::head::RequestHead;

/// The caller that the credentials of a request authenticate.
///
/// # Errors
/// Why they are invalid; the same for an absent account as for a wrong signature.
pub(crate) fn caller(
    head: &RequestHead,
    service: &'static ServiceSpec,
    identity: &Identity,
) -> Result<Caller, Denied> {
    let (accounts, now) = (identity.accounts.now(), identity.clock.now());
    let mut values = head.headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        let token = token(head);
        if token.is_empty() {
            let message = "the request has no credentials: a header `Authorization` or a shared \
                           access signature is required";
            let reason = Reason::NoAuthenticationInformation;
            return Err(Denied::new(Check::Form, reason, message));
        }
        let named = Named { account: Some(head.account.as_str()), resource: named(head, service) };
        return sas::verify(&token, named, &accounts, now, &head.peer).map_err(of_signature);
    };
    if values.next().is_some() {
        return Err(malformed("must not be repeated"));
    }
    let value = value.to_str().map_err(|_| malformed("must be visible ASCII"))?;
    let authorization = Authorization::parse(value)?;
    signed(head, service, authorization, &accounts, now)
}

/// The resource of a signature by the address of the request, if the signature does not contain it.
fn named(head: &RequestHead, service: &'static ServiceSpec) -> Option<NamedResource> {
    // Without a name no signature for a resource matches, and it is rejected as a wrong one.
    let path = head.path.trim_start_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    let name = if service.has_paths { path } else { first };
    let parameter = |names: &[&str]| names.iter().find_map(|name| head.params.get(name));
    let fields = service.fields.iter();
    let fields = fields.filter_map(|field| Some((field.name, parameter(field.of_request)?)));
    let named = || NamedResource { service, name: name.to_owned(), fields: fields.collect() };
    service.name_field.is_none().then(named)
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
        const RULE: &str = "must be `SharedKey` or `SharedKeyLite`, and account:signature";
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
    let is_signed = request.verify(account, &signature, accounts, now);
    let found = accounts.get(account).filter(|_| is_signed && account == head.account.as_str());
    match found {
        Some(found) if found.is_disabled => Err(Denied::disabled(found)),
        Some(found) => Ok(Caller::owner(found.name.clone())),
        None => Err(Denied::unknown()),
    }
}

/// The fields of a shared access signature in the query, as they were sent; empty without a
/// signature.
fn token(head: &RequestHead) -> String {
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
mod tests {
    use std::sync::Arc;

    use http::{Method, Uri};
    use tonic::body::Body;
    use trestle_identity::{
        account::{Account, AccountKey, Accounts},
        spec::TABLE,
    };
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

    fn head(target: &str, headers: &[(&'static str, &str)]) -> RequestHead {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = target.parse::<Uri>().expect("a target");
        for (name, value) in [("host", "127.0.0.1")].iter().chain(headers) {
            request.headers_mut().append(*name, value.parse().expect("a value"));
        }
        RequestHead::take(&mut request, "table").expect("a head")
    }

    /// The header of a request for `path`, signed with the development key.
    fn signature(path: &str) -> String {
        let headers = [("x-ms-date".parse().expect("a name"), NOW.parse().expect("a value"))];
        let headers = headers.into_iter().collect();
        let (service, scheme, query) = (&TABLE, Scheme::Full, "");
        let signed =
            SignedRequest { service, scheme, method: "GET", headers: &headers, path, query };
        let made = signed.sign("devstoreaccount1", &AccountKey::development());
        format!("SharedKey devstoreaccount1:{}", STANDARD.encode(made))
    }

    fn reason(head: &RequestHead) -> Result<String, Reason> {
        let caller = caller(head, &TABLE, &identity(Account::development()));
        caller.map(|caller| caller.account.to_string()).map_err(|denied| denied.reason)
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
            "SharedKey absent:x",
        ] {
            assert_eq!(of(value), Err(Reason::AuthenticationFailed), "{value}");
        }
        let twice = [("authorization", "SharedKey a:b"), ("authorization", "SharedKey a:b")];
        assert_eq!(reason(&head(PATH, &twice)), Err(Reason::InvalidAuthenticationInfo));
        assert_eq!(reason(&head(PATH, &[])), Err(Reason::NoAuthenticationInformation));
    }

    #[test]
    fn reports_a_disabled_account_only_to_its_owner() {
        let authorization = signature(PATH);
        let account = Account { is_disabled: true, ..Account::development() };
        let reason = |authorization: &str| {
            let head = head(PATH, &[("x-ms-date", NOW), ("authorization", authorization)]);
            caller(&head, &TABLE, &identity(account.clone())).expect_err("rejected").reason
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
        // User delegation is rejected as what it is.
        let delegated = head(&format!("/devstoreaccount1/MyTable?skoid=a&{token}"), &[]);
        let delegated = caller(&delegated, &TABLE, &identity(Account::development()));
        let delegated = delegated.expect_err("rejected");
        assert_eq!(delegated.reason, Reason::AuthenticationFailed);
        assert!(delegated.message.contains("skoid: user delegation is not"), "{delegated}");
        // A malformed signature is a wrong one.
        assert_eq!(of(format!("{token}&sp=raud")), Err(Reason::AuthenticationFailed));
    }
}
