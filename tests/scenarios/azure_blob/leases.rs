//! Leases of blobs and containers.

use trestle_tests::{BlobRest, RestResponse};

const A: &str = "11111111-1111-1111-1111-111111111111";
const B: &str = "22222222-2222-2222-2222-222222222222";

async fn lease(
    rest: &BlobRest,
    target: &str,
    action: &str,
    more: &[(&'static str, &str)],
) -> RestResponse {
    let headers = [&[("x-ms-lease-action", action)][..], more].concat();
    rest.call_with("PUT", target, &headers).await
}

#[tokio::test]
async fn a_lease_of_a_blob_goes_through_its_states() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let etag = rest.blob("/photos/x", "1").await;
    let target = "/photos/x?comp=lease";
    let acquire = |id| [("x-ms-lease-duration", "60"), ("x-ms-proposed-lease-id", id)];

    let acquired = lease(&rest, target, "acquire", &acquire(A)).await;

    assert_eq!((acquired.status, acquired.header("x-ms-lease-id")), (201, A));
    assert_eq!(acquired.header("etag"), etag);
    let read = rest.call("HEAD", "/photos/x").await;
    for (name, value) in [("status", "locked"), ("state", "leased"), ("duration", "fixed")] {
        assert_eq!(read.header(&format!("x-ms-lease-{name}")), value);
    }
    let other = lease(&rest, target, "acquire", &acquire(B)).await;
    assert_eq!(other.failure(), (409, "LeaseAlreadyPresent"));
    let id = |id| [("x-ms-lease-id", id)];
    let renewed = lease(&rest, target, "renew", &id(A)).await;
    assert_eq!((renewed.status, renewed.header("x-ms-lease-id")), (200, A));
    let wrong = lease(&rest, target, "renew", &id(B)).await;
    assert_eq!(wrong.failure(), (409, "LeaseIdMismatchWithLeaseOperation"));
    let change = [("x-ms-lease-id", A), ("x-ms-proposed-lease-id", B)];
    let changed = lease(&rest, target, "change", &change).await;
    assert_eq!((changed.status, changed.header("x-ms-lease-id")), (200, B));
    let without = rest.call("DELETE", "/photos/x").await;
    assert_eq!(without.failure(), (412, "LeaseIdMissing"));
    let by_other = rest.call_with("DELETE", "/photos/x", &id(A)).await;
    assert_eq!(by_other.failure(), (412, "LeaseIdMismatchWithBlobOperation"));
    let broken = lease(&rest, target, "break", &[("x-ms-lease-break-period", "0")]).await;
    assert_eq!((broken.status, broken.header("x-ms-lease-time")), (202, "0"));
    assert_eq!(rest.call("HEAD", "/photos/x").await.header("x-ms-lease-state"), "broken");
    assert_eq!(lease(&rest, target, "release", &id(B)).await.status, 200);
    assert_eq!(rest.call("HEAD", "/photos/x").await.header("x-ms-lease-state"), "available");
    let lost = rest.call_with("DELETE", "/photos/x", &id(B)).await;
    assert_eq!(lost.failure(), (412, "LeaseNotPresentWithBlobOperation"));
}

#[tokio::test]
async fn a_lease_of_a_container_protects_it_from_deletion_only() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let target = "/photos?restype=container&comp=lease";
    let acquire = [("x-ms-lease-duration", "-1"), ("x-ms-proposed-lease-id", A)];
    assert_eq!(lease(&rest, target, "acquire", &acquire).await.status, 201);
    let read = rest.call("GET", "/photos?restype=container").await;
    assert_eq!(read.header("x-ms-lease-duration"), "infinite");
    rest.blob("/photos/x", "1").await;
    let deleted = rest.call("DELETE", "/photos?restype=container").await;
    assert_eq!(deleted.failure(), (412, "LeaseIdMissing"));
    let breaking = lease(&rest, target, "break", &[("x-ms-lease-break-period", "60")]).await;
    assert_eq!(breaking.status, 202);
    let left: u32 = breaking.header("x-ms-lease-time").parse().unwrap();
    assert!((1..=60).contains(&left), "{left}");
    let id = [("x-ms-lease-id", A)];
    let deleted = rest.call_with("DELETE", "/photos?restype=container", &id).await;
    assert_eq!(deleted.status, 202);
}

#[tokio::test]
async fn rejects_malformed_lease_requests() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/x", "1").await;
    let target = "/photos/x?comp=lease";
    for (action, headers, code) in [
        ("acquire", &[][..], "MissingRequiredHeader"),
        ("acquire", &[("x-ms-lease-duration", "14")], "InvalidHeaderValue"),
        ("acquire", &[("x-ms-lease-duration", "61")], "InvalidHeaderValue"),
        ("acquire", &[("x-ms-lease-duration", "-2")], "InvalidHeaderValue"),
        (
            "acquire",
            &[("x-ms-lease-duration", "15"), ("x-ms-proposed-lease-id", "mine")],
            "InvalidHeaderValue",
        ),
        ("renew", &[], "MissingRequiredHeader"),
        ("change", &[("x-ms-lease-id", A)], "MissingRequiredHeader"),
        ("release", &[("x-ms-lease-id", "mine")], "InvalidHeaderValue"),
        ("break", &[("x-ms-lease-break-period", "61")], "InvalidHeaderValue"),
        ("steal", &[], "InvalidHeaderValue"),
    ] {
        let failed = lease(&rest, target, action, headers).await;
        assert_eq!(failed.failure(), (400, code), "{action} {headers:?}");
    }
    assert_eq!(rest.call("PUT", target).await.failure(), (400, "MissingRequiredHeader"));
    let of_snapshot = format!("{target}&snapshot=2025-11-21T12:00:00.0000000Z");
    let headers = [("x-ms-lease-duration", "15")];
    let of_snapshot = lease(&rest, &of_snapshot, "acquire", &headers).await;
    assert_eq!(of_snapshot.failure(), (400, "InvalidQueryParameterValue"));
}
