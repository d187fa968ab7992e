//! Append blobs.

use trestle_tests::{BlobRest, RestRequest, RestResponse};

async fn append(rest: &BlobRest, content: &str, headers: &[(&'static str, &str)]) -> RestResponse {
    let request = RestRequest::blob("PUT", "/logs/x?comp=appendblock").body(content);
    let with =
        |request: RestRequest, (name, value): &(&'static str, &str)| request.with(name, value);
    rest.send(headers.iter().fold(request, with)).await
}

async fn create(rest: &BlobRest) -> RestResponse {
    rest.call_with("PUT", "/logs/x", &[("x-ms-blob-type", "AppendBlob")]).await
}

#[tokio::test]
async fn blocks_are_appended_by_their_conditions() {
    let rest = BlobRest::start().await;
    rest.container("logs").await;
    assert_eq!(append(&rest, "a", &[]).await.failure(), (404, "BlobNotFound"));
    assert_eq!(create(&rest).await.status, 201);

    let first = append(&rest, "hello ", &[]).await;
    let second = append(&rest, "world", &[("x-ms-blob-condition-appendpos", "6")]).await;

    for (response, offset, count) in [(&first, "0", "1"), (&second, "6", "2")] {
        assert_eq!(response.status, 201, "{response:?}");
        assert_eq!(response.header("x-ms-blob-append-offset"), offset);
        assert_eq!(response.header("x-ms-blob-committed-block-count"), count);
        assert_ne!(response.header("x-ms-content-crc64"), "");
    }
    for (name, value, code) in [
        ("x-ms-blob-condition-appendpos", "6", "AppendPositionConditionNotMet"),
        ("x-ms-blob-condition-maxsize", "11", "MaxBlobSizeConditionNotMet"),
    ] {
        assert_eq!(append(&rest, "!", &[(name, value)]).await.failure(), (412, code));
    }
    assert_eq!(append(&rest, "", &[]).await.failure(), (400, "InvalidHeaderValue"));
    let bad = append(&rest, "!", &[("x-ms-blob-condition-appendpos", "-1")]).await;
    assert_eq!(bad.failure(), (400, "InvalidHeaderValue"));
    assert_eq!(rest.call("GET", "/logs/x").await.text(), "hello world");
}

#[tokio::test]
async fn a_sealed_blob_takes_no_more() {
    let rest = BlobRest::start().await;
    rest.container("logs").await;
    create(&rest).await;
    append(&rest, "a", &[]).await;

    for _ in 0..2 {
        let sealed = rest.call("PUT", "/logs/x?comp=seal").await;
        assert_eq!((sealed.status, sealed.header("x-ms-blob-sealed")), (200, "true"));
    }

    assert_eq!(append(&rest, "b", &[]).await.failure(), (409, "BlobIsSealed"));
    let read = rest.call("HEAD", "/logs/x").await;
    assert_eq!(read.header("x-ms-blob-sealed"), "true");
    assert_eq!(read.header("x-ms-blob-committed-block-count"), "1");
}

#[tokio::test]
async fn a_blob_keeps_its_type_until_it_is_deleted() {
    let rest = BlobRest::start().await;
    rest.container("logs").await;
    create(&rest).await;
    let block = [("x-ms-blob-type", "BlockBlob")];
    let block = || rest.call_with("PUT", "/logs/x", &block);
    assert_eq!(block().await.failure(), (409, "InvalidBlobType"));
    assert_eq!(rest.call("DELETE", "/logs/x").await.status, 202);
    assert_eq!(block().await.status, 201);
    assert_eq!(append(&rest, "b", &[]).await.failure(), (409, "InvalidBlobType"));
    let with_body = RestRequest::blob("PUT", "/logs/y").with("x-ms-blob-type", "AppendBlob");
    let with_body = rest.send(with_body.body("a")).await;
    assert_eq!(with_body.failure(), (400, "InvalidHeaderValue"));
}
