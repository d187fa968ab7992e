//! The port of blobs, which have no protocol of Azure Storage here: a client gets an error that reports it.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use trestle_tests::Server;

#[tokio::test]
async fn every_request_to_the_blob_port_is_answered_that_blobs_are_served_by_grpc() {
    let server = Server::start(&["--ephemeral"], &[]);
    let address = server.address("azure_blob");
    for (method, target) in [
        ("GET", "/devstoreaccount1?comp=list"),
        ("HEAD", "/devstoreaccount1/photos/a.jpg"),
        ("PUT", "/devstoreaccount1/photos?restype=container"),
        ("OPTIONS", "/devstoreaccount1/photos"),
        ("GET", "/"),
        ("GET", "/devstoreaccount1/%FF"),
    ] {
        let request = format!(
            "{method} {target} HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 0\r\n\
             x-ms-version: 2021-12-02\r\nx-ms-client-request-id: mine\r\n\r\n"
        );
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();

        assert!(answer.starts_with("HTTP/1.1 501 "), "{method} {target}: {answer}");
        for header in [
            "x-ms-error-code: NotImplemented",
            "x-ms-version: 2021-12-02",
            "x-ms-client-request-id: mine",
            "x-ms-request-id: ",
            "content-type: application/xml",
        ] {
            assert!(answer.contains(&format!("\r\n{header}")), "{method} {target}: {answer}");
        }
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        if method == "HEAD" {
            assert_eq!(body, "");
        } else {
            let error = "<Error><Code>NotImplemented</Code><Message>";
            assert!(body.contains(error) && body.contains("served by gRPC only"), "{body}");
            assert!(body.contains("use `trestle blob`"), "{body}");
        }
    }
}

#[tokio::test]
async fn the_blob_port_of_a_gateway_without_blobs_names_no_command_that_cannot_work() {
    let gateway = Server::start(&["--ephemeral", "--roles", "table,queue,gateway"], &[]);
    let mut stream = TcpStream::connect(gateway.address("azure_blob")).await.unwrap();
    let request =
        b"GET /devstoreaccount1?comp=list HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 501 ") && answer.contains("served by gRPC only"),
        "{answer}"
    );
    assert!(answer.contains("gateway.blob_endpoint is not set"), "{answer}");
    assert!(!answer.contains("trestle blob") && !answer.contains("BlobService"), "{answer}");
}
