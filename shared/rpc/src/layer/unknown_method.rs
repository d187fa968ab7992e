//! Names the method that a service does not have: tonic responds with `UNIMPLEMENTED` and nothing else.

use crate::status::IntoStatus as _;
use std::convert::Infallible;

use tonic::{Code, Status};
use tower::Service;

use super::{
    Request, Response, ResponseFuture, code_of,
    middleware::{Middleware, MiddlewareLayer},
};
use crate::status::domain_of;
use trestle_model::fault::{Fault, Reason, quoted};

/// Before a service.
pub type UnknownMethodLayer = MiddlewareLayer<UnknownMethod>;

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnknownMethod;

impl Middleware for UnknownMethod {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let uri = request.uri().clone();
        let answer = inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let headers = answer.headers();
            let is_bare = code_of(headers) == Some(Code::Unimplemented)
                && !headers.contains_key(Status::GRPC_MESSAGE);
            if !is_bare {
                return Ok(answer);
            }
            let path = uri.path();
            let message = format!("unknown method: path=`{}`", quoted(path));
            let fault = Fault::new(Reason::NotImplemented, message);
            let mut answer: Response = fault.into_status(domain_of(path)).into_http();
            answer.extensions_mut().insert(Reason::NotImplemented);
            Ok(answer)
        })
    }
}
