//! Shared access signatures and public containers.

use trestle_identity::{
    account::AccountKey,
    sas::{Scope, Terms, Time, Version, mint},
};
use trestle_tests::{BlobRest, RestRequest};

/// A token with these permissions, as a query.
fn token(scope: Scope, permissions: &str) -> String {
    let time = |field, text: &str| Some(Time::parse(field, text.to_owned()).unwrap());
    let terms = Terms {
        version: Version::parse("2021-12-02".to_owned()).unwrap(),
        permissions: permissions.to_owned(),
        start: None,
        expiry: time("se", "2090-01-01T00:00:00Z"),
        policy: None,
        addresses: None,
        protocol: None,
        scope,
    };
    mint(terms, "devstoreaccount1", &AccountKey::development()).unwrap().to_query()
}

fn unsigned(method: &str, target: &str) -> RestRequest {
    RestRequest::blob(method, target).scheme(None)
}

#[tokio::test]
async fn a_signature_opens_its_blob_by_its_permissions_and_no_other() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/d/x%20y", "hello").await;
    rest.blob("/photos/d/z", "other").await;
    let token = token(Scope::of_blob("photos/d/x y"), "r");
    let call = |method: &'static str, path: &str| {
        rest.send(unsigned(
            method,
            &format!("{path}{}{token}", if path.contains('?') { "&" } else { "?" }),
        ))
    };

    let read = call("GET", "/photos/d/x%20y").await;

    assert_eq!((read.status, read.text()), (200, "hello"));
    for path in ["/photos/d%2Fx%20y", "/photos/%64/x%20y"] {
        assert_eq!(call("GET", path).await.text(), "hello", "{path}");
    }
    let deleted = call("DELETE", "/photos/d/x%20y").await;
    assert_eq!(deleted.failure(), (403, "AuthorizationPermissionMismatch"));
    for path in ["/photos/d/z", "/photos/d/x%20y/", "/others/d/x%20y", "/photos/D/x%20y"] {
        assert_eq!(call("GET", path).await.failure(), (403, "AuthenticationFailed"), "{path}");
    }
    let listed = call("GET", "/photos?restype=container&comp=list").await;
    assert_eq!(listed.failure(), (403, "AuthenticationFailed"));
}

#[tokio::test]
async fn a_signature_of_a_container_opens_its_blobs_and_lists_them() {
    let rest = BlobRest::start().await;
    for name in ["photos", "others"] {
        rest.container(name).await;
        rest.blob(&format!("/{name}/x"), "1").await;
    }
    let token = token(Scope::of_container("photos"), "rcl");
    let listed = format!("/photos?restype=container&comp=list&{token}");
    assert_eq!(rest.send(unsigned("GET", &listed)).await.only("Name"), "x");
    let read = rest.send(unsigned("GET", &format!("/photos/x?{token}"))).await;
    assert_eq!(read.text(), "1");
    let create = |path: &str| {
        let request = unsigned("PUT", &format!("{path}?{token}"));
        rest.send(request.with("x-ms-blob-type", "BlockBlob"))
    };
    assert_eq!(create("/photos/new").await.status, 201);
    assert_eq!(create("/photos/x").await.failure(), (403, "UnauthorizedBlobOverwrite"));
    let other = rest.send(unsigned("GET", &format!("/others/x?{token}"))).await;
    assert_eq!(other.failure(), (403, "AuthenticationFailed"));
}

#[tokio::test]
async fn signed_headers_replace_those_of_the_blob_and_unsigned_ones_do_not() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/x", "1").await;
    let fields = [("sr", "b"), ("rsct", "text/html"), ("rscd", "attachment")];
    let scope =
        Scope::of_resource(&trestle_identity::spec::BLOB, "photos/x", fields.into_iter().collect());
    let signed = token(scope, "r");
    let read = rest.send(unsigned("GET", &format!("/photos/x?{signed}"))).await;
    assert_eq!(read.header("content-type"), "text/html", "{read:?}");
    assert_eq!(read.header("content-disposition"), "attachment");
    let plain = token(Scope::of_blob("photos/x"), "r");
    let added = rest.send(unsigned("GET", &format!("/photos/x?{plain}&rsct=text%2Fhtml"))).await;
    assert_eq!(added.failure(), (403, "AuthenticationFailed"));
    let account = Scope::Account {
        services: "b".to_owned(),
        resource_types: "o".to_owned(),
        encryption_scope: String::new(),
    };
    let account = token(account, "r");
    for more in ["&rsct=text%2Fhtml", "&rsct=text%2Fhtml&sr=b"] {
        let read = rest.send(unsigned("GET", &format!("/photos/x?{account}{more}"))).await;
        assert_ne!(read.header("content-type"), "text/html", "{more}: {read:?}");
    }
    let owner = rest.call("GET", "/photos/x?rsct=text%2Fhtml").await;
    assert_eq!(owner.header("content-type"), "application/octet-stream");
}

#[tokio::test]
async fn a_request_without_credentials_is_rejected_before_its_form() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/x", "1").await;
    for (method, target) in [
        ("GET", "/photos/x"),
        ("GET", "/photos?restype=container&comp=list"),
        ("PUT", "/photos/x"),
        ("GET", "/?restype=account&comp=properties"),
        ("PUT", "/photos/x?comp=nothing"),
    ] {
        let failed = rest.send(unsigned(method, target)).await;
        assert_eq!(failed.failure(), (401, "NoAuthenticationInformation"), "{method} {target}");
    }
}
