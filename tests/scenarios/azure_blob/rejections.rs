//! Requests that break a rule of the protocol: each with the error of Azure, and nothing is written.

use http::Version;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use trestle_tests::{BlobRest, RestRequest};

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn what_is_not_implemented_is_refused_by_its_name() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    for (method, target) in [
        ("POST", "/photos/x?comp=query"),
        ("PUT", "/photos/x?comp=expiry"),
        ("PUT", "/photos/x?comp=immutabilityPolicies"),
        ("PUT", "/photos/x?comp=legalhold"),
        ("PUT", "/photos/x?comp=incrementalcopy"),
        ("PUT", "/photos?restype=container&comp=rename"),
    ] {
        let failed = rest.call(method, target).await;
        assert_eq!(failed.failure(), (501, "NotImplemented"), "{method} {target}");
    }
    for name in ["x-ms-encryption-key", "x-ms-legal-hold", "x-ms-expiry-option"] {
        let request = RestRequest::blob("PUT", "/photos/x").with("x-ms-blob-type", "BlockBlob");
        let failed = rest.send(request.with(name, "v").body("1")).await;
        assert_eq!(failed.failure(), (400, "UnsupportedHeader"), "{name}");
    }
    assert_eq!(rest.call("HEAD", "/photos/x").await.status, 404);
}

#[tokio::test]
async fn a_condition_that_cannot_be_read_never_counts_as_absent() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/x", "1").await;
    for (name, value) in [
        ("if-match", "\u{e9}"),
        ("if-match", ""),
        ("if-match", "*,"),
        ("if-unmodified-since", "\u{e9}"),
        ("x-ms-if-tags", "\u{e9}"),
        ("x-ms-lease-id", "\u{e9}"),
    ] {
        let failed = rest.call_with("DELETE", "/photos/x", &[(name, value)]).await;
        assert_eq!(failed.failure(), (400, "InvalidHeaderValue"), "{name}: {value}");
    }
    for target in ["/photos/x?snapshot=", "/photos/x?versionid="] {
        let failed = rest.call("DELETE", target).await;
        assert_eq!(failed.failure(), (400, "InvalidQueryParameterValue"), "{target}");
    }
    for name in ["x-ms-access-tier-if-modified-since", "x-ms-blob-if-match"] {
        let failed = rest.call_with("DELETE", "/photos/x", &[(name, "x")]).await;
        assert_eq!(failed.failure(), (400, "UnsupportedHeader"), "{name}");
    }
    let container = "/photos?restype=container";
    let failed = rest.call_with("DELETE", container, &[("if-match", "\"x\"")]).await;
    assert_eq!(failed.failure(), (400, "ConditionHeadersNotSupported"));
    let md5 = [("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")];
    let failed = rest.call_with("PUT", "/photos/x?comp=metadata", &md5).await;
    assert_eq!(failed.failure(), (400, "Md5Mismatch"));
    assert_eq!(rest.call("HEAD", "/photos/x").await.status, 200);
}

#[tokio::test]
async fn over_http_2_an_error_of_a_head_has_no_body_and_an_upload_a_length() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let head = RestRequest::blob("HEAD", "/photos/none").over(Version::HTTP_2);
    let head = rest.send(head).await;
    assert_eq!((head.status, head.header("x-ms-error-code")), (404, "BlobNotFound"));
    assert_eq!((head.text(), head.header("content-type")), ("", ""));
    let put = || RestRequest::blob("PUT", "/photos/x").with("x-ms-blob-type", "BlockBlob");
    let put = put().over(Version::HTTP_2).body("hello");
    assert_eq!(rest.send(put).await.status, 201);
}

#[tokio::test]
async fn names_have_the_bounds_of_azure() {
    let rest = BlobRest::start().await;
    for (name, failure) in [
        ("ab", (400, "OutOfRangeInput")),
        ("Photos", (400, "InvalidResourceName")),
        ("a--b", (400, "InvalidResourceName")),
    ] {
        let failed = rest.call("PUT", &format!("/{name}?restype=container")).await;
        assert_eq!(failed.failure(), failure, "{name}");
    }
    rest.container("photos").await;
    let longest = "é".repeat(1024);
    let longest: String = longest.bytes().map(|byte| format!("%{byte:02X}")).collect();
    rest.blob(&format!("/photos/{longest}"), "1").await;
    let put = |target: String| {
        rest.send(RestRequest::blob("PUT", &target).with("x-ms-blob-type", "BlockBlob"))
    };
    let failed = put(format!("/photos/{longest}a")).await;
    assert_eq!(failed.status, 400, "{failed:?}");
    let segments = put(format!("/photos/{}", vec!["a"; 255].join("/"))).await;
    assert_eq!(segments.failure(), (400, "InvalidUri"));
    for name in ["a//b", "../x", "a/./b", "a%2F%2E%2E"] {
        rest.blob(&format!("/photos/{name}"), name).await;
        assert_eq!(rest.call("GET", &format!("/photos/{name}")).await.text(), name);
    }
}

#[tokio::test]
async fn bodies_have_the_bounds_of_the_version_of_their_request() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let kind = [("x-ms-blob-type", "AppendBlob")];
    assert_eq!(rest.call_with("PUT", "/photos/log", &kind).await.status, 201);
    for (target, version, bytes_max) in [
        ("/photos/x", "2015-12-11", 64 * MIB),
        ("/photos/x", "2019-12-11", 256 * MIB),
        ("/photos/x", "2019-12-12", 5000 * MIB),
        ("/photos/x?comp=block&blockid=QQ==", "2016-05-30", 4 * MIB),
        ("/photos/x?comp=block&blockid=QQ==", "2016-05-31", 100 * MIB),
        ("/photos/x?comp=block&blockid=QQ==", "2026-10-06", 4000 * MIB),
        ("/photos/log?comp=appendblock", "2022-11-01", 4 * MIB),
        ("/photos/log?comp=appendblock", "2022-11-02", 100 * MIB),
    ] {
        // The length alone is enough: nothing of the body has to arrive.
        let request = RestRequest::blob("PUT", target).with("x-ms-version", version);
        let request = request.with("x-ms-blob-type", "BlockBlob");
        let request = request.with("x-ms-structured-body", "XSM/1.0; properties=crc64");
        let length = (bytes_max + 1).to_string();
        let failed = rest.send(request.with("x-ms-structured-content-length", &length)).await;
        assert_eq!(failed.failure(), (413, "RequestBodyTooLarge"), "{target}: {version}");
        assert_eq!(failed.only("MaxLimit"), bytes_max.to_string());
    }
    let body = vec![b'x'; (4 << 20) + 1];
    let append = RestRequest::blob("PUT", "/photos/log?comp=appendblock").body(&body);
    let failed = rest.send(append.clone().with("x-ms-version", "2021-12-02")).await;
    assert_eq!(failed.failure(), (413, "RequestBodyTooLarge"));
    assert_eq!(rest.send(append.with("x-ms-version", "2022-11-02")).await.status, 201);
}

#[tokio::test]
async fn base64_with_bits_that_are_not_used_is_malformed() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    // They would be another text for the same bytes, and so a second name for a block.
    let block = RestRequest::blob("PUT", "/photos/x?comp=block&blockid=QR==").body("1");
    assert_eq!(rest.send(block).await.failure(), (400, "InvalidQueryParameterValue"));
    for (name, value, code) in [
        ("content-md5", "AAAAAAAAAAAAAAAAAAAAAB==", "InvalidMd5"),
        ("x-ms-content-crc64", "AAAAAAAAAAB=", "InvalidHeaderValue"),
    ] {
        let put = RestRequest::blob("PUT", "/photos/x").with("x-ms-blob-type", "BlockBlob");
        let failed = rest.send(put.with(name, value).body("1")).await;
        assert_eq!(failed.failure(), (400, code), "{name}");
    }
}

#[tokio::test]
async fn metadata_is_limited_and_keeps_its_case() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let put = || RestRequest::blob("PUT", "/photos/x").with("x-ms-blob-type", "BlockBlob");
    let large = put().with("x-ms-meta-a", &"v".repeat(8192));
    assert_eq!(rest.send(large).await.failure(), (400, "MetadataTooLarge"));
    let sign = put().with("x-ms-meta-a-b", "v");
    assert_eq!(rest.send(sign).await.failure(), (400, "InvalidMetadata"));
    let twice = put().with("x-ms-meta-a", "1").and("x-ms-meta-a", "2");
    assert_eq!(rest.send(twice).await.failure(), (400, "InvalidMetadata"));
    let largest = put().with("x-ms-meta-a", &"v".repeat(8191));
    assert_eq!(rest.send(largest).await.status, 201);
}

#[tokio::test]
async fn a_body_that_ends_early_writes_nothing() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let request = RestRequest::blob("PUT", "/photos/x").with("x-ms-blob-type", "BlockBlob");
    let signed = request.body("x".repeat(300_000)).to_http(rest.address());
    let mut head = format!("PUT {} HTTP/1.1\r\n", signed.uri());
    for (name, value) in signed.headers() {
        head += &format!("{name}: {}\r\n", value.to_str().unwrap());
    }
    head += "\r\n";
    let mut stream = TcpStream::connect(rest.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&signed.body()[..200_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let status = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || status.starts_with("HTTP/1.1 4"), "{status}");
    assert_eq!(rest.call("HEAD", "/photos/x").await.status, 404);
    let listed = rest.call("GET", "/photos?restype=container&comp=list&include=uncommittedblobs");
    assert!(listed.await.text().contains("<Blobs />"));
}
