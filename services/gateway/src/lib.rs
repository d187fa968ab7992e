//! The gateway: what every call from outside passes before it reaches the service that owns the
//! data.
//!
//! It holds calls to their deadlines, sheds load, says who calls, and picks the service by the
//! path. It owns no data and decodes no message: bodies and trailers pass as they are. Browsers
//! come in by [`browsers`], in front of it all.

mod cors;
mod route;
mod web;

use std::time::Duration;

use tower::ServiceBuilder;
use trestle_service::layer::{
    CallService,
    admission::AdmissionLayer,
    body_bytes::BodyBytesLayer,
    credentials::{CredentialsLayer, Identity},
    deadline::DeadlineLayer,
    panic::PanicLayer,
    trace::TraceLayer,
};

use crate::cors::PageAccountLayer;

pub use cors::{Accounts, browsers};
pub use route::Routes;
pub use trestle_service::layer::trace::Observe;

/// The bounds of calls.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most calls at a time; of these, at most half are streams.
    pub calls_max: usize,
    /// Most bytes that bodies of calls hold at a time.
    pub body_bytes_max: usize,
    /// Longest time until a request that is one message is here.
    pub request_within_max: Duration,
    /// Longest time until an answer begins.
    pub answer_within_max: Duration,
}

/// The gateway before `routes`: calls from outside come in here.
#[must_use]
pub fn gateway(
    routes: Routes,
    limits: Limits,
    identity: Identity,
    observe: Observe,
) -> CallService {
    let (methods, bytes_max) = (observe.methods.clone(), limits.body_bytes_max);
    let stack = ServiceBuilder::new()
        // First, so that it sees every call and the very answer that the client gets.
        .layer(TraceLayer::new(observe))
        // Before anything that could fail, and after what has to record the failure.
        .layer(PanicLayer::default())
        // Before admission: a call that is over must not hold its place.
        .layer(DeadlineLayer::new(limits.answer_within_max))
        // Before credentials: shedding has to be the cheapest thing a server does under load.
        .layer(AdmissionLayer::new(limits.calls_max, methods.clone()))
        // After the count of calls, which is cheaper still; before anybody reads a body.
        .layer(BodyBytesLayer::new(bytes_max, limits.request_within_max, methods))
        // Says who calls; nothing below sees credentials.
        .layer(CredentialsLayer::new(identity))
        // Right after credentials: a page may see what the rules of this account allow.
        .layer(PageAccountLayer::default())
        // Last: the service answers from here.
        .service(routes);
    CallService::new(stack)
}
