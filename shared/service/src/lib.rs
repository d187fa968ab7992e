//! What every service of Trestle is made of: names, limits, time, versions, failures, and the layers of a call.

pub mod access;
pub mod access_policy;
pub mod account;
pub mod caller;
pub mod clock;
pub mod cors;
pub mod edm;
pub mod etag;
pub mod exemplar;
pub mod facts;
pub mod fault;
mod forward;
pub mod layer;
pub mod limits;
pub mod name;
pub mod page;
pub mod peer;
pub mod propagation;
pub mod quota;
pub mod sas;
pub mod semconv;
pub mod service_properties;
pub mod shared_key;
mod storage;
pub mod traced;
pub mod upstream;
pub mod xml;
