//! Put Blob, Get Blob, and what describes a blob.

use trestle_tests::{BlobRest, RestRequest};

/// Writes a block blob with these headers.
fn put(target: &str, body: &str, headers: &[(&'static str, &str)]) -> RestRequest {
    let request = RestRequest::blob("PUT", target).with("x-ms-blob-type", "BlockBlob").body(body);
    headers.iter().fold(request, |request, (name, value)| request.with(name, value))
}

#[tokio::test]
async fn a_blob_is_read_as_it_was_written() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let headers = [
        ("content-type", "application/octet-stream"),
        ("x-ms-blob-content-type", "text/plain"),
        ("x-ms-blob-cache-control", "max-age=5"),
        ("x-ms-blob-content-language", "en"),
        ("x-ms-meta-owner", "me"),
        ("x-ms-tags", "state=new&a%20b=c+d"),
    ];

    let written = rest.send(put("/photos/a%20b/c", "hello world", &headers)).await;

    assert_eq!((written.status, written.text()), (201, ""));
    let md5 = "XrY7u+Ae7tCTyyK7j1rNww==";
    assert_eq!(written.header("content-md5"), md5);
    assert_eq!(written.header("x-ms-content-crc64"), "vo7q9sPVKY0=");
    assert_eq!(written.header("x-ms-request-server-encrypted"), "true");
    let read = rest.call("GET", "/photos/a%20b/c").await;
    assert_eq!((read.status, read.text()), (200, "hello world"));
    let head = rest.call("HEAD", "/photos/a%20b/c").await;
    assert_eq!((head.status, head.text()), (200, ""));
    for response in [&read, &head] {
        for (name, value) in [
            ("etag", written.header("etag")),
            ("content-length", "11"),
            ("content-md5", md5),
            ("content-type", "text/plain"),
            ("cache-control", "max-age=5"),
            ("content-language", "en"),
            ("accept-ranges", "bytes"),
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-meta-owner", "me"),
            ("x-ms-tag-count", "2"),
            ("x-ms-lease-state", "available"),
            ("x-ms-server-encrypted", "true"),
        ] {
            assert_eq!(response.header(name), value, "{name}: {response:?}");
        }
    }
    assert_eq!(head.header("x-ms-access-tier"), "Hot");
    assert_eq!(head.header("x-ms-access-tier-inferred"), "true");
    assert_eq!(read.header("x-ms-access-tier"), "");
    let metadata = rest.call("HEAD", "/photos/a%20b/c?comp=metadata").await;
    assert_eq!(metadata.header("x-ms-meta-owner"), "me");
    assert_eq!(metadata.header("x-ms-blob-type"), "");
}

#[tokio::test]
async fn a_content_of_several_messages_survives_both_ways() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let content: Vec<u8> = (0..1_500_000_u32).flat_map(|at| at.to_le_bytes()).collect();

    rest.blob("/photos/large", &content).await;

    let read = rest.call("GET", "/photos/large").await;
    assert_eq!(read.status, 200);
    assert!(read.body == content, "another content");
    let part = rest.call_with("GET", "/photos/large", &[("range", "bytes=1000000-4999999")]).await;
    assert_eq!(part.status, 206);
    assert!(part.body == content[1_000_000..5_000_000], "another part");
}

#[tokio::test]
async fn ranges_are_those_of_azure() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/five", "abcde").await;
    rest.blob("/photos/empty", "").await;
    for (header, range, status, text, content_range) in [
        ("range", "bytes=0-1", 206, "ab", "bytes 0-1/5"),
        ("range", "bytes=3-", 206, "de", "bytes 3-4/5"),
        ("range", "bytes=0-999", 206, "abcde", "bytes 0-4/5"),
        ("x-ms-range", "bytes=4-4", 206, "e", "bytes 4-4/5"),
        ("range", "bytes=-2", 200, "abcde", ""),
        ("range", "bytes=3-2", 200, "abcde", ""),
        ("range", "bytes=0-0,2-2", 200, "abcde", ""),
    ] {
        let read = rest.call_with("GET", "/photos/five", &[(header, range)]).await;
        assert_eq!((read.status, read.text()), (status, text), "{range}");
        assert_eq!(read.header("content-range"), content_range, "{range}");
        let whole = if status == 206 { "x-ms-blob-content-md5" } else { "content-md5" };
        assert_ne!(read.header(whole), "", "{range}");
    }
    let both = [("range", "bytes=0-0"), ("x-ms-range", "bytes=1-1")];
    assert_eq!(rest.call_with("GET", "/photos/five", &both).await.text(), "b");
    for (target, range, size) in
        [("/photos/five", "bytes=5-", "bytes */5"), ("/photos/empty", "bytes=0-0", "bytes */0")]
    {
        let read = rest.call_with("GET", target, &[("range", range)]).await;
        assert_eq!(read.failure(), (416, "InvalidRange"), "{range}");
        assert_eq!(read.header("content-range"), size);
    }
    let empty = rest.call("GET", "/photos/empty").await;
    assert_eq!((empty.status, empty.header("content-length")), (200, "0"));
}

#[tokio::test]
async fn a_range_is_read_with_its_own_checksum() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/x", "..hello world..").await;
    let range = ("range", "bytes=2-12");
    for (name, header, value) in [
        ("x-ms-range-get-content-md5", "content-md5", "XrY7u+Ae7tCTyyK7j1rNww=="),
        ("x-ms-range-get-content-crc64", "x-ms-content-crc64", "vo7q9sPVKY0="),
    ] {
        let read = rest.call_with("GET", "/photos/x", &[range, (name, "true")]).await;
        assert_eq!((read.status, read.text()), (206, "hello world"));
        assert_eq!(read.header(header), value);
        let without = rest.call_with("GET", "/photos/x", &[(name, "true")]).await;
        assert_eq!(without.failure(), (400, "InvalidHeaderValue"), "{name}");
        let long = [("range", "bytes=0-4194304"), (name, "true")];
        let long = rest.call_with("GET", "/photos/x", &long).await;
        assert_eq!(long.failure(), (400, "InvalidHeaderValue"), "{name}");
    }
}

#[tokio::test]
async fn a_body_with_another_checksum_is_rejected_and_nothing_is_written() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let (md5, crc64) = ("XrY7u+Ae7tCTyyK7j1rNww==", "vo7q9sPVKY0=");
    for (headers, failure) in [
        (&[("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")][..], (400, "Md5Mismatch")),
        (&[("x-ms-blob-content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")], (400, "Md5Mismatch")),
        (&[("x-ms-content-crc64", "AAAAAAAAAAA=")], (400, "Crc64Mismatch")),
        (&[("content-md5", "AAAA")], (400, "InvalidMd5")),
        (&[("x-ms-content-crc64", "AAAA")], (400, "InvalidHeaderValue")),
        (
            &[("content-md5", md5), ("x-ms-content-crc64", crc64)],
            (400, "BothCrc64AndMd5HeaderPresent"),
        ),
    ] {
        let written = rest.send(put("/photos/x", "hello world", headers)).await;
        assert_eq!(written.failure(), failure, "{headers:?}");
        assert_eq!(rest.call("HEAD", "/photos/x").await.status, 404);
    }
    for headers in [[("content-md5", md5)], [("x-ms-content-crc64", crc64)]] {
        assert_eq!(rest.send(put("/photos/x", "hello world", &headers)).await.status, 201);
    }
}

#[tokio::test]
async fn a_cache_keeps_a_blob_by_the_rules_of_its_owner_only() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let etag = rest.blob("/photos/x", "1").await;
    assert_eq!(rest.call("GET", "/photos/x").await.header("cache-control"), "");
    let unchanged = rest.call_with("GET", "/photos/x", &[("if-none-match", &etag)]).await;
    assert_eq!((unchanged.status, unchanged.header("cache-control")), (304, ""));
    for target in ["/photos?restype=container", "/photos?restype=container&comp=list", "/photos/y"]
    {
        let response = rest.call("GET", target).await;
        assert_eq!(response.header("cache-control"), "no-cache", "{target}");
    }
}

#[tokio::test]
async fn properties_and_metadata_are_replaced_as_a_whole() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let headers = [("x-ms-blob-content-language", "en"), ("x-ms-meta-a", "1")];
    rest.send(put("/photos/x", "1", &headers)).await;

    let set = [("x-ms-blob-content-type", "text/css")];
    let set = rest.call_with("PUT", "/photos/x?comp=properties", &set).await;

    assert_eq!(set.status, 200, "{set:?}");
    let read = rest.call("HEAD", "/photos/x").await;
    assert_eq!(read.header("content-type"), "text/css");
    assert_eq!(read.header("content-language"), "");
    assert_eq!((read.header("x-ms-meta-a"), read.header("etag")), ("1", set.header("etag")));
    let set = [("x-ms-meta-b", "2")];
    let set = rest.call_with("PUT", "/photos/x?comp=metadata", &set).await;
    assert_eq!(set.status, 200, "{set:?}");
    let read = rest.call("GET", "/photos/x?comp=metadata").await;
    assert_eq!((read.header("x-ms-meta-a"), read.header("x-ms-meta-b")), ("", "2"));
}

#[tokio::test]
async fn tags_are_a_document_and_change_no_etag() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let etag = rest.blob("/photos/x", "1").await;
    let tag = "<Tag><Key>state</Key><Value>a b</Value></Tag>";
    let body = format!("<Tags><TagSet>{tag}</TagSet></Tags>");

    let set = RestRequest::blob("PUT", "/photos/x?comp=tags").body(&body);
    let set = rest.send(set).await;

    assert_eq!((set.status, set.text()), (204, ""));
    let read = rest.call("GET", "/photos/x?comp=tags").await;
    assert_eq!((read.only("Key"), read.only("Value")), ("state".to_owned(), "a b".to_owned()));
    assert_eq!(rest.call("HEAD", "/photos/x").await.header("etag"), etag);
    let filter = "/?comp=blobs&where=%22state%22%3D%27a%20b%27";
    let found = rest.call("GET", filter).await;
    assert_eq!((found.only("Name"), found.only("ContainerName")), ("x".into(), "photos".into()));
    let within =
        rest.call("GET", "/photos?restype=container&comp=blobs&where=%22state%22%3C%27b%27");
    assert_eq!(within.await.only("Name"), "x");
    let wrong = RestRequest::blob("PUT", "/photos/x?comp=tags").body("<Tags/>");
    assert_eq!(rest.send(wrong).await.failure(), (400, "MissingRequiredXmlNode"));
}

#[tokio::test]
async fn a_blob_of_one_segment_is_in_the_root_container() {
    let rest = BlobRest::start().await;
    assert_eq!(rest.call("GET", "/icon.png").await.failure(), (404, "ContainerNotFound"));
    rest.container("$root").await;
    rest.blob("/icon.png", "i").await;
    assert_eq!(rest.call("GET", "/$root/icon.png").await.text(), "i");
    let listed = rest.call("GET", "/$root?restype=container&comp=list").await;
    assert_eq!(listed.only("Name"), "icon.png");
}
