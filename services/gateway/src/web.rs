//! gRPC-Web, the form of gRPC for browsers, translated in front of all layers: they see gRPC, and their
//! errors become gRPC-Web too.
//!
//! tonic-web does the translation. This module adds what it lacks: which requests are accepted,
//! bodies that do not report the length that they had before their translation, errors that name the
//! client's mistake, and statuses that a page can read without access to response headers.

mod request_body;
mod response_body;
#[cfg(test)]
pub(crate) mod tests;
mod translation;

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use http::{HeaderValue, Method, StatusCode, Version, header};
use tonic_web::GrpcWebLayer;
use tower::{Layer as _, Service};
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::call_protocol::CallProtocol;
use trestle_rpc::layer::body_bytes::DeclaredLength;
use trestle_rpc::layer::short_circuit::with_outcome;
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture};

use self::translation::TranslationLayer;
use crate::{
    otlp_http::{self, OtlpPath},
    plain_answer::{plain, with_allowed},
    short_circuit::ShortCircuit,
};

/// Prefix of the content types of gRPC.
const GRPC: &[u8] = b"application/grpc";
/// Prefix of the content types of gRPC-Web.
const WEB: &[u8] = b"application/grpc-web";
/// The supported content types: binary messages, and base64 text.
const TYPES: [&[u8]; 4] = [
    b"application/grpc-web+proto",
    b"application/grpc-web",
    b"application/grpc-web-text",
    b"application/grpc-web-text+proto",
];
/// Accepts gRPC and gRPC-Web; gRPC costs one comparison of its content type.
#[derive(Clone)]
pub(crate) struct Web {
    calls: CallService,
    short_circuit: ShortCircuit,
}

impl Web {
    /// Before a service of gRPC.
    pub(crate) fn new(calls: CallService, short_circuit: ShortCircuit) -> Self {
        Self { calls, short_circuit }
    }

    /// Responds to a request of OTLP over HTTP.
    fn export(&mut self, path: &'static OtlpPath, request: Request) -> ResponseFuture {
        match otlp_http::check(&request) {
            Ok(()) => {
                let exported = otlp_http::export(self.calls.clone(), path, request);
                Box::pin(async move { Ok(exported.await) })
            }
            Err(rejection) => {
                let answer = rejection.response(request.headers());
                self.short_circuit.answer(&request, std::future::ready(answer))
            }
        }
    }

    /// Rejects a request that is not a call, with a status of HTTP.
    fn reject(&mut self, request: &Request, reason: Reason, text: &'static str) -> ResponseFuture {
        let status = match reason {
            Reason::UnsupportedHttpVerb => StatusCode::METHOD_NOT_ALLOWED,
            _ => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        };
        let answer = with_allowed(plain(status, text.to_owned()));
        let answer = with_outcome(answer, Err(Fault::new(reason, text)));
        self.short_circuit.answer(request, std::future::ready(answer))
    }
}

impl Service<Request> for Web {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.calls.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> ResponseFuture {
        if let Some(path) = otlp_http::path_of(&request) {
            return self.export(path, request);
        }
        let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        match kind {
            Some(kind) if kind.starts_with(WEB) => {
                let is_supported = TYPES.contains(&kind);
                request.extensions_mut().insert(CallProtocol::GrpcWeb);
                if request.method() != Method::POST {
                    let text = "gRPC-Web needs POST";
                    return self.reject(&request, Reason::UnsupportedHttpVerb, text);
                }
                if !is_supported {
                    let text = "gRPC-Web needs messages in Protocol Buffers: the type \
                                application/grpc-web+proto or application/grpc-web-text+proto";
                    return self.reject(&request, Reason::InvalidHeaderValue, text);
                }
                answer_in_kind(&mut request);
                DeclaredLength::keep(&mut request);
                // Built here, so that the clone for each call of gRPC copies nothing more.
                let inner = self.calls.clone();
                Box::pin(
                    GrpcWebLayer::new()
                        .layer(TranslationLayer::default().layer(inner))
                        .call(request),
                )
            }
            // Other types are rejected: a page may send text to any origin without a preflight, and
            // must not write with it.
            Some(kind) if grpc_codec(kind, request.version()).is_some() => {
                match *request.method() == Method::POST {
                    true => self.calls.call(request),
                    false => self.reject(&request, Reason::UnsupportedHttpVerb, "gRPC needs POST"),
                }
            }
            _ => {
                let text = "this address serves gRPC over HTTP/2, and gRPC-Web over HTTP/1.1 too";
                self.reject(&request, Reason::InvalidHeaderValue, text)
            }
        }
    }
}

/// What follows the type of gRPC in a content type, such as `+proto`; none for other types, and before HTTP/2.
pub(crate) fn grpc_codec(kind: &[u8], version: Version) -> Option<&[u8]> {
    kind.strip_prefix(GRPC).filter(|_| version >= Version::HTTP_2)
}

/// A response has the type of its request, unless the client accepts another one of these only: a
/// client of text that names none could not read bytes.
fn answer_in_kind(request: &mut Request) {
    let headers = request.headers_mut();
    let accepted = headers.get(header::ACCEPT).map(HeaderValue::as_bytes);
    if accepted.is_none_or(|accepted| !TYPES.contains(&accepted))
        && let Some(kind) = headers.get(header::CONTENT_TYPE).cloned()
    {
        headers.insert(header::ACCEPT, kind);
    }
}
