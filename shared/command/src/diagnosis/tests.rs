//! The probe of an address, against listeners that answer as other servers do.

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::rustls::OtherError;

use super::*;

/// A TLS alert: a fatal error of the version of the protocol.
const ALERT_RECORD: &[u8] = &[ALERT, 3, 3, 0, 2, 2, 70];

/// A listener that answers each connection with the same bytes, once it has read something.
struct FixedAnswer {
    port: u16,
    task: JoinHandle<()>,
}

impl FixedAnswer {
    async fn new(answer: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(answer).await;
            }
        });
        Self { port, task }
    }

    async fn problem(&self, scheme: &str, is_foreign: bool) -> Option<String> {
        looked(&format!("{scheme}://127.0.0.1:{}", self.port), is_foreign).await
    }
}

impl Drop for FixedAnswer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A listener that greets each connection and then waits for a client of its own protocol.
async fn greeting() -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let mut all = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await;
            all.push(stream);
        }
    });
    (port, task)
}

async fn looked(endpoint: &str, is_foreign: bool) -> Option<String> {
    look(endpoint, &TlsArgs::default(), is_foreign).await
}

#[tokio::test]
async fn a_plain_client_of_an_encrypted_server_is_advised_to_use_https() {
    let server = FixedAnswer::new(ALERT_RECORD).await;

    let problem = server.problem("http", false).await.unwrap();

    let port = server.port;
    let expected = format!("the server at 127.0.0.1:{port} uses TLS: use https://127.0.0.1:{port}");
    assert_eq!(problem, expected);
}

#[tokio::test]
async fn an_encrypted_client_of_a_plain_server_is_advised_to_use_http() {
    let server = FixedAnswer::new(b"\0\0\0\x04\0\0\0\0\0").await;

    let problem = server.problem("https", false).await.unwrap();

    let port = server.port;
    let expected = format!(
        "the server at 127.0.0.1:{port} uses plain text, not TLS: use http://127.0.0.1:{port}"
    );
    assert_eq!(problem, expected);
}

#[tokio::test]
async fn an_encrypted_client_of_another_plain_listener_is_not_sent_there_again() {
    let server = FixedAnswer::new(b"HTTP/1.1 400 Bad Request\r\nX-Ms-Request-Id: 1\r\n\r\n").await;

    let problem = server.problem("https", false).await.unwrap();

    assert!(problem.contains("is not the address of gRPC: clients of Azure Storage"), "{problem}");
}

#[tokio::test]
async fn other_http_servers_are_distinguished_by_their_answer() {
    for (answer, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\nX-Ms-Request-Id: 1\r\n\r\n"[..], "Azure Storage"),
        (b"HTTP/1.1 200 OK\r\nx-ms-version: 1\r\n\r\n", "Azure Storage"),
        (b"HTTP/1.1 200 OK\r\nServer: trestle\r\n\r\nok", "metrics and probes"),
        (b"HTTP/1.1 200 OK\r\nServer: nginx\r\n\r\nok", "another HTTP server"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "another HTTP server"),
        (b"HTTP/1.0 200 OK\r\n\r\n", "another HTTP server"),
    ] {
        let server = FixedAnswer::new(answer).await;

        let problem = server.problem("http", false).await.unwrap();

        assert!(problem.contains(expected), "{answer:?}: {problem}");
        assert!(problem.contains("--endpoint"), "{problem}");
    }
}

#[tokio::test]
async fn a_server_of_another_protocol_is_a_problem_of_the_address() {
    for answer in [&b"SSH-2.0-x\r\n"[..], b"-ERR unknown command\r\n"] {
        let server = FixedAnswer::new(answer).await;

        for scheme in ["http", "https"] {
            let problem = server.problem(scheme, false).await.unwrap();

            assert!(problem.contains("another protocol"), "{scheme}, {answer:?}: {problem}");
        }
    }
}

#[tokio::test]
async fn a_server_that_greets_and_waits_is_named_without_a_wait() {
    let (port, task) = greeting().await;

    let endpoint = format!("http://127.0.0.1:{port}");
    let looked = tokio::time::timeout(PAGE_WITHIN / 2, looked(&endpoint, false)).await;

    task.abort();
    assert!(looked.unwrap().unwrap().contains("another protocol"));
}

#[tokio::test]
async fn a_server_of_http_2_and_a_closed_connection_are_no_problem_of_the_address() {
    for answer in [&b"\0\0\0\x04\0\0\0\0\0"[..], b""] {
        let server = FixedAnswer::new(answer).await;

        assert_eq!(server.problem("http", false).await, None, "{answer:?}");
        assert_eq!(server.problem("http", true).await, None, "no page: {answer:?}");
    }
}

#[tokio::test]
async fn an_address_without_a_listener_or_a_malformed_one_has_no_diagnosis() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);

    for endpoint in [free, String::new(), "ftp://127.0.0.1:1".to_owned(), "http://".to_owned()] {
        assert_eq!(looked(&endpoint, true).await, None, "{endpoint}");
    }
}

/// The error of the library for a certificate of a CA, which is not a dependency by itself.
fn ca_as_server() -> CertificateError {
    CertificateError::Other(OtherError(Arc::new(io::Error::other(CA_AS_SERVER))))
}

#[test]
fn each_problem_of_tls_names_its_remedy() {
    use AlertDescription::{CertificateRequired, HandshakeFailure};
    let invalid = |error| Error::InvalidCertificate(error);
    for (error, expected) in [
        (Error::AlertReceived(CertificateRequired), "give --cert-file and --key-file"),
        (Error::AlertReceived(HandshakeFailure), "check --cert-file and --key-file"),
        (invalid(CertificateError::UnknownIssuer), "--ca-file"),
        (invalid(CertificateError::Expired), "has expired"),
        (invalid(CertificateError::NotValidYet), "check the clocks"),
        (invalid(CertificateError::NotValidForName), "`store`: give its name with --server-name"),
        (invalid(CertificateError::BadSignature), "cannot be trusted"),
        (invalid(ca_as_server()), "CA:FALSE"),
    ] {
        let text = format!("{error:?}");
        let failed = io::Error::new(io::ErrorKind::InvalidData, error);

        let problem = tls_problem("https://here", "store", &failed).unwrap();

        assert!(problem.contains(expected), "{text}: {problem}");
        assert!(problem.contains("https://here") && problem.contains("nothing was written"));
    }
}

#[test]
fn a_server_with_tls_that_rejects_http_2_is_another_one() {
    let alert = Error::AlertReceived(AlertDescription::NoApplicationProtocol);
    let failed = io::Error::new(io::ErrorKind::InvalidData, alert);

    let problem = tls_problem("https://here", "here", &failed).unwrap();

    assert!(problem.contains("is not the address of gRPC") && problem.contains("without HTTP/2"));
}

#[test]
fn an_error_that_is_not_of_tls_is_not_explained() {
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    let other = io::Error::other("other");
    let internal = io::Error::other(Error::General("internal".to_owned()));

    for error in [reset, other, internal] {
        assert_eq!(tls_problem("https://here", "here", &error), None, "{error:?}");
    }
}

#[test]
fn a_page_without_a_head_is_an_answer_of_http() {
    assert_eq!(PlainAnswer::of(b"<!DOCTYPE"), PlainAnswer::Http1);
    assert_eq!(PlainAnswer::of(b"<xml vers"), PlainAnswer::Other);
}
