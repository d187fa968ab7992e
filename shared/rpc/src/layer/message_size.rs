//! Reports a message that is too large with the error of the error table.
//!
//! tonic rejects such a message itself, before it is read, but with `OUT_OF_RANGE` and a text. It
//! offers no hook, so its response is detected by that text; a test with a real server verifies
//! that both match.

use std::convert::Infallible;

use http::HeaderMap;
use http_body::Frame;
use tonic::{Code, Status};
use tower::Service;

use super::{
    Request, Response, ResponseFuture,
    body_wrapper::{BodyPart, BodyWrapper, Next, wrap_body},
    code_of, error_response,
    middleware::{Middleware, MiddlewareLayer},
    trailers,
};
use trestle_model::fault::{Fault, message_too_large};

/// The prefix of tonic's text in a header.
const TEXT: &[u8] = b"Error, decoded message length too large";
/// The same with blanks encoded.
const TEXT_ENCODED: &[u8] = b"Error,%20decoded%20message%20length%20too%20large";

/// Translates tonic's error for large messages.
pub type MessageSizeLayer = MiddlewareLayer<MessageSize>;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct MessageSize {
    bytes_max: usize,
}

impl MessageSizeLayer {
    /// For services that decode messages of up to `bytes_max`.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self(MessageSize { bytes_max })
    }
}

impl MessageSize {
    fn fault(self) -> Fault {
        message_too_large(self.bytes_max)
    }
}

fn is_too_large(headers: &HeaderMap) -> bool {
    code_of(headers) == Some(Code::OutOfRange)
        && headers.get(Status::GRPC_MESSAGE).is_some_and(|text| {
            let text = text.as_bytes();
            text.starts_with(TEXT) || text.starts_with(TEXT_ENCODED)
        })
}

impl Middleware for MessageSize {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let limit = *self;
        let answer = inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            if is_too_large(answer.headers()) {
                return Ok(error_response(limit.fault()));
            }
            Ok(answer.map(|body| wrap_body(body, limit)))
        })
    }
}

/// The trailers are translated: a stream of requests is rejected after the response began.
impl BodyWrapper for MessageSize {
    fn map_part(&mut self, part: BodyPart) -> Next {
        Next::Part(match part {
            Some(Ok(frame)) if frame.trailers_ref().is_some_and(is_too_large) => {
                Some(Ok(Frame::trailers(trailers(self.fault()))))
            }
            other => other,
        })
    }
}
