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
        delegation: None,
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
    let of_slash = self::token(Scope::of_blob("photos/d/"), "r");
    rest.blob("/photos/d/", "slash").await;
    let read = rest.send(unsigned("GET", &format!("/photos/d/?{of_slash}"))).await;
    assert_eq!(read.text(), "slash");
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
    for more in ["RSCT=text%2Fcss", "rs%63t=text%2Fcss", "RSCD=inline", "rscC=no-store"] {
        let target = format!("/photos/x?{more}&{signed}");
        let read = rest.send(unsigned("GET", &target)).await;
        assert_eq!(read.header("content-type"), "text/html", "{more}: {read:?}");
        assert_eq!(read.header("content-disposition"), "attachment", "{more}: {read:?}");
        assert_eq!(read.header("cache-control"), "", "{more}: {read:?}");
    }
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
async fn the_signature_in_the_url_of_a_source_decides_about_its_read() {
    let rest = BlobRest::start().await;
    for name in ["photos", "copies"] {
        rest.container(name).await;
    }
    rest.blob("/photos/x", "hello").await;
    rest.blob("/photos/y", "other").await;
    let write = token(Scope::of_container("copies"), "cw");
    let source = |path: &str, token: &str| rest.url(&format!("{path}?{token}"));
    let copy = |target: &'static str, source: String, more: &'static [(&'static str, &str)]| {
        let glue = if target.contains('?') { "&" } else { "?" };
        let request = unsigned("PUT", &format!("{target}{glue}{write}"));
        let request = request.with("x-ms-copy-source", &source);
        let with =
            |request: RestRequest, (name, value): &(&'static str, &str)| request.with(name, value);
        rest.send(more.iter().fold(request, with))
    };
    let read = token(Scope::of_blob("photos/x"), "r");
    let block = &[("x-ms-blob-type", "BlockBlob")];
    for (target, more, status) in [
        ("/copies/a", &[][..], 202),
        ("/copies/b", block, 201),
        ("/copies/c?comp=block&blockid=QQ==", &[], 201),
    ] {
        let copied = copy(target, source("/photos/x", &read), more).await;
        assert_eq!(copied.status, status, "{copied:?}");
    }
    assert_eq!(rest.call("GET", "/copies/a").await.text(), "hello");
    let recorded = rest.call("HEAD", "/copies/a").await;
    assert_eq!(recorded.header("x-ms-copy-source"), rest.url("/photos/x"), "without the signature");
    let delete = token(Scope::of_blob("photos/x"), "d");
    for (of, failure) in [
        (rest.url("/photos/x"), "AuthorizationFailure"),
        (source("/photos/y", &read), "AuthorizationFailure"),
        (source("/photos/x", &read.replace("sp=r", "sp=rw")), "AuthorizationFailure"),
        (source("/photos/x", &delete), "AuthorizationPermissionMismatch"),
    ] {
        let failed = copy("/copies/z", of.clone(), &[]).await;
        assert_eq!(failed.status, 403, "{of}: {failed:?}");
        assert!(["AuthorizationPermissionMismatch", failure].contains(&failed.failure().1), "{of}");
    }
    assert_eq!(rest.call("HEAD", "/copies/z").await.status, 404);
    // The signature of the source is for its read only.
    let reads = unsigned("GET", &format!("/photos/x?{write}"));
    assert_eq!(rest.send(reads).await.failure(), (403, "AuthenticationFailed"));
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
