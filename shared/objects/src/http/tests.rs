use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

/// A server that answers each connection with these bytes and closes it.
async fn server(response: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = socket.read(&mut request).await;
            let _ = socket.write_all(response).await;
        }
    });
    address
}

async fn call(address: SocketAddr, with_http: bool) -> Result<HttpResponse, HttpError> {
    let options = ClientOptions::new().with_allow_http(with_http);
    let client = ObjectsConnector.connect(&options).unwrap();
    let request = http::Request::get(format!("http://{address}/a"));
    client.execute(request.body(HttpRequestBody::empty()).unwrap()).await
}

#[tokio::test]
async fn a_response_has_status_headers_and_the_whole_body() {
    let server =
        server(b"HTTP/1.1 404 Not Found\r\netag: x\r\ncontent-length: 5\r\n\r\nhello").await;

    let response = call(server, true).await.unwrap();

    assert_eq!(response.status(), 404);
    assert_eq!(response.headers()["etag"], "x");
    assert_eq!(response.into_body().bytes().await.unwrap(), "hello");
}

#[tokio::test]
async fn a_response_that_breaks_off_is_interrupted() {
    for response in [&b""[..], b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel"]
    {
        let error = call(server(response).await, true).await.unwrap_err();
        assert_eq!(error.kind(), HttpErrorKind::Interrupted, "{error}");
    }
}

#[tokio::test]
async fn nothing_is_sent_without_tls_unless_allowed() {
    let server = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;

    let error = call(server, false).await.unwrap_err();

    assert_eq!(error.kind(), HttpErrorKind::Connect, "{error}");
    assert!(call(server, true).await.is_ok());
}

#[tokio::test]
async fn an_absent_server_is_an_error_of_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);

    let error = call(address, true).await.unwrap_err();

    assert_eq!(error.kind(), HttpErrorKind::Connect, "{error}");
}
