//! Copies, within the account.

use trestle_tests::{BlobRest, RestRequest};

async fn source() -> BlobRest {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let request = RestRequest::blob("PUT", "/photos/a%20b").with("x-ms-blob-type", "BlockBlob");
    let request = request.with("x-ms-meta-a", "1").with("x-ms-blob-content-type", "text/plain");
    assert_eq!(rest.send(request.body("hello")).await.status, 201);
    rest
}

#[tokio::test]
async fn a_copy_is_complete_when_it_is_answered() {
    let rest = source().await;
    let url = rest.url("/photos/a%20b");

    let copied = rest.call_with("PUT", "/photos/y", &[("x-ms-copy-source", &url)]).await;

    assert_eq!((copied.status, copied.header("x-ms-copy-status")), (202, "success"));
    let read = rest.call("GET", "/photos/y").await;
    assert_eq!((read.text(), read.header("content-type")), ("hello", "text/plain"));
    for (name, value) in [
        ("x-ms-meta-a", "1"),
        ("x-ms-copy-id", copied.header("x-ms-copy-id")),
        ("x-ms-copy-source", &url),
        ("x-ms-copy-progress", "5/5"),
        ("etag", copied.header("etag")),
    ] {
        assert_eq!(read.header(name), value, "{name}");
    }
    let abort = format!("/photos/y?comp=copy&copyid={}", copied.header("x-ms-copy-id"));
    let aborted = rest.call_with("PUT", &abort, &[("x-ms-copy-action", "abort")]).await;
    assert_eq!(aborted.failure(), (409, "NoPendingCopyOperation"));
    let with =
        [("x-ms-copy-source", url.as_str()), ("x-ms-meta-b", "2"), ("x-ms-requires-sync", "True")];
    assert_eq!(rest.call_with("PUT", "/photos/y", &with).await.status, 202);
    let read = rest.call("HEAD", "/photos/y").await;
    assert_eq!((read.header("x-ms-meta-a"), read.header("x-ms-meta-b")), ("", "2"));
}

#[tokio::test]
async fn a_copy_that_must_be_synchronous_has_a_small_block_blob_as_its_source() {
    let rest = source().await;
    let kind = ("x-ms-blob-type", "PageBlob");
    let size = ("x-ms-blob-content-length", "512");
    assert_eq!(rest.call_with("PUT", "/photos/disk", &[kind, size]).await.status, 201);
    let page = rest.url("/photos/disk");
    let copy = [("x-ms-copy-source", page.as_str()), ("x-ms-requires-sync", "true")];
    let failed = rest.call_with("PUT", "/photos/y", &copy).await;
    assert_eq!(failed.failure(), (409, "InvalidBlobType"));
    assert_eq!(rest.call("HEAD", "/photos/y").await.status, 404);
    assert_eq!(rest.call_with("PUT", "/photos/y", &copy[..1]).await.status, 202);
    let failed = rest.call_with("PUT", "/photos/z", &[copy[0], (copy[1].0, "yes")]).await;
    assert_eq!(failed.failure(), (400, "InvalidHeaderValue"));
}

#[tokio::test]
async fn a_write_from_a_url_records_no_copy() {
    let rest = source().await;
    let url = rest.url("/photos/a%20b");
    let headers = [("x-ms-copy-source", url.as_str()), ("x-ms-blob-type", "BlockBlob")];

    let written = rest.call_with("PUT", "/photos/y", &headers).await;

    assert_eq!((written.status, written.header("x-ms-copy-id")), (201, ""));
    let read = rest.call("GET", "/photos/y").await;
    assert_eq!((read.text(), read.header("x-ms-copy-id")), ("hello", ""));
    assert_eq!(read.header("content-type"), "text/plain");
    assert_eq!(read.header("x-ms-meta-a"), "", "metadata is not copied");
    let own = [&headers[..], &[("x-ms-copy-source-blob-properties", "false")]].concat();
    assert_eq!(rest.call_with("PUT", "/photos/z", &own).await.status, 201);
    let read = rest.call("GET", "/photos/z").await;
    assert_eq!(read.header("content-type"), "application/octet-stream");
    let again = [&headers[..], &[("if-none-match", "*")]].concat();
    let again = rest.call_with("PUT", "/photos/y", &again).await;
    assert_eq!(again.failure(), (409, "BlobAlreadyExists"));
}

#[tokio::test]
async fn blocks_appends_and_pages_are_read_from_a_url() {
    let rest = source().await;
    let source = rest.url("/photos/a%20b");
    let from = [("x-ms-copy-source", source.as_str()), ("x-ms-source-range", "bytes=1-3")];
    let staged = rest.call_with("PUT", "/photos/y?comp=block&blockid=QQ==", &from).await;
    assert_eq!(staged.status, 201, "{staged:?}");
    let list = "<BlockList><Latest>QQ==</Latest></BlockList>";
    rest.send(RestRequest::blob("PUT", "/photos/y?comp=blocklist").body(list)).await;
    assert_eq!(rest.call("GET", "/photos/y").await.text(), "ell");
    rest.call_with("PUT", "/photos/log", &[("x-ms-blob-type", "AppendBlob")]).await;
    let appended = rest.call_with("PUT", "/photos/log?comp=appendblock", &from[..1]).await;
    assert_eq!((appended.status, appended.header("x-ms-blob-append-offset")), (201, "0"));
    assert_eq!(rest.call("GET", "/photos/log").await.text(), "hello");
    rest.blob("/photos/page", "p".repeat(512)).await;
    let page = [("x-ms-blob-type", "PageBlob"), ("x-ms-blob-content-length", "1024")];
    rest.call_with("PUT", "/photos/disk", &page).await;
    let source = rest.url("/photos/page");
    let write = [
        ("x-ms-copy-source", source.as_str()),
        ("x-ms-page-write", "update"),
        ("x-ms-range", "bytes=512-1023"),
        ("x-ms-source-range", "bytes=0-511"),
    ];
    let written = rest.call_with("PUT", "/photos/disk?comp=page", &write).await;
    assert_eq!(written.status, 201, "{written:?}");
    let read = rest.call_with("GET", "/photos/disk", &[("range", "bytes=511-512")]).await;
    assert_eq!(read.body.as_ref(), b"\0p");
    let short = [&write[..3], &[("x-ms-source-range", "bytes=0-255")]].concat();
    let short = rest.call_with("PUT", "/photos/disk?comp=page", &short).await;
    assert_eq!(short.failure(), (400, "InvalidHeaderValue"));
}

#[tokio::test]
async fn a_copy_with_another_checksum_than_stated_writes_nothing() {
    let rest = source().await;
    let url = rest.url("/photos/a%20b");
    let block = ("x-ms-blob-type", "BlockBlob");
    for more in [&[][..], &[block]] {
        let with =
            |name, value| [&[("x-ms-copy-source", url.as_str()), (name, value)], more].concat();
        for (name, value, code) in [
            ("x-ms-source-content-md5", "AAAAAAAAAAAAAAAAAAAAAA==", "Md5Mismatch"),
            ("x-ms-source-content-crc64", "AAAAAAAAAAA=", "Crc64Mismatch"),
            ("x-ms-source-content-md5", "AAAA", "InvalidMd5"),
        ] {
            let failed = rest.call_with("PUT", "/photos/y", &with(name, value)).await;
            assert_eq!(failed.failure(), (400, code), "{name} {more:?}");
            assert_eq!(rest.call("HEAD", "/photos/y").await.status, 404);
        }
        let right = with("x-ms-source-content-md5", "XUFAKrxLKna5cZ2REBfFkg==");
        assert!(rest.call_with("PUT", "/photos/y", &right).await.status < 300);
        assert_eq!(rest.call("DELETE", "/photos/y").await.status, 202);
    }
}

#[tokio::test]
async fn a_name_that_ends_with_a_slash_is_the_source_and_not_the_one_without() {
    let rest = source().await;
    rest.blob("/photos/a", "without").await;
    rest.blob("/photos/a/", "with").await;
    let url = rest.url("/photos/a/");
    let copied = rest.call_with("PUT", "/photos/y", &[("x-ms-copy-source", &url)]).await;
    assert_eq!(copied.status, 202);
    assert_eq!(rest.call("GET", "/photos/y").await.text(), "with");
}

#[tokio::test]
async fn rejects_sources_that_are_none() {
    let rest = source().await;
    let url = rest.url("/photos/a%20b");
    for (source, failure) in [
        ("photos/a", (400, "InvalidHeaderValue")),
        (&*rest.url("/photos/none"), (404, "BlobNotFound")),
        ("http://192.0.2.1/account/c/b", (404, "CannotVerifyCopySource")),
        ("file:///etc/passwd", (400, "InvalidHeaderValue")),
        (&*format!("http://h/{}", "a".repeat(2048)), (400, "InvalidHeaderValue")),
    ] {
        let failed = rest.call_with("PUT", "/photos/y", &[("x-ms-copy-source", source)]).await;
        assert_eq!(failed.failure(), failure, "{source}");
    }
    let unmet = [("x-ms-copy-source", url.as_str()), ("x-ms-source-if-match", "\"0x1\"")];
    let unmet = rest.call_with("PUT", "/photos/y", &unmet).await;
    assert_eq!(unmet.failure(), (412, "SourceConditionNotMet"));
    assert_eq!(rest.call("HEAD", "/photos/y").await.status, 404);
}
