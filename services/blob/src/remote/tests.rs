use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::TryStreamExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::{
    blobs::{BlobKey, CopyCommand},
    conditions::Conditions,
    fixture::{BlobFixture, sample},
    record::{BlobRecord, CopyOrigin, Retention},
};

/// A server that sends the same bytes to every request, and then closes the connection.
struct Canned {
    uri: Uri,
    requests: Arc<AtomicUsize>,
}

async fn canned(head: impl Into<String>, body: Bytes) -> Canned {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let uri = format!("http://{}/a?sig=secret", listener.local_addr().expect("bound"));
    let (head, requests) = (head.into(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut request = vec![0; 8192];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&body).await;
        }
    });
    Canned { uri: uri.parse().expect("a URL"), requests }
}

fn ok(headers: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n")
}

async fn copy(fixture: &BlobFixture, key: &BlobKey, uri: &Uri) -> Result<BlobRecord, BlobError> {
    let command = CopyCommand {
        metadata: None,
        tags: None,
        conditions: Conditions::default(),
        lease_id: None,
        is_sealed: false,
        tier: None,
        properties: None,
        block_bytes_max: None,
        origin: Some(CopyOrigin { id: uuid::Uuid::nil(), source: String::new() }),
        retention: Retention::default(),
    };
    let servers = RemoteServers::default();
    let open = servers.open(uri.clone(), HeaderMap::new());
    let opened = fixture.blobs.open_url_copy(open, key.clone(), command).await?;
    opened.run(|_| ()).await?.publish().await
}

#[tokio::test]
async fn content_becomes_a_blob_with_its_properties() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    for data in [sample(0), sample(100), sample(5_000_000)] {
        let headers = format!("content-length: {}\r\ncontent-type: text/plain\r\n", data.len());
        let server = canned(ok(&headers), data.clone()).await;

        let record = copy(&fixture, &key, &server.uri).await.expect("copied");

        assert_eq!(fixture.read(&key).await.expect("read"), data);
        assert_eq!(record.properties.content_type, "text/plain");
        assert!(record.properties.md5.is_some());
    }
    let server = canned(ok(""), sample(70_000)).await;
    copy(&fixture, &key, &server.uri).await.expect("without a length");
    assert_eq!(fixture.read(&key).await.expect("read"), sample(70_000));
}

#[tokio::test]
async fn metadata_and_the_stated_length_are_returned() {
    let head = ok("content-length: 1\r\nx-ms-meta-Color: red\r\n");
    let server = canned(head, sample(1)).await;
    let found = RemoteServers::default().open(server.uri, HeaderMap::new()).await.expect("opened");
    assert_eq!(found.size, Some(1));
    assert_eq!(found.metadata, [("color".to_owned(), "red".to_owned())]);
    let bytes: Vec<Bytes> = found.bytes().try_collect().await.expect("read");
    assert_eq!(bytes.concat(), sample(1));
}

#[tokio::test]
async fn a_response_that_is_not_the_content_writes_nothing() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    let target = canned(ok("content-length: 1\r\n"), sample(1)).await;
    let redirect = format!("HTTP/1.1 302 Found\r\nlocation: {}\r\n\r\n", target.uri);
    let wrong_md5 = "content-length: 3\r\ncontent-md5: XrY7u+Ae7tCTyyK7j1rNww==\r\n";
    for (head, body) in [
        (redirect.as_str(), ""),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", ""),
        ("HTTP/1.1 206 Partial Content\r\ncontent-length: 1\r\n\r\n", "a"),
        (ok("content-length: 10\r\n").as_str(), "short"),
        (ok("transfer-encoding: chunked\r\n").as_str(), "5\r\nshort\r\n"),
        (ok(&format!("content-length: {}\r\n", u64::MAX)).as_str(), "a"),
        (ok(wrong_md5).as_str(), "abc"),
        ("nonsense\r\n\r\n", ""),
    ] {
        let server = canned(head, Bytes::copy_from_slice(body.as_bytes())).await;
        let copied = copy(&fixture, &key, &server.uri).await;
        assert!(matches!(copied, Err(BlobError::CopySource(_))), "{head}: {copied:?}");
        let error = copied.expect_err("checked").to_string();
        assert!(!error.contains("127.0.0.1") && !error.contains("secret"), "{error}");
    }
    assert_eq!(target.requests.load(Ordering::Relaxed), 0, "no redirect is followed");
    let closed: Uri = "http://127.0.0.1:1/a".parse().expect("a URL");
    assert!(matches!(copy(&fixture, &key, &closed).await, Err(BlobError::CopySource(_))));
    assert!(matches!(fixture.read(&key).await, Err(BlobError::BlobNotFound(_))));
    fixture.sweep().await;
    assert_eq!(fixture.objects().await, 0);
}

#[tokio::test]
async fn conditions_are_those_of_the_server() {
    for status in ["412 Precondition Failed", "304 Not Modified"] {
        let server = canned(format!("HTTP/1.1 {status}\r\n\r\n"), Bytes::new()).await;
        let opened = RemoteServers::default().open(server.uri, HeaderMap::new()).await;
        assert!(matches!(opened, Err(BlobError::SourceCondition)), "{status}");
    }
}

#[tokio::test]
async fn a_write_that_is_not_permitted_makes_no_request() {
    let fixture = BlobFixture::new();
    let key = fixture.key("a").await;
    fixture.create_append(&key, Default::default()).await.expect("created");
    let server = canned(ok("content-length: 1\r\n"), sample(1)).await;
    assert!(matches!(copy(&fixture, &key, &server.uri).await, Err(BlobError::OtherKind(_))));
    assert_eq!(server.requests.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_range_is_read_as_far_as_the_server_supports_it() {
    let servers = RemoteServers::default();
    let read = async |head: &str, body: Bytes| {
        let server = canned(head, body).await;
        let range = RequestedRange { offset: 10, length: Some(5) };
        let content = servers.open_range(server.uri, HeaderMap::new(), range).await?;
        let pieces: Vec<Bytes> = content.bytes().try_collect().await?;
        Ok::<_, BlobError>(pieces.concat())
    };
    let partial = |range: &str, length: usize| {
        let headers = format!("content-range: {range}\r\ncontent-length: {length}\r\n");
        format!("HTTP/1.1 206 Partial Content\r\n{headers}\r\n")
    };

    let found = read(&partial("bytes 10-14/100", 5), sample(5)).await.expect("read");
    assert_eq!(found, sample(5));
    let cut = read(&partial("bytes 10-11/12", 2), sample(2)).await.expect("read");
    assert_eq!(cut, sample(2));
    assert_eq!(read(&partial("bytes 10-14/*", 5), sample(5)).await.expect("read"), sample(5));
    let error = read(&ok("content-length: 5\r\n"), sample(5)).await.expect_err("rejected");
    assert!(error.to_string().ends_with("does not support ranges"), "{error}");
    for other in [
        "bytes 0-4/100",
        "bytes 10-15/100",
        "bytes 10-11/100",
        "bytes 10-11/*",
        "bytes 10-11/11",
        "bytes 10-9/100",
        "bytes 10-14",
        "bytes 10-18446744073709551615/*",
        "bytes -/100",
        "bytes */100",
        "lines 10-14/100",
        "",
    ] {
        let error = read(&partial(other, 2), sample(2)).await.expect_err("rejected").to_string();
        let rule = format!("sent another range: content_range=`{other}`");
        assert!(error.ends_with(&rule), "{error}");
    }
}

#[tokio::test]
async fn a_range_has_as_many_bytes_as_its_server_states() {
    let servers = RemoteServers::default();
    for (body, rule) in [
        ("5\r\nabcde\r\n0\r\n\r\n", None),
        ("2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", None),
        ("2\r\nab\r\n0\r\n\r\n", Some("ended early")),
        ("0\r\n\r\n", Some("ended early")),
        ("2\r\nab\r\n4\r\ncdef\r\n0\r\n\r\n", Some("sent more than the range")),
    ] {
        let headers = "content-range: bytes 10-14/100\r\ntransfer-encoding: chunked\r\n";
        let head = format!("HTTP/1.1 206 Partial Content\r\n{headers}\r\n");
        let server = canned(head, Bytes::from_static(body.as_bytes())).await;
        let range = RequestedRange { offset: 10, length: Some(5) };
        let content = servers.open_range(server.uri, HeaderMap::new(), range).await;
        let read: Result<Vec<Bytes>, _> = content.expect("opened").bytes().try_collect().await;
        match rule {
            None => assert_eq!(read.expect("read").concat(), b"abcde"),
            Some(rule) => {
                let error = read.expect_err("rejected").to_string();
                assert!(error.ends_with(rule), "{error}");
            }
        }
    }
}
