//! Page blobs.

use trestle_tests::{BlobRest, RestRequest, RestResponse};

const PAGE: &str = "/disks/x?comp=page";

async fn disk() -> BlobRest {
    let rest = BlobRest::start().await;
    rest.container("disks").await;
    let headers = [
        ("x-ms-blob-type", "PageBlob"),
        ("x-ms-blob-content-length", "4096"),
        ("x-ms-blob-sequence-number", "7"),
    ];
    assert_eq!(rest.call_with("PUT", "/disks/x", &headers).await.status, 201);
    rest
}

async fn write(
    rest: &BlobRest,
    range: &str,
    bytes: usize,
    more: &[(&'static str, &str)],
) -> RestResponse {
    let request = RestRequest::blob("PUT", PAGE).with("x-ms-page-write", "update");
    let request = request.with("x-ms-range", range).body("x".repeat(bytes));
    let with =
        |request: RestRequest, (name, value): &(&'static str, &str)| request.with(name, value);
    rest.send(more.iter().fold(request, with)).await
}

#[tokio::test]
async fn pages_are_written_cleared_and_listed() {
    let rest = disk().await;

    let written = write(&rest, "bytes=512-1535", 1024, &[]).await;

    assert_eq!((written.status, written.header("x-ms-blob-sequence-number")), (201, "7"));
    let list = "/disks/x?comp=pagelist";
    let listed = rest.call("GET", list).await;
    assert_eq!((listed.all("Start"), listed.all("End")), (vec!["512".into()], vec!["1535".into()]));
    assert_eq!(listed.header("x-ms-blob-content-length"), "4096");
    let snapshot = rest.call("PUT", "/disks/x?comp=snapshot").await;
    let snapshot = snapshot.header("x-ms-snapshot").to_owned();
    let clear = [("x-ms-page-write", "clear"), ("range", "bytes=512-1023")];
    assert_eq!(rest.call_with("PUT", PAGE, &clear).await.status, 201);
    let changed = rest.call("GET", &format!("{list}&prevsnapshot={snapshot}")).await;
    assert!(
        changed.text().contains("<ClearRange><Start>512</Start><End>1023</End></ClearRange>"),
        "{changed:?}"
    );
    let read = rest.call_with("GET", "/disks/x", &[("range", "bytes=1020-1025")]).await;
    assert_eq!(read.body.as_ref(), b"\0\0\0\0xx");
}

#[tokio::test]
async fn rejects_pages_that_break_a_rule() {
    let rest = disk().await;
    for (range, bytes, failure) in [
        ("bytes=0-510", 511, (416, "InvalidPageRange")),
        ("bytes=4096-4607", 512, (416, "InvalidPageRange")),
        ("bytes=0-1023", 512, (400, "InvalidHeaderValue")),
        ("bytes=0-", 512, (400, "InvalidHeaderValue")),
        ("0-511", 512, (400, "InvalidHeaderValue")),
        ("bytes=0-4194815", 512, (413, "RequestBodyTooLarge")),
    ] {
        assert_eq!(write(&rest, range, bytes, &[]).await.failure(), failure, "{range}");
    }
    for (name, value) in [
        ("x-ms-if-sequence-number-le", "6"),
        ("x-ms-if-sequence-number-lt", "7"),
        ("x-ms-if-sequence-number-eq", "8"),
    ] {
        let failed = write(&rest, "bytes=0-511", 512, &[(name, value)]).await;
        assert_eq!(failed.failure(), (412, "SequenceNumberConditionNotMet"), "{name}");
    }
    let without = rest.call_with("PUT", PAGE, &[("range", "bytes=0-511")]).await;
    assert_eq!(without.failure(), (400, "MissingRequiredHeader"));
    let other = [("range", "bytes=0-511"), ("x-ms-page-write", "erase")];
    let other = rest.call_with("PUT", PAGE, &other).await;
    assert_eq!(other.failure(), (400, "InvalidHeaderValue"));
    let listed = rest.call("GET", "/disks/x?comp=pagelist").await;
    assert!(listed.text().ends_with("<PageList />"), "{listed:?}");
}

#[tokio::test]
async fn size_and_sequence_number_are_properties() {
    let rest = disk().await;
    let target = "/disks/x?comp=properties";
    let set = |headers: &'static [(&'static str, &'static str)]| {
        let rest = &rest;
        async move { rest.call_with("PUT", target, headers).await }
    };
    for (headers, size, number) in [
        (&[("x-ms-blob-content-length", "8192")][..], "8192", "7"),
        (&[("x-ms-sequence-number-action", "increment")], "8192", "8"),
        (
            &[("x-ms-sequence-number-action", "max"), ("x-ms-blob-sequence-number", "5")],
            "8192",
            "8",
        ),
        (
            &[("x-ms-sequence-number-action", "update"), ("x-ms-blob-sequence-number", "5")],
            "8192",
            "5",
        ),
        (&[("x-ms-blob-content-type", "a/b")], "8192", "5"),
    ] {
        let response = set(headers).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.header("x-ms-blob-sequence-number"), number);
        let read = rest.call("HEAD", "/disks/x").await;
        assert_eq!(read.header("content-length"), size);
        assert_eq!(read.header("x-ms-blob-sequence-number"), number);
    }
    for headers in [
        &[("x-ms-blob-content-length", "513")][..],
        &[("x-ms-sequence-number-action", "increment"), ("x-ms-blob-sequence-number", "1")],
        &[("x-ms-sequence-number-action", "lower"), ("x-ms-blob-sequence-number", "1")],
    ] {
        assert_eq!(set(headers).await.failure(), (400, "InvalidHeaderValue"), "{headers:?}");
    }
    let without = set(&[("x-ms-sequence-number-action", "max")]).await;
    assert_eq!(without.failure(), (400, "MissingRequiredHeader"));
}
