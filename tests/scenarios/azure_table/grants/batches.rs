//! What a batch needs.

use super::*;

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
