//! The options of queries, and continuation tokens.

use trestle_model::fault::{Fault, Reason, quoted};

use super::json::Select;
use crate::params::Params;

/// Largest `$top`.
const TOP_MAX: i32 = 1000;
/// The prefix of every continuation token.
const TOKEN_VERSION: &str = "1!";
/// The supported options that begin with a dollar sign.
const SUPPORTED: [&str; 4] = ["$filter", "$select", "$top", "$format"];

/// The options of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Options {
    pub(crate) filter: String,
    pub(crate) select: Option<Select>,
    pub(crate) top: Option<i32>,
}

impl Options {
    /// Parses the options.
    ///
    /// # Errors
    /// A `$top` out of its range.
    pub(crate) fn read(params: &Params) -> Result<Self, Fault> {
        Ok(Self {
            filter: params.get("$filter").unwrap_or_default().to_owned(),
            select: params.get("$select").and_then(Select::parse),
            top: params.get("$top").map(top).transpose()?,
        })
    }
}

/// Rejects unsupported options, which are never ignored, in any operation.
///
/// # Errors
/// The first unsupported option.
pub(crate) fn check(params: &Params) -> Result<(), Fault> {
    let is_supported =
        |name: &str| SUPPORTED.iter().any(|option| option.eq_ignore_ascii_case(name));
    let mut names = params.iter().map(|(name, _)| name).filter(|name| name.starts_with('$'));
    match names.find(|name| !is_supported(name)) {
        None => Ok(()),
        Some(name) => {
            let rule = "the query option is not served";
            Err(Fault::violation(Reason::NotImplemented, quoted(name), rule))
        }
    }
}

fn top(text: &str) -> Result<i32, Fault> {
    let digits = text.trim();
    let top = digits.parse().ok().filter(|top| (0..=TOP_MAX).contains(top));
    top.filter(|_| !digits.starts_with('+')).ok_or_else(|| {
        let rule = format!("must be 0 to {TOP_MAX}: value=`{}`", quoted(text));
        Fault::violation(Reason::InvalidInput, "$top", rule)
    })
}

/// The continuation token for a page token, in the form that clients support: it is valid in a
/// header.
pub(crate) fn continuation_token(page_token: &str) -> String {
    format!("{TOKEN_VERSION}{}!{page_token}", page_token.len())
}

/// The page token in a continuation token; empty for none.
///
/// # Errors
/// An invalid continuation token.
pub(crate) fn page_token_of(params: &Params, name: &'static str) -> Result<String, Fault> {
    let Some(value) = params.get(name).filter(|value| !value.is_empty()) else {
        return Ok(String::new());
    };
    let parts = value.strip_prefix(TOKEN_VERSION).and_then(|rest| rest.split_once('!'));
    let token = parts.and_then(|(len, token)| (len == token.len().to_string()).then_some(token));
    token.map(str::to_owned).ok_or_else(|| {
        let rule = "must be what an answer carried in its header of this name";
        Fault::violation(Reason::InvalidQueryParameterValue, name, rule)
    })
}

#[cfg(test)]
mod tests;
