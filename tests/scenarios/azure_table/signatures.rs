//! Requests that are signed with a key of the account.

use trestle_identity::shared_key::Scheme;
use trestle_tests::{Rest, RestRequest};

#[tokio::test]
async fn accepts_shared_key_and_lite_over_the_raw_uri() {
    let rest = Rest::start();
    rest.table("tab").await;
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"a b"}"#).await;
    for scheme in [Scheme::Full, Scheme::Lite] {
        for target in [
            "/tab(PartitionKey='p',RowKey='a%20b')",
            "/tab(PartitionKey=%27%70%27,RowKey=%27a%20b%27)",
            "/%74ab()?$top=1&timeout=5",
            "/tab?comp=acl",
            "/?restype=service&comp=properties",
            // The endpoint ends in a slash, and the client adds one.
            "//Tables",
            "//tab()?$top=1",
            "//tab(PartitionKey='p',RowKey='a%20b')",
        ] {
            let response = rest.send(RestRequest::table("GET", target).scheme(Some(scheme))).await;
            assert_eq!(response.status, 200, "{scheme:?} {target}: {response:?}");
        }
        // The verb that is sent is signed, not the one in X-HTTP-Method.
        let merge = RestRequest::json("POST", "/tab(PartitionKey='p',RowKey='a%20b')", "{}");
        let merge = merge.with("x-http-method", "MERGE").scheme(Some(scheme));
        assert_eq!(rest.send(merge).await.status, 204, "{scheme:?}");
        let hosted = RestRequest::table("GET", "")
            .at("/tab()")
            .with("host", "devstoreaccount1.table.localhost:1");
        assert_eq!(rest.send(hosted.scheme(Some(scheme))).await.status, 200, "{scheme:?}");
    }
}

#[tokio::test]
async fn content_md5_is_signed_and_not_verified() {
    let rest = Rest::start();
    rest.table("tab").await;
    let of_nothing = "1B2M2Y8AsgTpgAmY7PhCfg==";
    let put = || RestRequest::json("PUT", "/tab(PartitionKey='p',RowKey='r')", "{}");

    let response = rest.send(put().with("content-md5", of_nothing)).await;
    assert_eq!(response.status, 204, "{response:?}");
    let without = |text: String| text.replace(of_nothing, "");
    let unsigned = put().with("content-md5", of_nothing);
    let response = rest.send(unsigned.signed_otherwise(rest.address(), without)).await;
    assert_eq!(response.failure(), (403, "AuthenticationFailed"));
}

#[tokio::test]
async fn rejects_invalid_shared_key_signatures() {
    let rest = Rest::start();
    rest.table("tab").await;
    let acl = || RestRequest::table("GET", "/tab?comp=acl");
    for change in [
        (|text: String| text.replace("GET", "PUT")) as fn(String) -> String,
        |text| text.replace("comp=acl", "comp=stats"),
        |text| text.replace("?comp=acl", ""),
        |text| text.replace("/devstoreaccount1/tab", "/tab"),
        |text| text.replace("GMT", "UTC"),
        |text| text.to_uppercase(),
        |_| String::new(),
    ] {
        let response = rest.send(acl().signed_otherwise(rest.address(), change)).await;
        assert_eq!(response.failure(), (403, "AuthenticationFailed"));
    }
    let same = rest.send(acl().signed_otherwise(rest.address(), |text| text)).await;
    assert_eq!(same.status, 200, "{same:?}");
}

#[tokio::test]
async fn secondary_is_signed_with_or_without_its_suffix() {
    let rest = Rest::start();
    rest.table("tab").await;
    let request = || RestRequest::table("GET", "").at("/devstoreaccount1-secondary/tab()");

    assert_eq!(rest.send(request()).await.status, 200);
    let without = |text: String| text.replace("1-secondary/", "1/");
    let response = rest.send(request().signed_otherwise(rest.address(), without)).await;
    assert_eq!(response.status, 200, "{response:?}");
}
