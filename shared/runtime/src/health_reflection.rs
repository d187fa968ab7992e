//! The health and reflection router: the outermost service of a listener, which serves both beside the
//! services themselves.
//!
//! Both are outside the layers of a call: they must respond under overload, need no credentials, and
//! a watch of health lasts for days.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use tower::{Layer as _, Service};
use trestle_service::layer::{
    CallService, Request, Response, ResponseFuture, compression::MessageCompressionLayer,
    unknown_method::UnknownMethodLayer,
};

use crate::{health::Health, reflection::Reflection};

pub use crate::reflection::DescriptorError;

/// Health, reflection and the rest.
#[derive(Clone)]
pub struct HealthReflectionRouter {
    routes: [(&'static str, CallService); 3],
    rest: CallService,
}

impl HealthReflectionRouter {
    /// Health, and reflection of these descriptors, before `rest`. The descriptors of both are among them; services in
    /// `absent` are not served here, and not listed.
    ///
    /// # Errors
    /// A malformed descriptor set.
    pub fn new(
        health: &Health,
        descriptors: &[u8],
        absent: &[&str],
        rest: CallService,
    ) -> Result<Self, DescriptorError> {
        let (named, compressed) =
            (UnknownMethodLayer::default(), MessageCompressionLayer::default());
        // A channel that compresses does so for these calls too.
        let reflection = compressed.layer(named.layer(Reflection::new(descriptors, absent)?));
        let reflection = CallService::new(reflection);
        let health = CallService::new(compressed.layer(named.layer(health.service())));
        let routes = [
            ("/grpc.health.v1.Health/", health),
            ("/grpc.reflection.v1.ServerReflection/", reflection.clone()),
            ("/grpc.reflection.v1alpha.ServerReflection/", reflection),
        ];
        Ok(Self { routes, rest })
    }
}

impl Service<Request> for HealthReflectionRouter {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.rest.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        let path = request.uri().path();
        let own = path.starts_with("/grpc.").then(|| {
            let mut routes = self.routes.iter_mut();
            routes.find(|(prefix, _)| path.starts_with(prefix))
        });
        match own.flatten() {
            Some((_, service)) => service.call(request),
            None => self.rest.call(request),
        }
    }
}
