//! Shared access signatures: tokens that grant a part of an account for a time, signed with one of
//! its keys.
//!
//! A token is a query string. `fields` parses it, `token` and `scope` interpret its fields with the declarations of its
//! service, `sign` writes the text that is signed, `check` evaluates its grant now, `explain` describes it for people,
//! `mint` creates tokens: all of it pure. `verified` caches what `check` accepted.

mod address;
mod check;
mod delegation;
mod denied;
mod explain;
mod fields;
mod malformed;
mod mint;
mod protocol;
mod query;
mod rules;
mod scope;
mod sign;
mod terms;
mod time;
mod token;
mod verified;
mod version;

#[cfg(test)]
mod tests;

use self::token::letters;
pub(crate) use self::version::OLDEST_VERSION;
pub use self::{
    address::AddressRange,
    check::{Named, expiry_of, verify},
    delegation::{Delegation, DelegationTerms, DelegationValue},
    denied::{Check, Denied},
    explain::{Explanation, Finding, Outcome, explain},
    fields::{TOKEN_BYTES_MAX, is_field},
    malformed::Malformed,
    mint::{MintError, mint},
    protocol::Protocol,
    rules::{START_SKEW, Use},
    scope::{NamedResource, ResourceScope, Scope},
    sign::string_to_sign,
    terms::Terms,
    time::Time,
    token::Token,
    verified::VerifiedTokens,
    version::Version,
};
