//! Compression of messages: requests in gzip, deflate or zstd, and responses where the client requests it.
//!
//! In front of a service, behind everything that passes bodies as they are, such as a gateway. tonic has compression of
//! its own; this layer reads the same format, and adds what a server needs: a bound on the memory of a decompressed
//! message, window included, which counts for the budget of bodies; small messages stay as they are; and a level of
//! compression that does not make a page ten times as expensive.

mod encoding;
mod requests;
mod responses;
mod uncompressed;

use std::{convert::Infallible, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use tower::Service;

pub use self::uncompressed::UncompressedLayer;
use self::{
    encoding::MessageEncoding, requests::DecompressedRequest, responses::CompressedResponse,
};
use super::{
    Request, Response, ResponseFuture,
    body_bytes::BodyPool,
    body_wrapper::wrap_body,
    code_of, error_response,
    middleware::{Middleware, MiddlewareLayer},
};
use trestle_model::fault::{Fault, Reason, quoted};

/// The encoding of the messages of a request or a response.
pub const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// The encodings that the sender reads.
pub const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
/// No compression.
const IDENTITY: &str = "identity";
/// What this layer reads.
const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip,zstd,deflate,identity");

/// Compresses and decompresses messages.
pub type MessageCompressionLayer = MiddlewareLayer<MessageCompression>;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct MessageCompression {
    /// Largest message of a request, in bytes, after decompression.
    message_bytes_max: usize,
}

impl MessageCompression {
    /// For messages of requests of up to so many bytes.
    #[must_use]
    pub fn new(message_bytes_max: usize) -> Self {
        Self { message_bytes_max }
    }
}

impl MessageCompressionLayer {
    /// For messages of requests of up to so many bytes, after decompression.
    #[must_use]
    pub fn new(message_bytes_max: usize) -> Self {
        Self(MessageCompression::new(message_bytes_max))
    }
}

impl Middleware for MessageCompression {
    fn call<S>(&self, mut request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let (declared, requested) = match declared(request.headers()) {
            Ok(declared) => (declared, requested(declared, request.headers())),
            Err(fault) => return rejected(fault, ACCEPTED),
        };
        request.headers_mut().remove(ENCODING);
        let held = declared.map(|encoding| {
            let held = BodyPool::held(request.extensions());
            (encoding, Arc::new(held))
        });
        let request = match &held {
            Some((encoding, held)) => {
                let message_bytes_max = self.message_bytes_max;
                let held = Arc::clone(held);
                let decompressed = DecompressedRequest::new(*encoding, message_bytes_max, held);
                request.map(|body| wrap_body(body, decompressed))
            }
            None => request,
        };
        let answer = inner.call(request);
        if held.is_none() && requested.is_none() {
            return answer;
        }
        Box::pin(async move {
            let answer = answer.await?;
            // What was decompressed is in use until here.
            drop(held);
            Ok(match requested {
                Some(encoding) => compressed(answer, encoding),
                None => answer,
            })
        })
    }
}

/// A response whose messages are compressed; one that failed has none.
fn compressed(mut answer: Response, encoding: MessageEncoding) -> Response {
    if code_of(answer.headers()).is_some() {
        return answer;
    }
    answer.headers_mut().insert(ENCODING, HeaderValue::from_static(encoding.name()));
    answer.headers_mut().insert(ACCEPT_ENCODING, ACCEPTED);
    answer.map(|body| wrap_body(body, CompressedResponse::new(encoding)))
}

/// The response to an unsupported encoding, with the supported ones.
fn rejected(fault: Fault, supported: HeaderValue) -> ResponseFuture {
    let mut answer = error_response(fault);
    answer.headers_mut().insert(ACCEPT_ENCODING, supported);
    Box::pin(async move { Ok(answer) })
}

/// The encoding of the messages of a request; none: they are not compressed.
fn declared(headers: &HeaderMap) -> Result<Option<MessageEncoding>, Fault> {
    let Some(value) = headers.get(ENCODING) else { return Ok(None) };
    let name = String::from_utf8_lossy(value.as_bytes());
    match MessageEncoding::named(name.trim()) {
        None if name.trim() != IDENTITY => Err(unsupported(&name, &ACCEPTED)),
        encoding => Ok(encoding),
    }
}

/// The error of an encoding where others are supported.
fn unsupported(name: &str, supported: &HeaderValue) -> Fault {
    let supported = String::from_utf8_lossy(supported.as_bytes());
    let name = quoted(name);
    let message =
        format!("unsupported compression: grpc-encoding=`{name}`, supported=`{supported}`");
    Fault::new(Reason::NotImplemented, message)
}

/// The encoding that the client requests. That it reads one is not enough: most libraries offer gzip
/// by themselves, and compression costs more than all other work on a page. It requests one by
/// compressing the request, by naming an encoding before `identity`, or by naming zstd, which no
/// library offers by itself.
fn requested(declared: Option<MessageEncoding>, headers: &HeaderMap) -> Option<MessageEncoding> {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let Some(accepted) = accepted else { return declared };
    let names = || accepted.split(',').map(str::trim);
    let is_accepted = |encoding: &MessageEncoding| names().any(|name| name == encoding.name());
    declared
        .filter(is_accepted)
        .or_else(|| {
            names().find_map(MessageEncoding::named).filter(|_| prefers_compression(names()))
        })
        .or_else(|| Some(MessageEncoding::Zstd).filter(is_accepted))
}

/// Whether a list names an encoding, and later `identity`.
fn prefers_compression<'a>(mut names: impl Iterator<Item = &'a str>) -> bool {
    names.next().is_some_and(|first| first != IDENTITY) && names.any(|name| name == IDENTITY)
}

#[cfg(test)]
mod tests;
