//! Tests of reads of one version of a blob, from a source with prepared responses.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use trestle_identity::account::DEVELOPMENT_KEY;

use super::*;
use crate::azure::connection::AzureConnection;

/// Reads 5 bytes at 7 from a source with this response; what came of it, and the head of the request.
async fn read(response: &str) -> (Result<Bytes, BlobFailure>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connection =
        format!("AccountName=acme;AccountKey={DEVELOPMENT_KEY};BlobEndpoint=http://{address}/acme");
    let http = Http::new(AzureConnection::parse(&connection).unwrap(), None).unwrap();
    let content = RangedContent {
        http: &http,
        path: "/docs/a%2Fb".to_owned(),
        snapshot: "2026-01-02T03:04:05.0000000Z".to_owned(),
        etag: "\"0x8D\"".to_owned(),
    };
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(response.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap()
    };
    tokio::join!(content.read(7, 5), serve)
}

fn response(status: &str, code: &str, body: &str) -> String {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n");
    format!("{head}x-ms-error-code: {code}\r\n\r\n{body}")
}

#[tokio::test]
async fn a_read_is_of_the_listed_version_and_its_range() {
    let (read, head) = read(&response("206 Partial Content", "", "hello")).await;

    assert_eq!(read.unwrap(), "hello");
    let first = "GET /acme/docs/a%2Fb?snapshot=2026-01-02T03%3A04%3A05.0000000Z HTTP/1.1\r\n";
    assert!(head.starts_with(first), "{head}");
    for header in [
        "x-ms-range: bytes=7-11",
        "if-match: \"0x8D\"",
        "x-ms-version: 2021-12-02",
        "authorization: SharedKey acme:",
    ] {
        assert!(head.contains(&format!("\r\n{header}")), "{header}: {head}");
    }
}

#[tokio::test]
async fn a_blob_that_changes_or_is_archived_is_named_and_another_error_ends_the_import() {
    for (status, code, why) in [
        ("412 Precondition Failed", "ConditionNotMet", "it changed while it was copied"),
        ("404 Not Found", "BlobNotFound", "it was deleted while it was copied"),
        ("409 Conflict", "BlobArchived", "the source rejects it: BlobArchived (409)"),
    ] {
        let (read, _) = read(&response(status, code, "")).await;
        assert!(matches!(&read, Err(BlobFailure::Item(found)) if found == why), "{read:?}");
    }
    let (read, _) = read(&response("403 Forbidden", "AuthorizationFailure", "")).await;
    let Err(BlobFailure::Fatal(error)) = read else { panic!("it ends the import") };
    let text = "the source rejects the content of a blob: AuthorizationFailure (403)";
    assert!(error.to_string().starts_with(text), "{error}");
}
