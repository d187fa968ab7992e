//! Malformed requests.

use trestle_tests::{Rest, RestRequest};

#[tokio::test]
async fn rejects_path_traversal() {
    let rest = Rest::start();
    for (path, failure) in [
        ("/..", (400, "InvalidResourceName")),
        ("/%2e%2e", (400, "InvalidResourceName")),
        ("/%252e%252e", (400, "InvalidResourceName")),
        ("/%00", (400, "InvalidResourceName")),
        ("/tab%00", (400, "InvalidResourceName")),
        ("/..%2f..%2fetc%2fpasswd", (404, "ResourceNotFound")),
        ("/tab//", (400, "InvalidResourceName")),
        ("//tab//", (400, "InvalidResourceName")),
        ("/%ff", (400, "InvalidInput")),
        ("/%zz", (400, "InvalidInput")),
        ("/tab(PartitionKey='p", (400, "InvalidInput")),
        ("/tab(PartitionKey='p',RowKey='%00')", (400, "OutOfRangeInput")),
        ("/tab(PartitionKey='..%2f..',RowKey='r')", (400, "OutOfRangeInput")),
        ("/", (400, "InvalidUri")),
    ] {
        assert_eq!(rest.send(RestRequest::table("GET", path)).await.failure(), failure, "{path}");
    }
}

#[tokio::test]
async fn malformed_head_is_rejected_in_json_if_accepted() {
    let rest = Rest::start();
    for (accept, kind) in
        [("application/json;odata=nometadata", "application/json"), ("*/*", "application/xml")]
    {
        let unread = RestRequest::table("GET", "/Tables").with("accept", accept);
        let response = rest.send(unread.with("x-ms-version", "soon")).await;
        assert_eq!(response.failure(), (400, "InvalidHeaderValue"));
        assert!(response.header("content-type").starts_with(kind), "{response:?}");
    }
}

#[tokio::test]
async fn rejects_malformed_entity_bodies() {
    let rest = Rest::start();
    rest.table("tab").await;
    let deep = "[".repeat(1_000_000);
    for body in [
        "",
        "null",
        "[]",
        "{",
        r#"{"PartitionKey":"p","RowKey":"r","x":"\ud800"}"#,
        "{}{}",
        &deep,
        &format!("{{\"a\":{deep}"),
    ] {
        let response = rest.send(RestRequest::json("POST", "/tab", body)).await;
        assert_eq!(response.failure(), (400, "InvalidInput"));
    }
    let response =
        rest.send(RestRequest::json("POST", "/tab", "").body(b"{\"PartitionKey\":\"\xFF\"}")).await;
    assert_eq!(response.failure(), (400, "InvalidInput"));
    let response = rest.send(RestRequest::json("POST", "/tab", &" ".repeat((4 << 20) + 1))).await;
    assert_eq!(response.failure(), (413, "RequestBodyTooLarge"));
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
}

#[tokio::test]
async fn rejects_missing_credentials_and_replayed_signatures() {
    let rest = Rest::start();
    let response = rest.send(RestRequest::table("GET", "/Tables").scheme(None)).await;
    assert_eq!(response.failure(), (401, "NoAuthenticationInformation"));
    assert_eq!(response.header("www-authenticate"), "SharedKey");
    let response = rest
        .send(
            RestRequest::table("GET", "/Tables")
                .scheme(None)
                .with("authorization", "SharedKey devstoreaccount1:AAAA"),
        )
        .await;
    assert_eq!(response.failure(), (403, "AuthenticationFailed"));
    assert_eq!(response.header("www-authenticate"), "", "only of 401");
    let response = rest
        .send(RestRequest::table("GET", "/Tables").scheme(None).with("authorization", "Digest x"))
        .await;
    assert_eq!(response.failure(), (400, "InvalidAuthenticationInfo"));
    let old =
        RestRequest::table("GET", "/Tables").with("x-ms-date", "Sat, 21 Nov 2020 12:00:00 GMT");
    assert_eq!(rest.send(old).await.failure(), (403, "AuthenticationFailed"));
    let xml = RestRequest::table("GET", "/Tables").scheme(None).with("accept", "*/*");
    assert_eq!(rest.send(xml).await.header("content-type"), "application/xml");
}
