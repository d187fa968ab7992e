//! The handover of deliveries to the transport: a response that no client reads releases its messages.
//!
//! The handover travels with the response and is completed when the first part of the body is read, to be sent. Up to
//! then the response may be dropped: the client disconnected, or does not read.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use tower::Service;
use trestle_rpc::layer::body_wrapper::{BodyPart, BodyWrapper, Next, wrap_body};
use trestle_rpc::layer::middleware::Middleware;
use trestle_rpc::layer::{Request, Response, ResponseFuture};

use crate::release::DeliveryHandover;

/// The handover of a response, in its extensions, which must be cloneable.
#[derive(Clone)]
pub(super) struct ResponseHandover(Arc<Mutex<Option<DeliveryHandover>>>);

/// Moves the handovers of responses into their bodies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Handovers;

struct HandoverBody(Option<DeliveryHandover>);

impl ResponseHandover {
    pub(super) fn new(handover: DeliveryHandover) -> Self {
        Self(Arc::new(Mutex::new(Some(handover))))
    }
}

impl Middleware for Handovers {
    fn call<S>(&self, request: Request, inner: &mut S) -> ResponseFuture
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>,
    {
        let answer = inner.call(request);
        Box::pin(async move {
            let mut answer = answer.await?;
            let Some(ResponseHandover(handover)) = answer.extensions_mut().remove() else {
                return Ok(answer);
            };
            let handover = handover.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok(answer.map(|body| wrap_body(body, HandoverBody(handover))))
        })
    }
}

impl BodyWrapper for HandoverBody {
    fn map_part(&mut self, part: BodyPart) -> Next {
        if let (Some(Ok(_)), Some(handover)) = (&part, self.0.take()) {
            handover.complete();
        }
        Next::Part(part)
    }
}
