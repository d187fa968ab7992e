//! The version of a token, which determines the signed text and its layout.

use std::fmt;

use super::{Malformed, time::date};

/// The oldest supported version.
pub(crate) const OLDEST_VERSION: &str = "2012-02-12";

/// A version: a date of ten characters, so that the order of the texts is that of the versions.
/// Versions newer than this server are accepted with the newest supported layout: if their layouts
/// differ, their signatures do not match.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(String);

impl Version {
    /// The version that new tokens have.
    #[must_use]
    pub fn current() -> Self {
        Self("2021-12-02".to_owned())
    }

    /// Reads a version.
    ///
    /// # Errors
    /// An invalid date, or one before the first supported version.
    pub fn parse(text: String) -> Result<Self, Malformed> {
        let quoted = trestle_model::fault::quoted(&text);
        if date(&text).is_none() {
            let rule = format!("must be a version such as 2021-12-02: value=`{quoted}`");
            return Err(Malformed::new("sv", rule));
        }
        if text.as_str() < OLDEST_VERSION {
            let rule = format!("must be {OLDEST_VERSION} or newer: value=`{quoted}`");
            return Err(Malformed::new("sv", rule));
        }
        Ok(Self(text))
    }

    /// Whether a text has the form of a version, supported or not: a date.
    #[must_use]
    pub fn is_version(text: &str) -> bool {
        date(text).is_some()
    }

    /// Whether this version is `first` or newer.
    pub(super) fn since(&self, first: &str) -> bool {
        self.0.as_str() >= first
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
