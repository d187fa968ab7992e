//! Authentication and authorization: accounts and keys, signatures, credentials, and stored access
//! policies.
//!
//! A gateway authenticates the credentials of a call as a [`caller::Caller`]; the service that owns
//! the data authorizes that caller. What services differ in is data: a [`spec::ServiceSpec`]. Nothing
//! of this crate reads or writes data.

pub mod access_policy;
pub mod account;
pub mod authorize;
pub mod bearer;
pub mod caller;
pub mod credentials;
mod ending;
pub mod field_values;
pub mod gateway_secret;
pub mod peer_authentication;
pub mod public_key;
pub mod sas;
pub mod shared_key;
pub mod spec;
pub mod store_peers;
