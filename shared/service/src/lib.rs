//! What all services share: the values of their contract (names, limits, time, versions, errors), and
//! the path of a call (middleware, upstreams, telemetry).
//!
//! Who calls and what they may do is the subject of `trestle-identity`, which is above this crate.

pub mod access;
pub mod clock;
pub mod cors;
pub mod edm;
pub mod etag;
pub mod exemplar;
pub mod facts;
pub mod fault;
mod forward;
pub mod forwarded;
pub mod layer;
pub mod limits;
pub mod name;
pub mod page;
pub mod peer;
pub mod propagation;
pub mod quota;
pub mod semconv;
pub mod service_properties;
mod storage;
pub mod traced;
pub mod upstream;
pub mod xml;
