//! The names of streams: parsed once at the boundary, valid everywhere inside.

use std::fmt;

use trestle_model::fault::{Reason, Violations, quoted};

/// Most characters of the name of a stream. A limit of our own: it is a directory of the layout of segments.
pub(crate) const STREAM_NAME_CHARS_MAX: usize = 128;

/// The name of a stream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StreamName(String);

impl StreamName {
    /// Parses a name: 1 to 128 lower-case ASCII letters, digits, `.`, `_` and `-`, with a letter or digit first.
    /// Records every broken rule under `field`.
    pub(crate) fn parse(name: String, field: &str, violations: &mut Violations) -> Option<Self> {
        let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let is_legal = name.bytes().all(|b| is_plain(b) || matches!(b, b'.' | b'_' | b'-'))
            && name.bytes().next().is_some_and(is_plain);
        let (reason, rule) = if name.is_empty() {
            (Reason::PropertiesNeedValue, "required: the name of a stream")
        } else if name.len() > STREAM_NAME_CHARS_MAX {
            (Reason::OutOfRangeInput, "must have 1 to 128 characters")
        } else if !is_legal {
            let rule = "must be lower-case ASCII letters, digits, `.`, `_` and `-`, with a letter or digit first";
            (Reason::InvalidResourceName, rule)
        } else {
            return Some(Self(name));
        };
        violations.push(reason, field, format!("{rule}: value=`{}`", quoted(&name)));
        None
    }

    /// A name from a stored key, or one that was made by the rules.
    pub(crate) fn stored(name: String) -> Self {
        Self(name)
    }

    /// The name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Option<StreamName> {
        StreamName::parse(name.to_owned(), "stream", &mut Violations::default())
    }

    #[test]
    fn a_name_is_a_directory_of_plain_characters() {
        let longest = "a".repeat(STREAM_NAME_CHARS_MAX);
        for name in ["a", "0", "web", "my_service.api-2", longest.as_str()] {
            assert_eq!(parse(name).map(|it| it.to_string()).as_deref(), Some(name));
        }
        let too_long = "a".repeat(STREAM_NAME_CHARS_MAX + 1);
        for name in ["", ".", "..", "-a", "_a", "Web", "a/b", "a b", "ä", too_long.as_str()] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
