//! What shared access signatures allow by REST.

mod account;
mod batches;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use trestle_identity::{
    account::AccountKey,
    caller::KeyRange,
    sas::{Scope, Terms},
};
use trestle_tests::{Rest, RestRequest, RestResponse, over_account, terms, terms_by_policy, token};

const PERMISSION: (u16, &str) = (403, "AuthorizationPermissionMismatch");
const PROPERTIES: &str = "/?restype=service&comp=properties";
const AT: &str = "/tab(PartitionKey='p',RowKey='r')";

fn tab() -> Scope {
    Scope::of_table("tab", &KeyRange::default())
}

/// A token for the account.
fn of_account(services: &str, resource_types: &str, permissions: &str) -> String {
    token(terms(over_account(services, resource_types), permissions))
}

/// Sends `request`, with its target, with a token instead of a key.
async fn with(rest: &Rest, token: &str, target: &str, request: RestRequest) -> RestResponse {
    let separator = if target.contains('?') { '&' } else { '?' };
    let target = format!("/devstoreaccount1{target}{separator}{token}");
    rest.send(request.at(&target).scheme(None)).await
}

/// A token to read `MyTable`, with the string to sign of its version.
fn of_version(version: &str) -> (String, String) {
    let (start, expiry) = ("2020-01-01T00:00:00Z", "2090-01-01T00:00:00Z");
    let service = if version < "2015-02-21" { "" } else { "/table" };
    // Before this version the string to sign has no addresses and protocols.
    let peers = if version < "2015-04-05" { "" } else { "\n\n" };
    let text = format!(
        "r\n{start}\n{expiry}\n{service}/devstoreaccount1/mytable\n{peers}\n{version}\n\n\n\n"
    );
    let fields = format!("sv={version}&tn=MyTable&sp=r&st={start}&se={expiry}");
    (fields, text)
}

#[tokio::test]
async fn accepts_every_sas_version_and_rejects_altered_tokens() {
    let rest = Rest::start();
    rest.table("mytable").await;
    let read = |token: String| {
        let rest = &rest;
        async move { with(rest, &token, "/MYTABLE()", RestRequest::table("GET", "")).await }
    };
    for version in
        ["2012-02-12", "2013-08-15", "2014-02-14", "2015-02-21", "2015-04-05", "2020-12-06"]
    {
        let (fields, text) = of_version(version);
        let signature = STANDARD.encode(AccountKey::development().sign(&text));
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");

        let response = read(format!("{fields}&sig={signature}")).await;
        assert_eq!(
            (response.status, response.text()),
            (200, r#"{"value":[]}"#),
            "{version}: {response:?}"
        );
        for (from, to) in [("sp=r", "sp=ra"), ("tn=My", "tn=Your"), ("2090", "2091")] {
            let changed = fields.replace(from, to);
            assert_ne!(changed, fields);
            let response = read(format!("{changed}&sig={signature}")).await;
            assert_eq!(response.failure(), (403, "AuthenticationFailed"), "{changed}");
        }
    }
}

#[tokio::test]
async fn rejects_fields_in_both_sas_and_policy() {
    let rest = Rest::start();
    rest.table("tab").await;
    let set = |terms: &str| {
        let body = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy>{terms}\
             </AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        );
        let request =
            RestRequest::table("PUT", "/tab?comp=acl").with("content-type", "application/xml");
        rest.send(request.body(body))
    };
    let (ends, reads) = ("<Expiry>2090-01-01</Expiry>", "<Permission>r</Permission>");
    let open = terms_by_policy(tab(), "readers");
    let stated = terms(tab(), "r");
    let lasting = Terms { expiry: stated.expiry.clone(), ..open.clone() };
    let reading = Terms { permissions: "r".to_owned(), ..open.clone() };
    for (policy, terms, is_let_in) in [
        (format!("{ends}{reads}"), &open, true),
        (reads.to_owned(), &lasting, true),
        (ends.to_owned(), &reading, true),
        // Stated twice, or nowhere.
        (format!("{ends}{reads}"), &lasting, false),
        (format!("{ends}{reads}"), &reading, false),
        (ends.to_owned(), &open, false),
        (reads.to_owned(), &open, false),
    ] {
        assert_eq!(set(&policy).await.status, 204);
        let token = token(terms.clone());
        let response = with(&rest, &token, "/tab()", RestRequest::table("GET", "")).await;
        if is_let_in {
            assert_eq!(response.status, 200, "{policy} {token}: {response:?}");
        } else {
            assert_eq!(response.failure(), (403, "AuthenticationFailed"), "{policy} {token}");
        }
    }
}
