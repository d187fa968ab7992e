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

mod address;
mod auth;
#[cfg(test)]
mod bulk_tests;
mod collected;
mod dispatch;
mod drain;
mod error;
mod grpc_call;
mod gzip;
mod head;
mod http_edge;
mod params;
mod protocol;
mod queue;
mod reply;
mod request_body;
pub mod table;
mod version;
pub mod xml;

use std::sync::Arc;

use trestle_identity::credentials::Identity;
use trestle_service::{clock::Clock, cors::Lookup, layer::CallService, upstream::Upstream};

use self::{dispatch::Dispatch, http_edge::HttpEdge, protocol::Protocol};

/// Most headers of a request for a queue: as many as its metadata can be in a head of 32 KiB, which
/// comes as headers, and may have a name for every few bytes.
pub const QUEUE_HEADERS_MAX: usize = 2048;

/// What a front stands before, and how.
#[derive(Clone)]
pub struct Deps {
    /// The service that is called.
    pub upstream: Upstream,
    /// What credentials are checked with.
    pub identity: Identity,
    /// Whether answers are compressed for clients that ask for it. Bodies of requests may always
    /// be.
    pub compresses: bool,
}

/// The front of tables: translates requests to calls. `layers` puts those of the gateway before
/// the service that it is given.
#[must_use]
pub fn tables(deps: Deps, layers: impl FnOnce(CallService) -> CallService) -> CallService {
    let rules = Lookup::new("trestle.table.v1.TableService", deps.upstream.clone());
    let table = table::Table::new(Arc::clone(&deps.identity.clock));
    front(table, deps, layers, rules)
}

/// The front of queues; see [`tables`].
#[must_use]
pub fn queues(deps: Deps, layers: impl FnOnce(CallService) -> CallService) -> CallService {
    let rules = Lookup::new("trestle.queue.v1.QueueService", deps.upstream.clone());
    let queue = queue::Queue::new(Arc::clone(&deps.identity.clock));
    front(queue, deps, layers, rules)
}

fn front<P: Protocol>(
    protocol: P,
    deps: Deps,
    layers: impl FnOnce(CallService) -> CallService,
    rules: Lookup,
) -> CallService {
    let Deps { upstream, identity, compresses } = deps;
    let clock: Arc<dyn Clock> = Arc::clone(&identity.clock);
    let inner = Dispatch::new(protocol.clone(), upstream, identity);
    let calls = layers(CallService::new(inner));
    let front = CallService::new(HttpEdge::new(protocol, calls, clock, rules));
    if compresses { gzip::compressing(front) } else { front }
}
