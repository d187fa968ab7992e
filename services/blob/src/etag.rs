//! Etags: the version of a blob or a container as text, `"0x8DE2A1B2C3D4E5F"`. Last-Modified is the same version in
//! seconds, so an etag is the only exact condition.

#[cfg(test)]
mod round_trip_tests;

use std::fmt;

use trestle_model::time::Ticks;

/// The version of a blob or a container: when it was last modified, in steps of 100 ns, unique in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ETag(pub(crate) Ticks);

/// What a client compares an etag with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ETagPattern {
    /// `*`: every etag.
    Any,
    /// One etag.
    One(ETag),
    /// A text that no blob of this server has as its etag, such as one of another server.
    Foreign,
}

impl ETag {
    /// The etag in quotes, as HTTP has it.
    pub(crate) fn quoted(self) -> String {
        format!("\"{}\"", self.bare())
    }

    fn bare(self) -> String {
        format!("0x{:X}", self.0.get())
    }

    /// The etag in a text, quoted or not; none for a text that no response has.
    fn parse(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        let ticks = u64::from_str_radix(bare.strip_prefix("0x")?, 16).ok()?;
        Ticks::new(ticks).map(Self).filter(|etag| etag.bare() == bare)
    }

    /// Whether a pattern matches.
    pub(crate) fn matches(self, pattern: &ETagPattern) -> bool {
        match pattern {
            ETagPattern::Any => true,
            ETagPattern::One(etag) => *etag == self,
            ETagPattern::Foreign => false,
        }
    }
}

impl ETagPattern {
    /// From the text of a client: `*`, or an etag, quoted or not. Etags are opaque, so every other text is one, too,
    /// which no blob has. None for an empty text, and for one with a quote inside.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        if let Some(etag) = ETag::parse(text) {
            return Some(Self::One(etag));
        }
        let bare = text.strip_prefix("W/").unwrap_or(text);
        let inside = bare.strip_prefix('"').and_then(|bare| bare.strip_suffix('"'));
        let inside = inside.unwrap_or(bare);
        let is_etag = !inside.is_empty() && !inside.contains('"');
        is_etag.then_some(Self::Foreign)
    }
}

impl fmt::Display for ETagPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::One(etag) => f.write_str(&etag.quoted()),
            Self::Foreign => f.write_str("an etag of another server"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_etag_matches_itself_with_and_without_quotes_and_no_other() {
        let etag = ETag(Ticks::new(0x8DE_2A1B_2C3D_4E5F).expect("in range"));
        let matches = |text| ETagPattern::parse(text).map(|pattern| etag.matches(&pattern));

        assert_eq!(etag.quoted(), "\"0x8DE2A1B2C3D4E5F\"");
        for text in ["*", "0x8DE2A1B2C3D4E5F", "\"0x8DE2A1B2C3D4E5F\""] {
            assert_eq!(matches(text), Some(true), "{text}");
        }
        for text in ["0x8DE2A1B2C3D4E5E", "\"0x1\"", "0x0"] {
            assert_eq!(matches(text), Some(false), "{text}");
        }
    }

    #[test]
    fn a_text_that_no_response_has_matches_nothing() {
        let etag = ETag(Ticks::new(0x8DE_2A1B_2C3D_4E5F).expect("in range"));
        for text in ["", "\"\"", "\"", "a\"b", "\"0x8DE2A1B2C3D4E5F", "\"0x1\", \"0x2\""] {
            assert_eq!(ETagPattern::parse(text), None, "{text}");
        }
        for text in [
            "\"*\"",
            "other",
            "0x",
            "8DE2A1B2C3D4E5F",
            "\"0x8de2a1b2c3d4e5f\"",
            "\"0x08DE2A1B2C3D4E5F\"",
            "0x+1",
            "0xFFFFFFFFFFFFFFFF",
            "0x8DE2A1B2C3D4E5F0A",
            "W/\"0x8DE2A1B2C3D4E5F\"",
        ] {
            let pattern = ETagPattern::parse(text).expect(text);
            assert!(pattern == ETagPattern::Foreign && !etag.matches(&pattern), "{text}");
        }
    }
}
