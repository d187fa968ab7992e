//! The entry of a process without the gateway: gRPC and nothing else.
//!
//! A page may send text to any origin without a preflight request, and must not write with it. Browsers use no
//! HTTP/2 without TLS and send no content type of gRPC without a preflight, which such a process does not answer.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use http::{HeaderValue, Method, StatusCode, header};
use tower::Service;
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture};

use crate::plain_answer::{plain, with_allowed};
use crate::web::grpc_codec;

/// Accepts calls of gRPC; other requests are rejected with 415, as the specification of gRPC over HTTP/2 has it.
#[derive(Clone)]
pub struct GrpcOnly(CallService);

impl GrpcOnly {
    /// Before a service of gRPC.
    #[must_use]
    pub fn new(calls: CallService) -> Self {
        Self(calls)
    }
}

impl Service<Request> for GrpcOnly {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        let status = match is_grpc(&request) {
            true if request.method() == Method::POST => return self.0.call(request),
            true => StatusCode::METHOD_NOT_ALLOWED,
            false => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        };
        let text = "this address serves gRPC over HTTP/2 only, by POST";
        let answer = with_allowed(plain(status, text.to_owned()));
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// Whether a request is a call of gRPC, and none of gRPC-Web.
fn is_grpc(request: &Request) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let codec = kind.and_then(|kind| grpc_codec(kind, request.version()));
    codec.is_some_and(|codec| matches!(codec, [] | [b'+' | b';', ..]))
}

#[cfg(test)]
mod tests {
    use http::Version;
    use tonic::{Status, body::Body};
    use tower::service_fn;

    use super::*;

    async fn status_of(version: Version, kind: Option<&'static str>) -> StatusCode {
        status_by(Method::POST, version, kind).await
    }

    async fn status_by(method: Method, version: Version, kind: Option<&'static str>) -> StatusCode {
        let calls = service_fn(|_: Request| async { Ok(Status::ok("").into_http()) });
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.version_mut() = version;
        if let Some(kind) = kind {
            request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        let Ok(answer) = GrpcOnly::new(CallService::new(calls)).call(request).await;
        answer.status()
    }

    #[tokio::test]
    async fn a_call_is_a_post() {
        for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
            let status = status_by(method, Version::HTTP_2, Some("application/grpc")).await;
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
        }
    }

    #[tokio::test]
    async fn only_grpc_over_http_2_is_a_call() {
        for kind in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"]
        {
            assert_eq!(status_of(Version::HTTP_2, Some(kind)).await, StatusCode::OK, "{kind}");
            let earlier = status_of(Version::HTTP_11, Some(kind)).await;
            assert_eq!(earlier, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        }
        for kind in [
            // A page may send these to any origin without a preflight request.
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=b",
            "application/json",
            "application/grpc-web",
            "application/grpc-web+proto",
            "application/grpcx",
        ] {
            let status = status_of(Version::HTTP_2, Some(kind)).await;
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        }
        assert_eq!(status_of(Version::HTTP_2, None).await, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
}
