//! Shared access signatures: tokens that grant a part of an account for a time, signed with one of
//! its keys.
//!
//! A token is a query string. `fields` parses it, `token` interprets its fields, `sign` writes the
//! text that is signed, `check` evaluates its grant now, `explain` describes it for people, `mint`
//! creates tokens. All of it is pure.

mod address;
mod check;
mod explain;
mod fields;
mod mint;
mod sign;
mod time;
mod token;
mod version;

#[cfg(test)]
mod tests;

pub use self::{
    address::AddressRange,
    check::{Check, Denial, Named, START_SKEW, expiry_of, verify},
    explain::{Explanation, Finding, Outcome, explain},
    fields::{Malformed, TOKEN_BYTES_MAX, is_field},
    mint::{MintError, mint},
    sign::string_to_sign,
    time::Time,
    token::{BlobScope, Protocol, Resource, Scope, Terms, Token},
    version::Version,
};
