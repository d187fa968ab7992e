//! Snapshots, versions, deletion, tiers.

use trestle_tests::{BlobRest, RestRequest};

async fn blob() -> BlobRest {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/x", "1").await;
    rest
}

#[tokio::test]
async fn a_snapshot_is_read_and_deleted_by_its_time() {
    let rest = blob().await;

    let created = rest.call_with("PUT", "/photos/x?comp=snapshot", &[("x-ms-meta-s", "1")]).await;

    assert_eq!(created.status, 201, "{created:?}");
    let snapshot = format!("/photos/x?snapshot={}", created.header("x-ms-snapshot"));
    rest.blob("/photos/x", "22").await;
    let read = rest.call("GET", &snapshot).await;
    assert_eq!((read.text(), read.header("x-ms-meta-s")), ("1", "1"));
    assert_eq!(read.header("x-ms-lease-state"), "");
    assert_eq!(rest.call("DELETE", "/photos/x").await.failure(), (409, "SnapshotsPresent"));
    let only = [("x-ms-delete-snapshots", "only")];
    let both = rest.call_with("DELETE", &snapshot, &only).await;
    assert_eq!(both.failure(), (400, "InvalidQueryParameterValue"));
    let other = rest.call_with("DELETE", "/photos/x", &[("x-ms-delete-snapshots", "all")]).await;
    assert_eq!(other.failure(), (400, "InvalidHeaderValue"));
    assert_eq!(rest.call("DELETE", &snapshot).await.status, 202);
    assert_eq!(rest.call("GET", &snapshot).await.failure(), (404, "BlobNotFound"));
    rest.call("PUT", "/photos/x?comp=snapshot").await;
    let include = [("x-ms-delete-snapshots", "include")];
    assert_eq!(rest.call_with("DELETE", "/photos/x", &include).await.status, 202);
    assert_eq!(rest.call("DELETE", "/photos/x").await.failure(), (404, "BlobNotFound"));
    let malformed = rest.call("GET", "/photos/x?snapshot=yesterday").await;
    assert_eq!(malformed.failure(), (400, "InvalidQueryParameterValue"));
}

#[tokio::test]
async fn a_deleted_blob_is_listed_and_restored_while_the_settings_keep_it() {
    let rest = blob().await;
    let settings = "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled>\
                    <Days>7</Days></DeleteRetentionPolicy></StorageServiceProperties>";
    let set = RestRequest::blob("PUT", "/?restype=service&comp=properties").body(settings);
    assert_eq!(rest.send(set).await.status, 202);
    assert_eq!(rest.call("DELETE", "/photos/x").await.status, 202);

    let listed = rest.call("GET", "/photos?restype=container&comp=list&include=deleted").await;

    assert_eq!((listed.only("Name"), listed.only("Deleted")), ("x".into(), "true".into()));
    assert_ne!(listed.only("DeletedTime"), "");
    assert_eq!(rest.call("GET", "/photos/x").await.failure(), (404, "BlobNotFound"));
    assert_eq!(rest.call("PUT", "/photos/x?comp=undelete").await.status, 200);
    assert_eq!(rest.call("GET", "/photos/x").await.text(), "1");
    let absent = rest.call("PUT", "/photos/none?comp=undelete").await;
    assert_eq!(absent.failure(), (404, "BlobNotFound"));
}

#[tokio::test]
async fn an_archived_blob_is_described_and_not_read() {
    let rest = blob().await;
    let tier = |tier: &'static str| {
        let rest = &rest;
        async move { rest.call_with("PUT", "/photos/x?comp=tier", &[("x-ms-access-tier", tier)]).await }
    };
    assert_eq!(tier("Archive").await.status, 200);
    let head = rest.call("HEAD", "/photos/x").await;
    assert_eq!((head.status, head.header("x-ms-access-tier")), (200, "Archive"));
    assert_ne!(head.header("x-ms-access-tier-change-time"), "");
    assert_eq!(rest.call("GET", "/photos/x").await.failure(), (409, "BlobArchived"));
    assert_eq!(tier("cool").await.status, 200);
    assert_eq!(rest.call("GET", "/photos/x").await.text(), "1");
    assert_eq!(tier("Warm").await.failure(), (400, "InvalidHeaderValue"));
    assert_eq!(tier("P4").await.failure(), (400, "InvalidBlobTier"));
    let without = rest.call("PUT", "/photos/x?comp=tier").await;
    assert_eq!(without.failure(), (400, "MissingRequiredHeader"));
}
