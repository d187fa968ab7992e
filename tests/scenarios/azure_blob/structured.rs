//! Bodies that are structured messages, in both directions.

use trestle_azure::structured::{StructuredDecoder, StructuredEncoder};
use trestle_tests::{BlobRest, RestRequest, RestResponse};

const FORM: &str = "XSM/1.0; properties=crc64";

/// A structured message with this content.
fn message(content: &[u8]) -> Vec<u8> {
    let mut encoder = StructuredEncoder::new(content.len() as u64);
    let mut bytes = encoder.start().to_vec();
    for piece in encoder.encode(bytes::Bytes::copy_from_slice(content)) {
        bytes.extend(piece);
    }
    bytes
}

/// An upload of a structured message whose content has this length.
fn upload(target: &str, length: usize, message: &[u8]) -> RestRequest {
    RestRequest::blob("PUT", target)
        .with("x-ms-blob-type", "BlockBlob")
        .with("x-ms-structured-body", FORM)
        .with("x-ms-structured-content-length", &length.to_string())
        .body(message)
}

/// The content of a response that is a structured message.
fn decoded(response: &RestResponse) -> Vec<u8> {
    assert_eq!(response.header("x-ms-structured-body"), FORM, "{:?}", response.headers);
    let length = response.header("x-ms-structured-content-length").parse().unwrap();
    assert_eq!(response.header("content-length"), response.body.len().to_string());
    let (mut decoder, mut bytes) = (StructuredDecoder::new(length), response.body.clone());
    let mut content = Vec::new();
    while let Some(piece) = decoder.decode(&mut bytes).unwrap() {
        content.extend(piece);
    }
    decoder.finish().unwrap();
    assert_eq!(content.len() as u64, length);
    content
}

/// Content of this length.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect()
}

#[tokio::test]
async fn a_structured_body_is_stored_as_its_content() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    for length in [0, 1, 511, 300_000, (4 << 20) + 1] {
        let content = content(length);
        let put = rest.send(upload("/photos/x", length, &message(&content))).await;
        assert_eq!((put.status, put.header("x-ms-structured-body")), (201, FORM), "{put:?}");
        let read = rest.call("GET", "/photos/x").await;
        assert!(read.body == content, "{length}");
        assert_eq!(read.header("x-ms-structured-body"), "");
        assert_eq!(read.header("content-md5"), put.header("content-md5"));
    }
}

#[tokio::test]
async fn blocks_appends_and_pages_are_structured_bodies_too() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let content = content(1024);
    let message = message(&content);
    let created = rest.call_with("PUT", "/photos/log", &[("x-ms-blob-type", "AppendBlob")]).await;
    assert_eq!(created.status, 201);
    let size = ("x-ms-blob-content-length", "1024");
    let kind = ("x-ms-blob-type", "PageBlob");
    assert_eq!(rest.call_with("PUT", "/photos/disk", &[kind, size]).await.status, 201);
    let page = |length| {
        let page = upload("/photos/disk?comp=page", length, &message);
        page.with("x-ms-page-write", "update").with("x-ms-range", "bytes=0-1023")
    };
    for request in [
        upload("/photos/x?comp=block&blockid=QQ==", 1024, &message),
        upload("/photos/log?comp=appendblock", 1024, &message),
        page(1024),
    ] {
        let written = rest.send(request.without("x-ms-blob-type")).await;
        assert_eq!((written.status, written.header("x-ms-structured-body")), (201, FORM));
    }
    let list = RestRequest::blob("PUT", "/photos/x?comp=blocklist");
    let list = list.body("<BlockList><Latest>QQ==</Latest></BlockList>");
    assert_eq!(rest.send(list).await.status, 201);
    for path in ["/photos/x", "/photos/log", "/photos/disk"] {
        assert!(rest.call("GET", path).await.body == content, "{path}");
    }
    let failed = rest.send(page(1023)).await;
    assert_eq!(failed.failure(), (400, "InvalidHeaderValue"), "another length than the range");
}

#[tokio::test]
async fn a_read_is_a_structured_message_on_request() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let content = content((4 << 20) + 70_000);
    rest.blob("/photos/x", &content).await;
    rest.blob("/photos/empty", "").await;
    let form = ("x-ms-structured-body", FORM);
    let read = rest.call_with("GET", "/photos/x", &[form]).await;
    assert_eq!(read.status, 200);
    assert!(decoded(&read) == content);
    let range = ("x-ms-range", "bytes=100-4194400");
    let read = rest.call_with("GET", "/photos/x", &[form, range]).await;
    assert_eq!(read.status, 206);
    assert_eq!(read.header("content-range"), format!("bytes 100-4194400/{}", content.len()));
    assert!(decoded(&read) == content[100..=4_194_400]);
    let empty = rest.call_with("GET", "/photos/empty", &[form]).await;
    assert_eq!((empty.status, decoded(&empty).len()), (200, 0));
    let both = [form, ("x-ms-range", "bytes=0-1"), ("x-ms-range-get-content-md5", "true")];
    let failed = rest.call_with("GET", "/photos/x", &both).await;
    assert_eq!(failed.failure(), (400, "InvalidHeaderValue"));
}

#[tokio::test]
async fn a_damaged_or_false_message_writes_nothing() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    let etag = rest.blob("/photos/x", "before").await;
    let content = content(200_000);
    let whole = message(&content);
    let damaged = |at: usize| {
        let mut message = whole.clone();
        message[at] ^= 1;
        message
    };
    let longer = [&whole[..], b"x"].concat();
    for (length, message, failure) in [
        (200_000, damaged(150_000), "Crc64Mismatch"),
        (200_000, damaged(whole.len() - 9), "Crc64Mismatch"),
        (200_000, damaged(whole.len() - 1), "Crc64Mismatch"),
        (200_000, damaged(0), "InvalidInput"),
        (200_000, damaged(13), "InvalidInput"),
        (200_000, damaged(15), "InvalidInput"),
        (200_000, whole[..whole.len() - 1].to_vec(), "InvalidInput"),
        (200_000, longer, "InvalidInput"),
        (199_999, whole.clone(), "InvalidInput"),
        (200_001, whole.clone(), "InvalidInput"),
        (0, whole.clone(), "InvalidInput"),
        (6, b"before".to_vec(), "InvalidInput"),
    ] {
        for target in ["/photos/x", "/photos/y", "/photos/y?comp=block&blockid=QQ=="] {
            let failed = rest.send(upload(target, length, &message)).await;
            assert_eq!(failed.failure(), (400, failure), "{target}: {length}, {}", message.len());
        }
    }
    assert_eq!(rest.call("HEAD", "/photos/x").await.header("etag"), etag);
    let listed = rest.call("GET", "/photos?restype=container&comp=list&include=uncommittedblobs");
    assert_eq!(listed.await.all("Name"), ["x"]);
    let too_long = upload("/photos/x?comp=appendblock", (100 << 20) + 1, &whole);
    assert_eq!(rest.send(too_long).await.failure(), (413, "RequestBodyTooLarge"));
}

#[tokio::test]
async fn other_forms_and_operations_are_refused() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    rest.blob("/photos/x", "1").await;
    let whole = message(b"1");
    for form in ["XSM/2.0; properties=crc64", "XSM/1.0; properties=sha256", "x"] {
        let put = upload("/photos/x", 1, &whole).with("x-ms-structured-body", form);
        assert_eq!(rest.send(put).await.failure(), (400, "UnsupportedHeader"), "{form}");
        let read = rest.call_with("GET", "/photos/x", &[("x-ms-structured-body", form)]).await;
        assert_eq!(read.failure(), (400, "UnsupportedHeader"), "{form}");
    }
    let without = upload("/photos/x", 1, &whole).without("x-ms-structured-content-length");
    assert_eq!(rest.send(without).await.failure(), (400, "MissingRequiredHeader"));
    let without = upload("/photos/x", 1, &whole).without("x-ms-structured-body");
    assert_eq!(rest.send(without).await.failure(), (400, "MissingRequiredHeader"));
    for target in ["/photos/x?comp=blocklist", "/photos/x?comp=tags", "/photos?restype=container"] {
        let failed = rest.send(upload(target, 1, &whole)).await;
        assert_eq!(failed.failure(), (400, "UnsupportedHeader"), "{target}");
    }
    assert_eq!(rest.call("GET", "/photos/x").await.text(), "1");
}
