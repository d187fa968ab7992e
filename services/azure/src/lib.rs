//! The Azure Storage protocol: REST in front of the same services that gRPC calls.
//!
//! Each Azure service has an HTTP edge of its own, behind a listener of its own. It only
//! translates: one HTTP request becomes one gRPC call, and its response the response of Azure. It
//! contains no rule of the data; those are the services'.
//!
//! A request, in the order of the files:
//! - `http_edge`, outermost: reads `address`, version and parameters into a `head`, lets the
//!   protocol determine the operation, and forwards the request under its gRPC method.
//! - the layers of the gateway see that method: trace, limits, load shedding, metrics, access log.
//! - `dispatch`, behind them: `auth` authenticates the caller, the body is read, the protocol
//!   translates it and makes the call through `grpc_call`.
//! - `error`, outermost again: the error of a request is written once, in the form of the service,
//!   for every origin of the error.

mod address;
mod auth;
mod blob;
#[cfg(test)]
mod bulk_tests;
mod collected;
pub mod date;
mod delegation;
mod dispatch;
mod drain;
mod error;
mod grpc_call;
mod gzip;
mod head;
mod header_case;
mod http_edge;
mod metadata;
mod number;
mod params;
mod protocol;
mod queue;
mod reply;
mod request_body;
mod streaming;
pub mod structured;
pub mod table;
mod unrouted;
mod version;
pub mod xml;

use std::sync::Arc;

use trestle_identity::credentials::Identity;
use trestle_model::time::Clock;
use trestle_rpc::{cors::Lookup, layer::CallService, upstream::Upstream};

pub use self::header_case::METADATA_HEADERS_MAX;
use self::{dispatch::Dispatch, http_edge::HttpEdge, protocol::RestProtocol};

/// The configuration of an HTTP edge.
#[derive(Clone)]
pub struct EdgeDeps {
    /// The service that is called.
    pub upstream: Upstream,
    /// The accounts and the clock for authentication.
    pub identity: Identity,
    /// Whether responses are compressed for clients that accept it. Bodies of requests may always
    /// be.
    pub compresses: bool,
}

/// The HTTP edge of tables: translates requests to calls. `layers` adds those of the gateway to the
/// service in its argument.
#[must_use]
pub fn tables(deps: EdgeDeps, layers: impl FnOnce(CallService) -> CallService) -> CallService {
    let rules = Lookup::new("trestle.table.v1.TableService", deps.upstream.clone());
    let table = table::TableProtocol::new(Arc::clone(&deps.identity.clock));
    edge(table, deps, layers, rules)
}

/// The HTTP edge of queues; see [`tables`].
#[must_use]
pub fn queues(deps: EdgeDeps, layers: impl FnOnce(CallService) -> CallService) -> CallService {
    let rules = Lookup::new("trestle.queue.v1.QueueService", deps.upstream.clone());
    let queue = queue::QueueProtocol::new(deps.identity.clone());
    edge(queue, deps, layers, rules)
}

/// The HTTP edge of blobs; see [`tables`]. Contents are never compressed: they are stored as their clients encoded
/// them.
#[must_use]
pub fn blobs(deps: EdgeDeps, layers: impl FnOnce(CallService) -> CallService) -> CallService {
    let rules = Lookup::new("trestle.blob.v1.BlobService", deps.upstream.clone());
    let blob = blob::BlobProtocol::new(deps.identity.clone());
    edge(blob, EdgeDeps { compresses: false, ..deps }, layers, rules)
}

fn edge<P: RestProtocol>(
    protocol: P,
    deps: EdgeDeps,
    layers: impl FnOnce(CallService) -> CallService,
    rules: Lookup,
) -> CallService {
    let EdgeDeps { upstream, identity, compresses, .. } = deps;
    let clock: Arc<dyn Clock> = Arc::clone(&identity.clock);
    let accounts = identity.accounts.clone();
    let inner = Dispatch::new(protocol.clone(), upstream, identity);
    let calls = layers(CallService::new(inner));
    let edge = CallService::new(HttpEdge::new(protocol, calls, clock, rules, accounts));
    if compresses { gzip::compressing(edge) } else { edge }
}
