//! Authentication and authorization: accounts and keys, signatures, credentials, and stored access
//! policies.
//!
//! A gateway authenticates the credentials of a call as a [`caller::Caller`]; the service that owns
//! the data authorizes that caller. Nothing here reads or writes data.

pub mod access_policy;
pub mod account;
pub mod caller;
pub mod credentials;
pub mod peer_authentication;
pub mod sas;
pub mod shared_key;
