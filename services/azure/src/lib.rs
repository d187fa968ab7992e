//! The Azure Storage protocol: REST in front of the same services that gRPC calls.
//!
//! Each Azure service has a front of its own, behind a listener of its own. A front only
//! translates: one request of HTTP becomes one call of gRPC, and its answer the answer that Azure
//! would give. It holds no rule of the data; those are the services'.
//!
//! A request, in the order of the files:
//! - `front`, outermost: reads `address`, version and parameters into a `head`, lets the protocol
//!   find the operation, and sends the request on under the gRPC method it becomes.
//! - the layers of the gateway see that method: trace, limits, shedding, metrics, access log.
//! - `inner`, behind them: `auth` finds out who calls, the body is read, the protocol translates
//!   it and makes the call through `call`.
//! - `failure`, outermost again: whoever refused the request, its failure is written once, in the
//!   form of the service.

#![allow(dead_code, reason = "the operations follow")]

mod address;
mod auth;
mod call;
mod failure;
mod front;
mod gzip;
mod head;
mod inner;
mod params;
mod protocol;
mod queue;
mod reply;
pub mod table;
mod version;
pub mod xml;

use std::sync::Arc;

use trestle_service::{
    clock::Clock,
    cors::Lookup,
    layer::{CallService, credentials::Identity},
    upstream::Upstream,
};

use self::{front::Front, inner::Inner, protocol::Protocol};

/// What an operator chooses for a front.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether answers are compressed for clients that ask for it. Bodies of requests may always
    /// be.
    pub compresses: bool,
}

/// The front of tables: translates requests to calls of `upstream`. `layers` puts those of the
/// gateway before the service that it is given.
#[must_use]
pub fn tables(
    upstream: Upstream,
    identity: Identity,
    options: Options,
    layers: impl FnOnce(CallService) -> CallService,
) -> CallService {
    let rules = Lookup::of_table(upstream.clone());
    let table = table::Table::new(Arc::clone(&identity.clock));
    front(table, upstream, identity, options, layers, rules)
}

/// The front of queues; see [`tables`].
#[must_use]
pub fn queues(
    upstream: Upstream,
    identity: Identity,
    options: Options,
    layers: impl FnOnce(CallService) -> CallService,
) -> CallService {
    let rules = Lookup::of_queue(upstream.clone());
    let protocol = queue::Queue::new(Arc::clone(&identity.clock));
    front(protocol, upstream, identity, options, layers, rules)
}

fn front<P: Protocol>(
    protocol: P,
    upstream: Upstream,
    identity: Identity,
    options: Options,
    layers: impl FnOnce(CallService) -> CallService,
    rules: Lookup,
) -> CallService {
    let clock: Arc<dyn Clock> = Arc::clone(&identity.clock);
    let inner = Inner::new(protocol.clone(), upstream, identity);
    let calls = layers(CallService::new(inner));
    let front = CallService::new(Front::new(protocol, calls, clock, rules));
    if options.compresses { gzip::compressing(front) } else { front }
}
