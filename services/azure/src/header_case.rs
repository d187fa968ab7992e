//! The case of the names of headers, which metadata keeps: `http` has them in lower case.
//!
//! Over HTTP/1 hyper keeps the names as they were sent in an extension of a request, and writes those
//! of an extension of a response. The extension is private, so the names are read from what a client
//! of hyper writes for it, and made by what a server of hyper reads: both in memory, and only for
//! requests with metadata.

use std::{
    convert::Infallible,
    io,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::Empty;
use hyper::{client, rt, server::conn::http1::Builder, service::service_fn};

/// Most headers of a request for a queue or a blob: as many as its metadata can have in a head of 32 KiB,
/// since it is sent as headers, and may have a name for every few bytes.
pub const METADATA_HEADERS_MAX: usize = 2048;

/// The names of these headers of a request as they were sent, in any order; in lower case where the
/// protocol has no other.
pub(crate) fn sent(extensions: &Extensions, headers: &[HeaderName]) -> Vec<String> {
    let lower = || headers.iter().map(|name| name.as_str().to_owned()).collect();
    written(extensions, headers).as_deref().and_then(names).unwrap_or_else(lower)
}

/// The extensions that give these names to the headers of a response.
pub(crate) fn extensions(names: &[String]) -> Option<Extensions> {
    let mut head = b"GET / HTTP/1.1\r\n".to_vec();
    for name in names {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": \r\n");
    }
    head.extend_from_slice(b"\r\n");
    let found = Arc::new(Mutex::new(None));
    let keeps = Arc::clone(&found);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        *keeps.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.extensions().clone());
        std::future::ready(Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())))
    });
    let mut builder = Builder::new();
    builder
        .preserve_header_case(true)
        .max_headers(METADATA_HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    let connection = builder.serve_connection(Memory::of(head), service);
    poll(pin!(connection));
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    found.take()
}

/// Room for the names of all metadata, with what separates them.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The head of a request with these headers, as a client of hyper writes it.
fn written(extensions: &Extensions, headers: &[HeaderName]) -> Option<Vec<u8>> {
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.extensions_mut() = extensions.clone();
    let empty = HeaderValue::from_static("");
    let headers = headers.iter().map(|name| (name.clone(), empty.clone()));
    *request.headers_mut() = HeaderMap::from_iter(headers);
    let memory = Memory::of(Vec::new());
    let output = Arc::clone(&memory.output);
    let mut builder = client::conn::http1::Builder::new();
    let handshake = builder.preserve_header_case(true).handshake(memory);
    let (mut sender, mut connection) = poll(pin!(handshake))?.ok()?;
    let _response = sender.send_request(request);
    poll(Pin::new(&mut connection));
    let output = std::mem::take(&mut *output.lock().unwrap_or_else(PoisonError::into_inner));
    Some(output)
}

/// The names of the headers in the head of a request.
fn names(head: &[u8]) -> Option<Vec<String>> {
    let mut lines = vec![httparse::EMPTY_HEADER; METADATA_HEADERS_MAX];
    let start = memchr::memchr(b'\n', head)?;
    let httparse::Status::Complete((_, headers)) =
        httparse::parse_headers(head.get(start + 1..)?, &mut lines).ok()?
    else {
        return None;
    };
    Some(headers.iter().map(|header| header.name.to_owned()).collect())
}

/// Polls once: nothing in memory is waited for.
fn poll<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A connection in memory, whose other end sent these bytes and reads nothing.
struct Memory {
    input: Vec<u8>,
    output: Arc<Mutex<Vec<u8>>>,
}

impl Memory {
    fn of(input: Vec<u8>) -> Self {
        Self { input, output: Arc::default() }
    }
}

impl rt::Read for Memory {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut into: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.input.is_empty() {
            return Poll::Pending;
        }
        let count = self.input.len().min(into.remaining());
        let rest = self.input.split_off(count);
        into.put_slice(&self.input);
        self.input = rest;
        Poll::Ready(Ok(()))
    }
}

impl rt::Write for Memory {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lower(names: &[String]) -> Vec<HeaderName> {
        names.iter().map(|name| name.parse().expect("a name")).collect()
    }

    #[test]
    fn names_survive_a_round_trip_through_the_extensions() {
        let few = vec!["x-ms-meta-OwnerName".to_owned(), "X-MS-Meta-b".to_owned()];
        let many = (0..1_500).map(|at| format!("x-ms-meta-Name{at}")).collect();
        for names in [few, many] {
            let extensions = extensions(&names).expect("extensions");

            let mut found = sent(&extensions, &lower(&names));

            found.sort();
            let mut names = names;
            names.sort();
            assert_eq!(found, names);
        }
    }

    #[test]
    fn without_extensions_names_are_in_lower_case() {
        let names = ["x-ms-meta-Owner".to_owned()];
        assert_eq!(sent(&Extensions::new(), &lower(&names)), ["x-ms-meta-owner"]);
    }
}
