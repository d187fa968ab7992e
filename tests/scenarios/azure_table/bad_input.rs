//! What no client of good will sends.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use trestle_tests::{Ask, Rest};

#[tokio::test]
async fn paths_that_try_to_be_others_name_nothing() {
    let rest = Rest::start();
    for (path, failure) in [
        ("/..", (400, "InvalidResourceName")),
        ("/%2e%2e", (400, "InvalidResourceName")),
        ("/%252e%252e", (400, "InvalidResourceName")),
        ("/%00", (400, "InvalidResourceName")),
        ("/tab%00", (400, "InvalidResourceName")),
        ("/..%2f..%2fetc%2fpasswd", (404, "ResourceNotFound")),
        ("//Tables", (404, "ResourceNotFound")),
        ("/%ff", (400, "InvalidInput")),
        ("/%zz", (400, "InvalidInput")),
        ("/tab(PartitionKey='p", (400, "InvalidInput")),
        ("/tab(PartitionKey='p',RowKey='%00')", (400, "OutOfRangeInput")),
        ("/tab(PartitionKey='..%2f..',RowKey='r')", (400, "OutOfRangeInput")),
        ("/", (400, "InvalidUri")),
    ] {
        assert_eq!(rest.send(Ask::table("GET", path)).await.failure(), failure, "{path}");
    }
}

#[tokio::test]
async fn bodies_that_are_no_entity_are_refused_and_the_server_goes_on() {
    let rest = Rest::start();
    rest.table("tab").await;
    let deep = "[".repeat(1_000_000);
    for body in [
        "",
        "null",
        "[]",
        "{",
        r#"{"PartitionKey":"p","RowKey":"r","x":"\ud800"}"#,
        "{}{}",
        &deep,
        &format!("{{\"a\":{deep}"),
    ] {
        let told = rest.send(Ask::json("POST", "/tab", body)).await;
        assert_eq!(told.failure(), (400, "InvalidInput"));
    }
    let told = rest.send(Ask::json("POST", "/tab", "").body(b"{\"PartitionKey\":\"\xFF\"}")).await;
    assert_eq!(told.failure(), (400, "InvalidInput"));
    let told = rest.send(Ask::json("POST", "/tab", &" ".repeat((4 << 20) + 1))).await;
    assert_eq!(told.failure(), (413, "RequestBodyTooLarge"));
    rest.insert("tab", r#"{"PartitionKey":"p","RowKey":"r"}"#).await;
}

/// Sends bytes, and returns what comes until the server closes the connection or falls silent.
async fn raw(rest: &Rest, bytes: &[u8], more: &[u8]) -> String {
    let mut stream = TcpStream::connect(rest.address()).await.expect("a listener");
    stream.write_all(bytes).await.expect("the server reads");
    // The server may have closed the connection by then.
    let _ = stream.write_all(more).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let mut read = std::pin::pin!(stream.read_to_end(&mut answer));
    let _ = tokio::time::timeout(Duration::from_secs(20), &mut read).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// A signed request as bytes, with a length that the test says.
fn bytes_of(rest: &Rest, ask: Ask, length: &str) -> Vec<u8> {
    let mut request = ask.request(rest.address());
    request.headers_mut().remove("content-length");
    let mut out = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri());
    for (name, value) in request.headers() {
        out.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
    }
    out.push_str(&format!("content-length: {length}\r\n\r\n"));
    [out.as_bytes(), request.body()].concat()
}

#[tokio::test]
async fn a_length_that_lies_never_becomes_an_entity() {
    let rest = Rest::start();
    rest.table("tab").await;
    let ask = || Ask::json("POST", "/tab", r#"{"PartitionKey":"p","RowKey":"r"}"#);

    // Longer than what comes, shorter than what comes, no number, two of them, too large.
    for (length, more) in [
        ("500", ""),
        ("10", ""),
        ("x", ""),
        ("35\r\ncontent-length: 36", ""),
        ("-1", ""),
        ("99999999999999999999", ""),
        ("4194305", ""),
    ] {
        let answer = raw(&rest, &bytes_of(&rest, ask(), length), more.as_bytes()).await;
        assert!(!answer.contains("HTTP/1.1 2"), "{length}: {answer}");
    }
    let left = rest.send(Ask::table("GET", "/tab")).await;
    assert_eq!(left.text(), r#"{"value":[]}"#);
}

#[tokio::test]
async fn a_flood_of_headers_is_refused_and_the_server_goes_on() {
    let rest = Rest::start();
    let many: String = (0..5000).map(|at| format!("x-{at}: y\r\n")).collect();
    let long = format!("x-long: {}\r\n", "y".repeat(1 << 20));
    for headers in [many, long] {
        let head = "GET /devstoreaccount1/Tables HTTP/1.1\r\nhost: h\r\n";
        let answer = raw(&rest, head.as_bytes(), format!("{headers}\r\n").as_bytes()).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    rest.table("tab").await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let rest = Rest::start_with(&[("TRESTLE__LIMITS__REQUEST_WITHIN_SECONDS", "1")]);
    rest.table("tab").await;
    let ask = Ask::json("POST", "/tab", r#"{"PartitionKey":"p","#);

    let mut stream = TcpStream::connect(rest.address()).await.expect("a listener");
    stream.write_all(&bytes_of(&rest, ask, "500")).await.expect("the server reads");
    let mut answer = [0; 12];
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_exact(&mut answer)).await;

    read.expect("the server does not wait for ever").expect("an answer");
    assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn nobody_gets_in_without_credentials_or_with_those_of_another_request() {
    let rest = Rest::start();
    let told = rest.send(Ask::table("GET", "/Tables").scheme(None)).await;
    assert_eq!(told.failure(), (401, "NoAuthenticationInformation"));
    let told = rest
        .send(
            Ask::table("GET", "/Tables")
                .scheme(None)
                .with("authorization", "SharedKey devstoreaccount1:AAAA"),
        )
        .await;
    assert_eq!(told.failure(), (403, "AuthenticationFailed"));
    let told = rest
        .send(Ask::table("GET", "/Tables").scheme(None).with("authorization", "Digest x"))
        .await;
    assert_eq!(told.failure(), (400, "InvalidAuthenticationInfo"));
    let old = Ask::table("GET", "/Tables").with("x-ms-date", "Sat, 21 Nov 2020 12:00:00 GMT");
    assert_eq!(rest.send(old).await.failure(), (403, "AuthenticationFailed"));
    let xml = Ask::table("GET", "/Tables").scheme(None).with("accept", "*/*");
    assert_eq!(rest.send(xml).await.header("content-type"), "application/xml");
}
