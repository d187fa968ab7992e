//! Malformed requests.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use trestle_tests::{QueueRest, RestRequest};

#[tokio::test]
async fn rejects_a_malformed_message_body() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let send = |body: &[u8]| rest.send(RestRequest::xml("POST", "/orders/messages", body));
    let deep = "<a>".repeat(40_000);
    let laughs = "<!DOCTYPE a [<!ENTITY l \"ha\"><!ENTITY m \"&l;&l;\">]>\
                  <QueueMessage><MessageText>&m;</MessageText></QueueMessage>";

    for body in [
        &b""[..],
        b"text",
        b"<QueueMessage>",
        b"<Message><MessageText>a</MessageText></Message>",
        b"<QueueMessage><MessageText>a & b</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>\x01</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>&#0;</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>\xff\xfe</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>a</MessageText><MessageText>b</MessageText></QueueMessage>",
        b"<QueueMessage>new text</QueueMessage>",
        b"<QueueMessage><MessageText>a ]]> b</MessageText></QueueMessage>",
        b"<QueueMessage a='<'><MessageText>a</MessageText></QueueMessage>",
        deep.as_bytes(),
        laughs.as_bytes(),
    ] {
        let response = send(body).await;
        assert_eq!(response.failure(), (400, "InvalidXmlDocument"), "{response:?}");
    }
    assert_eq!(send(b"<QueueMessage/>").await.failure(), (400, "MissingRequiredXmlNode"));
    let received = rest.call("GET", "/orders/messages").await;
    assert_eq!(received.all("MessageId").len(), 0, "nothing was sent");
}

#[tokio::test]
async fn unknown_operations_have_their_own_codes() {
    let rest = QueueRest::start().await;

    for (method, target, status, code) in [
        ("GET", "/", 400, "MissingRequiredQueryParameter"),
        ("GET", "/orders", 400, "MissingRequiredQueryParameter"),
        ("GET", "/?comp=unknown&restype=service", 400, "InvalidQueryParameterValue"),
        ("PUT", "/orders?comp=lease", 400, "InvalidQueryParameterValue"),
        ("POST", "/orders", 405, "UnsupportedHttpVerb"),
        ("PATCH", "/orders/messages", 405, "UnsupportedHttpVerb"),
        ("GET", "/orders/others", 400, "InvalidUri"),
        ("GET", "/orders/messages/id/more", 400, "InvalidUri"),
        ("GET", "/%2e%2e/%2e%2e/etc", 400, "InvalidUri"),
        ("GET", "/orders/%FF", 400, "InvalidUri"),
        ("DELETE", "/orders/messages/?popreceipt=x", 400, "InvalidUri"),
        ("DELETE", "/orders/messages/", 400, "InvalidUri"),
        ("PUT", "/orders/messages/?popreceipt=x&visibilitytimeout=0", 400, "InvalidUri"),
        ("GET", "/?comp=list&prefix=%FF", 400, "InvalidUri"),
        ("GET", "/?comp=list&timeout=soon", 400, "InvalidQueryParameterValue"),
    ] {
        let request = RestRequest::queue(method, target);
        // A request with a body declares its length.
        let request = if method == "PATCH" || method == "PUT" {
            request.with("content-length", "0")
        } else {
            request
        };
        assert_eq!(rest.send(request).await.failure(), (status, code), "{method} {target}");
    }
}

#[tokio::test]
async fn error_has_the_request_id_and_time() {
    let rest = QueueRest::start().await;
    let request =
        RestRequest::queue("GET", "/nowhere?comp=acl").with("x-ms-client-request-id", "my own");

    let response = rest.send(request.with("x-ms-version", "2099-01-01")).await;

    assert_eq!(response.failure(), (404, "QueueNotFound"));
    assert_eq!(response.header("content-type"), "application/xml");
    assert_eq!(response.header("x-ms-version"), "2099-01-01");
    assert_eq!(response.header("x-ms-client-request-id"), "my own");
    let id = response.header("x-ms-request-id");
    assert_eq!(id.len(), 36);
    let message = response.only("Message");
    assert!(message.contains(&format!("\nRequestId:{id}\nTime:2")), "{message}");
    assert!(!response.header("date").is_empty());

    let response =
        rest.send(RestRequest::queue("GET", "/?comp=list").with("x-ms-version", "latest")).await;
    assert_eq!(response.failure(), (400, "InvalidHeaderValue"));
}

#[tokio::test]
async fn rejects_a_body_without_content_length() {
    let rest = QueueRest::start().await;
    let mut stream = TcpStream::connect(rest.address()).await.unwrap();
    let request = "POST /devstoreaccount1/orders/messages HTTP/1.1\r\nHost: localhost\r\n\
                   Connection: close\r\n\r\n";

    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();

    // Without credentials an error discloses nothing.
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(answer.contains("x-ms-error-code: NoAuthenticationInformation"), "{answer}");
}
