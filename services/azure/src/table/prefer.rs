//! `Prefer`: whether a created entity or table is returned.

use http::{HeaderMap, HeaderName};

/// The header of requests.
const PREFER: &str = "prefer";
/// The header of responses with the applied preference.
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The preference of a client for created content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Prefer {
    /// No preference: the content is returned.
    #[default]
    Unset,
    /// The content is returned.
    Content,
    /// The content is not returned.
    NoContent,
}

impl Prefer {
    /// Parses the header; other preferences are ignored.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
        let mut preferences = values.flat_map(|value| value.split([',', ';'])).map(str::trim);
        preferences.find_map(Self::parse).unwrap_or_default()
    }

    fn parse(preference: &str) -> Option<Self> {
        [Self::Content, Self::NoContent].into_iter().find(|prefer| {
            prefer.applied().is_some_and(|name| name.eq_ignore_ascii_case(preference))
        })
    }

    /// The applied preference of a response.
    pub(crate) fn applied(self) -> Option<&'static str> {
        match self {
            Self::Unset => None,
            Self::Content => Some("return-content"),
            Self::NoContent => Some("return-no-content"),
        }
    }
}

#[cfg(test)]
mod tests;
