//! The parameters of a query string, decoded.

use percent_encoding::percent_decode;
use trestle_model::fault::{Fault, Reason, quoted};

/// Most parameters of a request: more than any operation has, with a signature.
const PARAMS_MAX: usize = 64;

/// The parameters of a request, in their order. Names are case-insensitive, and the first of a name
/// applies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Parses a query string; `+` is a space.
    ///
    /// # Errors
    /// Too many parameters, or bytes that are not UTF-8.
    pub(crate) fn parse(query: &str) -> Result<Self, Fault> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        if pairs.clone().count() > PARAMS_MAX {
            let rule = format!("must have at most {PARAMS_MAX} parameters");
            return Err(Fault::violation(Reason::InvalidUri, "query", rule));
        }
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name).ok_or_else(|| unreadable("the name of a parameter"))?;
            // Without the value: it may be a part of a signature.
            let value = decode(value).ok_or_else(|| {
                unreadable(&format!("the value of parameter `{}`", quoted(&name)))
            })?;
            Ok((name, value))
        });
        decoded.collect::<Result<_, _>>().map(Self)
    }

    /// The value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The value of the field of a signature in a query string, which has it once, by its exact name.
    pub(crate) fn signed(query: &str, field: &str) -> Option<String> {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == field)?;
        decode(value)
    }

    /// Whether a parameter has this value, in any case.
    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.get(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }

    /// Every parameter.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn decode(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    String::from_utf8(percent_decode(spaced.as_bytes()).collect()).ok()
}

fn unreadable(what: &str) -> Fault {
    Fault::violation(Reason::InvalidUri, "query", format!("{what} must be percent-encoded UTF-8"))
}

#[cfg(test)]
mod tests;
