//! Who calls and what they may do: accounts and keys, signatures, credentials, and stored access policies.
//!
//! A gateway turns the credentials of a call into a [`caller::Caller`]; the service that owns the
//! data decides what that caller may do. Nothing here reads or writes data.

pub mod access_policy;
pub mod account;
pub mod caller;
pub mod credentials;
pub mod peer_authentication;
pub mod sas;
pub mod shared_key;
