//! Etags: the version of a blob or a container as text, `"0x8DE2A1B2C3D4E5F"`. Last-Modified is the same version in
//! seconds, so an etag is the only exact condition.

use trestle_service::clock::Ticks;

/// The version of a blob or a container: when it was last modified, in steps of 100 ns, unique in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ETag(pub(crate) Ticks);

/// A text of a client that etags are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ETagPattern {
    /// `*`: every etag.
    Any,
    /// One etag, without quotes.
    One(String),
}

impl ETag {
    /// The etag in quotes, as HTTP has it.
    pub(crate) fn quoted(self) -> String {
        format!("\"{}\"", self.bare())
    }

    fn bare(self) -> String {
        format!("0x{:X}", self.0.get())
    }

    /// Whether a pattern matches.
    pub(crate) fn matches(self, pattern: &ETagPattern) -> bool {
        match pattern {
            ETagPattern::Any => true,
            ETagPattern::One(text) => *text == self.bare(),
        }
    }
}

impl ETagPattern {
    /// From the text of a client, quoted or not. A text that no etag has matches none.
    pub(crate) fn parse(text: &str) -> Self {
        if text == "*" {
            return Self::Any;
        }
        let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        Self::One(bare.unwrap_or(text).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_matches_itself_with_and_without_quotes_and_no_other() {
        let etag = ETag(Ticks::new(0x8DE_2A1B_2C3D_4E5F).expect("in range"));

        assert_eq!(etag.quoted(), "\"0x8DE2A1B2C3D4E5F\"");
        for text in ["*", "0x8DE2A1B2C3D4E5F", "\"0x8DE2A1B2C3D4E5F\""] {
            assert!(etag.matches(&ETagPattern::parse(text)), "{text}");
        }
        let quoted_lower = "\"0x8de2a1b2c3d4e5f\"";
        for text in ["", "\"*\"", "0x8DE2A1B2C3D4E5E", quoted_lower, "W/\"0x8DE2A1B2C3D4E5F\""] {
            assert!(!etag.matches(&ETagPattern::parse(text)), "{text}");
        }
    }
}
