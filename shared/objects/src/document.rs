//! Small documents of other servers, read whole over HTTP. A redirect is not followed: it may lead to another host.

use std::{error::Error as _, time::Duration};

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, LengthLimitError, Limited};
use hyper_util::client::legacy;

use crate::https::LazyClient;

/// Reads documents, and trusts the CA certificates of the system. Clones share the settings of connections.
#[derive(Clone, Default)]
pub struct DocumentReader {
    client: LazyClient,
}

/// The bounds of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentBounds {
    /// Most bytes.
    pub bytes_max: usize,
    /// Longest time from the connection to the last byte.
    pub within: Duration,
}

/// Why a document was not read. It does not repeat the address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The platform has no TLS.
    #[error("there is no TLS")]
    NoTls,
    /// There is no connection, or it broke.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The document did not arrive in time.
    #[error("the server did not send the document within {} s", .0.as_secs())]
    Late(Duration),
    /// The server responded with another status than 200.
    #[error("the server responded with status {0}")]
    Status(u16),
    /// The document is too large.
    #[error("the document has more than {0} bytes")]
    Size(usize),
}

impl DocumentReader {
    /// Reads the document at an address.
    ///
    /// # Errors
    /// Any response but 200, a document out of bounds, or none.
    pub async fn read(&self, uri: Uri, bounds: DocumentBounds) -> Result<Bytes, DocumentError> {
        let client = self.client.get().ok_or(DocumentError::NoTls)?;
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        let read = async {
            let response = client.request(request).await.map_err(|error| unreachable(&error))?;
            let status = response.status();
            if status != StatusCode::OK {
                return Err(DocumentError::Status(status.as_u16()));
            }
            let body = Limited::new(response.into_body(), bounds.bytes_max);
            let collected = body.collect().await.map_err(|error| {
                if error.downcast_ref::<LengthLimitError>().is_some() {
                    return DocumentError::Size(bounds.bytes_max);
                }
                DocumentError::Unreachable("the document ended early".to_owned())
            });
            collected.map(http_body_util::Collected::to_bytes)
        };
        let late = |_| DocumentError::Late(bounds.within);
        tokio::time::timeout(bounds.within, read).await.map_err(late)?
    }
}

/// The innermost cause, which names no address.
fn unreachable(error: &legacy::Error) -> DocumentError {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    let text = cause.map_or_else(|| error.to_string(), ToString::to_string);
    DocumentError::Unreachable(text)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    const BOUNDS: DocumentBounds =
        DocumentBounds { bytes_max: 10, within: Duration::from_secs(30) };

    /// The address of a server that sends these bytes to every request, and the number of its requests.
    async fn canned(response: String, closes: bool) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let mut request = vec![0; 8192];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(response.as_bytes()).await;
                if !closes {
                    open.push(stream);
                }
            }
        });
        (format!("http://{address}/keys?secret"), requests)
    }

    async fn read(address: &str, bounds: DocumentBounds) -> Result<Bytes, DocumentError> {
        DocumentReader::default().read(address.parse().expect("a URL"), bounds).await
    }

    #[tokio::test]
    async fn a_document_is_read_whole_within_its_bounds() {
        let unreachable = |text: &str| Err(DocumentError::Unreachable(text.to_owned()));
        let early = || unreachable("the document ended early");
        for (response, expected) in [
            ("200 OK\r\ncontent-length: 10\r\n\r\n0123456789", Ok(Bytes::from("0123456789"))),
            ("200 OK\r\n\r\n0123456789", Ok(Bytes::from("0123456789"))),
            ("200 OK\r\ncontent-length: 0\r\n\r\n", Ok(Bytes::new())),
            ("200 OK\r\ncontent-length: 11\r\n\r\n0123456789a", Err(DocumentError::Size(10))),
            ("200 OK\r\n\r\n0123456789a", Err(DocumentError::Size(10))),
            ("200 OK\r\ncontent-length: 10\r\n\r\nshort", early()),
            ("404 Not Found\r\ncontent-length: 0\r\n\r\n", Err(DocumentError::Status(404))),
            ("206 Partial Content\r\ncontent-length: 1\r\n\r\n0", Err(DocumentError::Status(206))),
        ] {
            let (address, _) = canned(format!("HTTP/1.1 {response}"), true).await;
            assert_eq!(read(&address, BOUNDS).await, expected, "{response}");
        }
    }

    #[tokio::test]
    async fn no_redirect_is_followed_and_no_error_names_the_address() {
        let found = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n0";
        let (target, requests) = canned(found.to_owned(), true).await;
        for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"] {
            let head =
                format!("HTTP/1.1 {status}\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
            let (address, _) = canned(head, true).await;
            let code = status[..3].parse().expect("a number");
            assert_eq!(read(&address, BOUNDS).await, Err(DocumentError::Status(code)));
        }
        assert_eq!(requests.load(Ordering::Relaxed), 0);
        let closed = read("http://127.0.0.1:1/keys?secret", BOUNDS).await.expect_err("refused");
        assert!(matches!(closed, DocumentError::Unreachable(_)), "{closed}");
        assert!(!closed.to_string().contains("127.0.0.1"), "{closed}");
        // A server without TLS at an address with it.
        let plain = read(&target.replace("http:", "https:"), BOUNDS).await.expect_err("no TLS");
        assert!(matches!(plain, DocumentError::Unreachable(_)), "{plain}");
        assert!(!plain.to_string().contains("secret"), "{plain}");
    }

    #[tokio::test]
    async fn a_server_that_stops_to_send_is_not_waited_for() {
        let part = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n01";
        for response in ["", part] {
            let (address, _) = canned(response.to_owned(), false).await;
            let within = Duration::from_millis(50);
            let read = read(&address, DocumentBounds { within, ..BOUNDS }).await;
            assert_eq!(read, Err(DocumentError::Late(within)), "{response}");
        }
    }
}
