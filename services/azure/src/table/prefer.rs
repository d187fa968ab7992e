//! `Prefer`: whether what was created is returned.

use http::{HeaderMap, HeaderName};

/// The header of requests.
const PREFER: &str = "prefer";
/// The header of answers, which says what was done.
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Whether a client wants to see what it created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Prefer {
    /// It does not say, so it sees it.
    #[default]
    Unsaid,
    /// It does.
    Content,
    /// It does not.
    NoContent,
}

impl Prefer {
    /// Reads the header; other preferences are for others.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
        let mut wishes = values.flat_map(|value| value.split([',', ';'])).map(str::trim);
        wishes.find_map(Self::parse).unwrap_or_default()
    }

    fn parse(wish: &str) -> Option<Self> {
        [Self::Content, Self::NoContent]
            .into_iter()
            .find(|prefer| prefer.applied().is_some_and(|name| name.eq_ignore_ascii_case(wish)))
    }

    /// What an answer says was applied.
    pub(crate) fn applied(self) -> Option<&'static str> {
        match self {
            Self::Unsaid => None,
            Self::Content => Some("return-content"),
            Self::NoContent => Some("return-no-content"),
        }
    }
}
