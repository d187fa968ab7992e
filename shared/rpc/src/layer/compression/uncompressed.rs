//! Rejects compressed requests, before a service that anyone may call: a small message must not become a large one.

use http::HeaderValue;
use tower::Service;

use super::{
    super::{
        Request, Response, ResponseFuture,
        middleware::{Middleware, MiddlewareLayer},
    },
    ENCODING, IDENTITY, rejected, unsupported,
};

/// Before a service.
pub type UncompressedLayer = MiddlewareLayer<Uncompressed>;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uncompressed;

impl Middleware for Uncompressed {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<
                Request,
                Response = Response,
                Error = std::convert::Infallible,
                Future = ResponseFuture,
            >,
    {
        let declared = request.headers().get(ENCODING).map(HeaderValue::as_bytes);
        let name = declared.map(String::from_utf8_lossy).unwrap_or_default();
        match name.trim() {
            "" | IDENTITY => inner.call(request),
            name => {
                let supported = HeaderValue::from_static(IDENTITY);
                rejected(unsupported(name, &supported), supported)
            }
        }
    }
}
