//! Put Block, Put Block List, Get Block List.

use trestle_tests::{BlobRest, RestRequest, RestResponse};

const LIST: &str = "/photos/x?comp=blocklist";

async fn stage(rest: &BlobRest, id: &str, content: &str) -> RestResponse {
    let target = format!("/photos/x?comp=block&blockid={id}");
    rest.send(RestRequest::blob("PUT", &target).body(content)).await
}

fn commit(inside: &str) -> RestRequest {
    let body = format!("<?xml version=\"1.0\"?>\n<BlockList>\n{inside}\n</BlockList>");
    RestRequest::blob("PUT", LIST).with("content-type", "application/xml").body(body)
}

#[tokio::test]
async fn a_list_of_blocks_is_read_by_a_condition_on_tags() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    assert_eq!(stage(&rest, "QQ==", "hello").await.status, 201);
    let read =
        async |condition: &str| rest.call_with("GET", LIST, &[("x-ms-if-tags", condition)]).await;
    let uncommitted = read("\"a\" = '1'").await;
    assert_eq!(uncommitted.failure(), (412, "ConditionNotMet"), "it has no tags");
    let list = commit("<Latest>QQ==</Latest>").with("x-ms-tags", "a=1");
    assert_eq!(rest.send(list).await.status, 201);
    assert_eq!(read("\"a\" = '1'").await.all("Name"), ["QQ=="]);
    assert_eq!(read("\"a\" = '2'").await.failure(), (412, "ConditionNotMet"));
    assert_eq!(read("a").await.failure(), (400, "InvalidHeaderValue"));
}

#[tokio::test]
async fn blocks_become_a_blob_in_the_order_of_their_list() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;

    let staged = stage(&rest, "QQ==", "hello world").await;

    assert_eq!((staged.status, staged.header("x-ms-content-crc64")), (201, "vo7q9sPVKY0="));
    assert_eq!(staged.header("etag"), "");
    assert_eq!(stage(&rest, "Qg==", "bb").await.status, 201);
    assert_eq!(rest.call("GET", "/photos/x").await.failure(), (404, "BlobNotFound"));
    let listed = rest.call("GET", "/photos/x?comp=blocklist&blocklisttype=all").await;
    assert_eq!(listed.all("Name"), ["QQ==", "Qg=="]);
    assert_eq!(listed.all("Size"), ["11", "2"]);
    assert_eq!(listed.header("etag"), "");

    let list = commit("<Latest>Qg==</Latest> <Uncommitted>QQ==</Uncommitted>");
    let committed = rest.send(list.with("x-ms-blob-content-type", "text/plain")).await;

    assert_eq!(committed.status, 201, "{committed:?}");
    assert_ne!(committed.header("x-ms-content-crc64"), "");
    let read = rest.call("GET", "/photos/x").await;
    assert_eq!((read.text(), read.header("content-type")), ("bbhello world", "text/plain"));
    assert_eq!(read.header("content-md5"), "", "of blocks none is computed");
    let listed = rest.call("GET", LIST).await;
    assert_eq!(listed.all("Name"), ["Qg==", "QQ=="]);
    assert_eq!(listed.header("x-ms-blob-content-length"), "13");
    let of_other = rest.call("GET", "/photos/x?comp=blocklist&blocklisttype=some").await;
    assert_eq!(of_other.failure(), (400, "InvalidQueryParameterValue"));
}

#[tokio::test]
async fn rejects_lists_and_blocks_that_break_a_rule() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    assert_eq!(stage(&rest, "QQ==", "a").await.status, 201);
    for (inside, failure) in [
        ("<Latest>Wg==</Latest>", (400, "InvalidBlockList")),
        ("<Committed>QQ==</Committed>", (400, "InvalidBlockList")),
        ("<Latest>no base64</Latest>", (400, "InvalidBlockList")),
        ("<Block>QQ==</Block>", (400, "InvalidXmlDocument")),
        ("<Latest>QQ==", (400, "InvalidXmlDocument")),
    ] {
        assert_eq!(rest.send(commit(inside)).await.failure(), failure, "{inside}");
    }
    let wrong = commit("<Latest>QQ==</Latest>").with("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==");
    assert_eq!(rest.send(wrong).await.failure(), (400, "Md5Mismatch"));
    assert_eq!(stage(&rest, "QUE=", "a").await.failure(), (400, "InvalidBlobOrBlock"));
    assert_eq!(stage(&rest, "no!", "a").await.failure(), (400, "InvalidQueryParameterValue"));
    assert_eq!(stage(&rest, "QQ==", "").await.failure(), (400, "InvalidHeaderValue"));
    let without = RestRequest::blob("PUT", "/photos/x?comp=block").body("a");
    assert_eq!(rest.send(without).await.failure(), (400, "MissingRequiredQueryParameter"));
    assert_eq!(rest.call("GET", "/photos/x").await.status, 404, "nothing is visible");
    assert_eq!(rest.send(commit("<Latest>QQ==</Latest>")).await.status, 201);
}

#[tokio::test]
async fn an_empty_list_is_an_empty_blob_and_a_whole_one_drops_its_blocks() {
    let rest = BlobRest::start().await;
    rest.container("photos").await;
    assert_eq!(rest.send(commit("")).await.status, 201);
    assert_eq!(rest.call("GET", "/photos/x").await.header("content-length"), "0");
    assert_eq!(stage(&rest, "QQ==", "a").await.status, 201);

    rest.blob("/photos/x", "whole").await;

    let listed = rest.call("GET", "/photos/x?comp=blocklist&blocklisttype=all").await;
    assert!(listed.text().contains("<CommittedBlocks /><UncommittedBlocks />"), "{listed:?}");
}
