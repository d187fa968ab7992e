//! Containers: create, delete, metadata, policies, public access, and the settings of the service.

use trestle_tests::{BlobRest, RestRequest};

const PHOTOS: &str = "/photos?restype=container";

#[tokio::test]
async fn a_container_is_described_by_headers_until_it_is_deleted() {
    let rest = BlobRest::start().await;
    let headers = [("x-ms-meta-owner", "me"), ("x-ms-blob-public-access", "blob")];

    let created = rest.call_with("PUT", PHOTOS, &headers).await;

    assert_eq!((created.status, created.text()), (201, ""));
    assert_eq!(rest.call("PUT", PHOTOS).await.failure(), (409, "ContainerAlreadyExists"));
    for (method, target) in
        [("GET", PHOTOS), ("HEAD", PHOTOS), ("GET", "/photos?restype=container&comp=metadata")]
    {
        let read = rest.call(method, target).await;
        assert_eq!(read.status, 200, "{read:?}");
        for (name, value) in [
            ("etag", created.header("etag")),
            ("x-ms-meta-owner", "me"),
            ("x-ms-blob-public-access", "blob"),
            ("x-ms-lease-status", "unlocked"),
            ("x-ms-lease-state", "available"),
            ("x-ms-has-legal-hold", "false"),
            ("x-ms-default-encryption-scope", "$account-encryption-key"),
        ] {
            assert_eq!(read.header(name), value, "{name}");
        }
    }
    assert_eq!(rest.call("DELETE", PHOTOS).await.status, 202);
    assert_eq!(rest.call("GET", PHOTOS).await.failure(), (404, "ContainerNotFound"));
    let head = rest.call("HEAD", PHOTOS).await;
    assert_eq!((head.status, head.header("x-ms-error-code")), (404, "ContainerNotFound"));
    assert_eq!(head.text(), "");
    rest.container("photos").await;
}

#[tokio::test]
async fn metadata_is_replaced_by_its_condition() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let target = "/photos?restype=container&comp=metadata";

    let set = rest.call_with("PUT", target, &[("x-ms-meta-a", "1")]).await;

    assert_eq!(set.status, 200, "{set:?}");
    let late = [("if-modified-since", "Fri, 21 Nov 2098 12:00:00 GMT"), ("x-ms-meta-a", "2")];
    let late = rest.call_with("PUT", target, &late).await;
    assert_eq!(late.failure(), (412, "ConditionNotMet"));
    let read = rest.call("GET", PHOTOS).await;
    assert_eq!((read.header("x-ms-meta-a"), read.header("etag")), ("1", set.header("etag")));
}

#[tokio::test]
async fn policies_and_public_access_are_set_together() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let target = "/photos?restype=container&comp=acl";
    let policy = "<AccessPolicy><Expiry>2035-11-21T00:00:00Z</Expiry><Permission>rl</Permission>";
    let identifier =
        format!("<SignedIdentifier><Id>p</Id>{policy}</AccessPolicy></SignedIdentifier>");
    let body = format!("<SignedIdentifiers>{identifier}</SignedIdentifiers>");

    let set = RestRequest::blob("PUT", target).with("x-ms-blob-public-access", "container");
    let set = rest.send(set.body(&body)).await;

    assert_eq!(set.status, 200, "{set:?}");
    let read = rest.call("GET", target).await;
    assert_eq!(read.header("x-ms-blob-public-access"), "container");
    assert_eq!((read.only("Id"), read.only("Permission")), ("p".to_owned(), "rl".to_owned()));
    assert_eq!(read.header("etag"), set.header("etag"));
    assert_eq!(rest.call("PUT", target).await.status, 200, "clears both");
    let read = rest.call("GET", target).await;
    assert_eq!(read.header("x-ms-blob-public-access"), "");
    assert!(read.text().ends_with("<SignedIdentifiers />"), "{}", read.text());
    let wrong = rest.call_with("PUT", target, &[("x-ms-blob-public-access", "all")]).await;
    assert_eq!(wrong.failure(), (400, "InvalidHeaderValue"));
}

#[tokio::test]
async fn a_deleted_container_is_restored_under_its_own_name() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let target = "/photos?restype=container&comp=undelete";
    let missing = rest.call("PUT", target).await;
    assert_eq!(missing.failure(), (400, "MissingRequiredHeader"));
    let named =
        |name| [("x-ms-deleted-container-name", name), ("x-ms-deleted-container-version", "1")];
    let other = rest.call_with("PUT", target, &named("other")).await;
    assert_eq!(other.failure(), (400, "InvalidHeaderValue"));
}

#[tokio::test]
async fn the_settings_of_blobs_survive_a_round_trip() {
    let rest = BlobRest::start().await;
    let target = "/?restype=service&comp=properties";
    let body = "<StorageServiceProperties><DefaultServiceVersion>2021-12-02</DefaultServiceVersion>\
                <DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy>\
                <StaticWebsite><Enabled>true</Enabled><IndexDocument>index.html</IndexDocument>\
                <ErrorDocument404Path>404.html</ErrorDocument404Path></StaticWebsite>\
                </StorageServiceProperties>";

    let set = rest.send(RestRequest::blob("PUT", target).body(body)).await;

    assert_eq!(set.status, 202, "{set:?}");
    let read = rest.call("GET", target).await;
    for (name, value) in [
        ("DefaultServiceVersion", "2021-12-02"),
        ("IndexDocument", "index.html"),
        ("ErrorDocument404Path", "404.html"),
    ] {
        assert_eq!(read.only(name), value, "{name}");
    }
    assert!(read.text().contains("<Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy>"));
    let cors = "<StorageServiceProperties><Cors/></StorageServiceProperties>";
    assert_eq!(rest.send(RestRequest::blob("PUT", target).body(cors)).await.status, 202);
    assert_eq!(rest.call("GET", target).await.only("IndexDocument"), "index.html", "not changed");
    let days = body.replace("<Days>7</Days>", "<Days>366</Days>");
    let days = rest.send(RestRequest::blob("PUT", target).body(days)).await;
    assert_eq!(days.status, 400, "{days:?}");
}

#[tokio::test]
async fn an_account_states_its_kind_and_the_secondary_its_age() {
    let rest = BlobRest::start().await;
    for target in ["/?restype=account&comp=properties", "/c/b?restype=account&comp=properties"] {
        let read = rest.call("GET", target).await;
        assert_eq!((read.status, read.header("x-ms-account-kind")), (200, "StorageV2"));
        assert_eq!(read.header("x-ms-is-hns-enabled"), "false");
    }
    let stats =
        RestRequest::blob("GET", "").at("/devstoreaccount1-secondary/?restype=service&comp=stats");
    let stats = rest.send(stats).await;
    assert_eq!((stats.status, stats.only("Status")), (200, "live".to_owned()));
    let write = RestRequest::blob("PUT", "").at("/devstoreaccount1-secondary/c?restype=container");
    assert_eq!(rest.send(write).await.failure(), (403, "InsufficientAccountPermissions"));
}
