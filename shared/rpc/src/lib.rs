//! The path of a call, the same for all services: middleware, upstreams, errors on the wire, quotas, telemetry.
//!
//! The values of a call are in `trestle-model`. Authentication and authorization are the subject of
//! `trestle-identity`, which depends on this crate.

pub mod access;
pub mod call_protocol;
pub mod call_statistics;
pub mod cors;
pub mod exemplar;
mod forward;
pub mod forwarded;
pub mod instance;
pub mod layer;
pub mod log_rate;
pub mod not_owner;
pub mod otlp_json;
pub mod peer;
pub mod propagation;
pub mod quota;
pub mod response_stream;
pub mod rpc_path;
pub mod semconv;
pub mod served_store;
pub mod service_properties;
pub mod small_file;
pub mod status;
pub mod traced;
pub mod unserved;
pub mod upstream;
