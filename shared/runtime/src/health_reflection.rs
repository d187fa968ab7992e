//! The health and reflection router: the outermost service of a listener, which serves both beside the
//! services themselves.
//!
//! Both are outside the layers of a call: they must respond under overload, need no credentials, and
//! a watch of health lasts for days. Each has layers of its own with small bounds: anyone may call it.

use std::{
    convert::Infallible,
    task::{Context, Poll},
    time::Duration,
};

use tower::{Service, ServiceBuilder};
use trestle_model::limits::{
    HEALTH_BODY_BYTES_MAX, HEALTH_CALLS_MAX, HEALTH_MESSAGE_BYTES_MAX, REFLECTION_BODY_BYTES_MAX,
    REFLECTION_CALLS_MAX, REFLECTION_MESSAGE_BYTES_MAX, STREAM_IDLE_MAX,
};
use trestle_rpc::layer::admission::AdmissionLayer;
use trestle_rpc::layer::body_bytes::{BodyBounds, BodyBytesLayer};
use trestle_rpc::layer::compression::UncompressedLayer;
use trestle_rpc::layer::deadline::DeadlineLayer;
use trestle_rpc::layer::message_size::MessageSizeLayer;
use trestle_rpc::layer::methods::Methods;
use trestle_rpc::layer::unknown_method::UnknownMethodLayer;
use trestle_rpc::layer::{CallService, Request, Response, ResponseFuture};

use crate::{health::Health, reflection::Reflection};

pub use crate::reflection::DescriptorError;

/// Longest time until a response begins. None of them waits for anything but its request.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The contracts of health and reflection; encoded sets in a row are one set.
const OWN_DESCRIPTORS: [&[u8]; 3] = [
    tonic_health::pb::FILE_DESCRIPTOR_SET,
    tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
    tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
];

/// Health, reflection and the rest.
#[derive(Clone)]
pub struct HealthReflectionRouter {
    routes: [(&'static str, CallService); 3],
    rest: CallService,
}

impl HealthReflectionRouter {
    /// Health, and reflection of these descriptors, before `rest`. Services in `absent` are not served here, and not
    /// listed. A message has to arrive within `request_within`.
    ///
    /// # Errors
    /// A malformed descriptor set.
    pub fn new(
        health: &Health,
        descriptors: &[u8],
        absent: &[&str],
        request_within: Duration,
        rest: CallService,
    ) -> Result<Self, DescriptorError> {
        // Their own: those of a contract with its comments are many times larger.
        let methods = Methods::from_descriptors(&OWN_DESCRIPTORS.concat())?;
        let bounds = |bytes_max, message_bytes_max| BodyBounds {
            bytes_max,
            message_bytes_max,
            arrives_within: request_within,
            next_message_within: Some(STREAM_IDLE_MAX),
        };
        let health = before(
            health.service(),
            HEALTH_CALLS_MAX,
            bounds(HEALTH_BODY_BYTES_MAX, HEALTH_MESSAGE_BYTES_MAX),
            &methods,
        );
        let reflection = before(
            CallService::new(Reflection::new(descriptors, absent)?),
            REFLECTION_CALLS_MAX,
            bounds(REFLECTION_BODY_BYTES_MAX, REFLECTION_MESSAGE_BYTES_MAX),
            &methods,
        );
        let routes = [
            ("/grpc.health.v1.Health/", health),
            ("/grpc.reflection.v1.ServerReflection/", reflection.clone()),
            ("/grpc.reflection.v1alpha.ServerReflection/", reflection),
        ];
        Ok(Self { routes, rest })
    }
}

/// A service that anyone may call, behind layers with bounds of its own.
fn before(
    service: CallService,
    calls_max: usize,
    bounds: BodyBounds,
    methods: &Methods,
) -> CallService {
    let stack = ServiceBuilder::new()
        .layer(DeadlineLayer::new(ANSWER_WITHIN, methods.clone()))
        .layer(AdmissionLayer::new(calls_max, methods.clone()))
        .layer(BodyBytesLayer::new(bounds, methods.clone()))
        // No small message becomes a large one.
        .layer(UncompressedLayer::default())
        .layer(MessageSizeLayer::new(bounds.message_bytes_max))
        .layer(UnknownMethodLayer::default())
        .service(service);
    CallService::new(stack)
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
