//! What shared access signatures allow by REST.

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

/// An operation: target, request, resource types, and permissions, of which it needs one of
/// each group.
type Operation = (&'static str, RestRequest, &'static str, &'static [&'static str]);

/// Every operation, in an order in which each succeeds.
fn operations() -> Vec<Operation> {
    let body = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let properties = RestRequest::table("PUT", "")
        .with("content-type", "application/xml")
        .body("<StorageServiceProperties />");
    let change = |method: &str| RestRequest::json(method, "", "{}").with("if-match", "*");
    vec![
        (PROPERTIES, RestRequest::table("GET", ""), "s", &["r"]),
        (PROPERTIES, properties, "s", &["w"]),
        ("/Tables", RestRequest::json("POST", "", r#"{"TableName":"tab"}"#), "c", &["cw"]),
        ("/Tables", RestRequest::table("GET", ""), "sc", &["l"]),
        ("/tab", RestRequest::json("POST", "", body), "o", &["a"]),
        (AT, RestRequest::table("GET", ""), "o", &["r"]),
        ("/tab()", RestRequest::table("GET", ""), "o", &["r"]),
        (AT, change("PUT"), "o", &["u"]),
        (AT, change("PATCH"), "o", &["u"]),
        (AT, RestRequest::json("PUT", "", "{}"), "o", &["a", "u"]),
        (AT, RestRequest::json("MERGE", "", "{}"), "o", &["a", "u"]),
        (AT, RestRequest::table("DELETE", "").with("if-match", "*"), "o", &["d"]),
        ("/Tables('tab')", RestRequest::table("DELETE", ""), "c", &["d"]),
    ]
}

#[tokio::test]
async fn account_sas_allows_operations_by_resource_type_and_permission() {
    let rest = Rest::start();
    let all = "rwdlacu";
    for (target, request, types, groups) in operations() {
        let without = |letters: &str| -> String {
            all.chars().filter(|letter| !letters.contains(*letter)).collect()
        };
        for group in groups {
            let token = of_account("t", "sco", &without(group));
            let response = with(&rest, &token, target, request.clone()).await;
            assert_eq!(response.failure(), PERMISSION, "{group} {request:?}");
        }
        let others: String = "sco".chars().filter(|kind| !types.contains(*kind)).collect();
        let response = with(&rest, &of_account("t", &others, all), target, request.clone()).await;
        assert_eq!(response.failure(), (403, "AuthorizationResourceTypeMismatch"), "{request:?}");
        let response = with(&rest, &of_account("q", "sco", all), target, request.clone()).await;
        assert_eq!(response.failure(), (403, "AuthorizationServiceMismatch"), "{request:?}");

        // One permission of each group and one type suffice.
        let letters: String = groups.iter().map(|group| &group[..1]).collect();
        let token = of_account("t", &types[..1], &letters);
        let response = with(&rest, &token, target, request.clone()).await;
        assert!(response.status < 300, "{letters} {request:?}: {response:?}");
    }
    rest.table("tab").await;
    for method in ["GET", "PUT"] {
        let token = of_account("t", "sco", all);
        let response = with(&rest, &token, "/tab?comp=acl", RestRequest::table(method, "")).await;
        assert_eq!(response.failure(), (403, "AuthorizationFailure"), "{method}");
    }
}

#[tokio::test]
async fn each_batch_request_needs_its_own_permission() {
    let rest = Rest::start();
    rest.table("tab").await;
    let body = "--b1\r\nContent-Type: multipart/mixed; boundary=c1\r\n\r\n\
        --c1\r\nContent-Type: application/http\r\n\r\n\
        POST /tab HTTP/1.1\r\n\r\n{\"PartitionKey\":\"p\",\"RowKey\":\"a\"}\r\n\
        --c1\r\nContent-Type: application/http\r\n\r\n\
        DELETE /tab(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n\
        --c1--\r\n--b1--\r\n";
    let batch = || {
        let kind = "multipart/mixed; boundary=b1";
        RestRequest::table("POST", "").with("content-type", kind).body(body)
    };
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
    for (letters, index) in [("a", "1:"), ("d", "0:"), ("ru", "0:")] {
        let response = with(&rest, &token(terms(tab(), letters)), "/$batch", batch()).await;
        let text = response.text();
        assert!(text.contains("HTTP/1.1 403 Forbidden"), "{letters}: {text}");
        assert!(text.contains("\"AuthorizationPermissionMismatch\""), "{letters}: {text}");
        assert!(text.contains(&format!("\"value\":\"{index}")), "{letters}: {text}");
    }
    let list = rest.send(RestRequest::table("GET", "/tab?$select=RowKey")).await;
    assert_eq!(list.text(), r#"{"value":[{"RowKey":"r"}]}"#);

    let response = with(&rest, &token(terms(tab(), "ad")), "/$batch", batch()).await;

    assert_eq!(response.text().matches("HTTP/1.1 20").count(), 2, "{response:?}");
}

#[tokio::test]
async fn empty_batch_needs_a_sas_for_entities() {
    let rest = Rest::start();
    rest.table("tab").await;
    let empty = || {
        let body = "--b1\r\nContent-Type: multipart/mixed; boundary=c1\r\n\r\n--c1--\r\n--b1--\r\n";
        RestRequest::table("POST", "")
            .with("content-type", "multipart/mixed; boundary=b1")
            .body(body)
    };
    let absent = Scope::of_table("absent", &KeyRange::default());
    for (token, failure) in [
        (of_account("b", "sco", "a"), (403, "AuthorizationServiceMismatch")),
        (of_account("t", "sc", "a"), (403, "AuthorizationResourceTypeMismatch")),
        (token(terms(tab(), "r")), PERMISSION),
        (token(terms(absent, "a")), (404, "TableNotFound")),
        (token(terms_by_policy(tab(), "unknown")), (403, "AuthenticationFailed")),
    ] {
        let response = with(&rest, &token, "/$batch", empty()).await;
        assert_eq!(response.failure(), failure, "{token}: {response:?}");
    }
    for token in [of_account("t", "o", "a"), of_account("t", "o", "d"), token(terms(tab(), "u"))] {
        let response = with(&rest, &token, "/$batch", empty()).await;
        assert_eq!(response.status, 202, "{token}: {response:?}");
        assert!(response.text().contains("--changesetresponse_"), "{response:?}");
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
