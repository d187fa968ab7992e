//! The shared parts of all services: the values of their contract (names, limits, time, versions,
//! errors), and the path of a call (middleware, upstreams, telemetry).
//!
//! Authentication and authorization are the subject of `trestle-identity`, which depends on this
//! crate.

pub mod access;
pub mod blob_name;
pub mod call_protocol;
pub mod call_statistics;
pub mod clock;
pub mod cors;
pub mod duration;
pub mod edm;
pub mod etag;
pub mod exemplar;
pub mod fault;
mod forward;
pub mod forwarded;
pub mod instance;
pub mod json_error;
pub mod layer;
pub mod limits;
pub mod log_rate;
pub mod metadata;
pub mod name;
pub mod otlp_json;
pub mod page;
pub mod peer;
pub mod propagation;
pub mod quota;
pub mod read_grace;
pub mod response_stream;
pub mod rpc_path;
pub mod semconv;
pub mod service_properties;
pub mod small_file;
mod storage;
pub mod traced;
pub mod unserved;
pub mod upstream;
pub mod xml;
