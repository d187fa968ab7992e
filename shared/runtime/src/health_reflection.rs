//! The health and reflection router: the outermost service of a listener, which serves both beside the
//! services themselves.
//!
//! Both are outside the layers of a call: they must respond under overload, need no credentials, and
//! a watch of health lasts for days.

use std::{
    convert::Infallible,
    task::{Context, Poll},
};

use tonic_reflection::server::Builder;
use tower::Service;
use trestle_service::layer::{CallService, Request, Response, ResponseFuture};

use crate::health::Health;

/// Descriptors that reflection cannot read.
#[derive(Debug, thiserror::Error)]
#[error("descriptors cannot be served by reflection: {0}")]
pub struct DescriptorError(String);

/// Health, reflection and the rest.
#[derive(Clone)]
pub struct HealthReflectionRouter {
    routes: [(&'static str, CallService); 3],
    rest: CallService,
}

impl HealthReflectionRouter {
    /// Health, and reflection of these descriptors, before `rest`. The descriptors of both are among them.
    ///
    /// # Errors
    /// A malformed descriptor set.
    pub fn new(
        health: &Health,
        descriptors: &[u8],
        rest: CallService,
    ) -> Result<Self, DescriptorError> {
        // Copied, because the builder borrows its descriptors for its whole lifetime.
        let descriptors = descriptors.to_vec();
        let builder = || {
            Builder::configure()
                .register_encoded_file_descriptor_set(&descriptors)
                // The descriptors have the reflection services, with comments.
                .include_reflection_service(false)
        };
        let failed = |error: tonic_reflection::server::Error| DescriptorError(error.to_string());
        let v1 = CallService::new(builder().build_v1().map_err(failed)?);
        let v1alpha = CallService::new(builder().build_v1alpha().map_err(failed)?);
        let routes = [
            ("/grpc.health.v1.Health/", health.service()),
            ("/grpc.reflection.v1.ServerReflection/", v1),
            ("/grpc.reflection.v1alpha.ServerReflection/", v1alpha),
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
