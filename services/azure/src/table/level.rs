//! Metadata levels: how much an answer says about itself beside its data, and how a client asks.

use trestle_service::fault::{Fault, Reason, quoted};

/// How much an answer says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Level {
    /// Data alone.
    None,
    /// Etags, and the types that cannot be told from the values.
    #[default]
    Minimal,
    /// Also addresses.
    Full,
}

impl Level {
    /// What `$format`, or else `Accept`, asks for; the minimal level where neither says.
    ///
    /// # Errors
    /// When only formats are acceptable that are not JSON.
    pub(crate) fn negotiate(format: Option<&str>, accept: Option<&str>) -> Result<Self, Fault> {
        let asked = format.filter(|format| !format.trim().is_empty()).or(accept);
        let Some(asked) = asked.filter(|asked| !asked.trim().is_empty()) else {
            return Ok(Self::Minimal);
        };
        asked.split(',').find_map(|range| Range::parse(range).level()).ok_or_else(|| {
            let rule = format!("only application/json is served: value=`{}`", quoted(asked));
            Fault::violation(Reason::AtomFormatNotSupported, "Accept", rule)
        })
    }

    /// The type of an answer at the level.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// One of the types that a client takes.
#[derive(Debug, Clone, Copy)]
struct Range<'a> {
    kind: &'a str,
    /// The parameter `odata`.
    odata: Option<&'a str>,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let odata = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("odata").then(|| value.trim().trim_matches('"'))
        });
        Self { kind, odata }
    }

    /// The level, if the type is one that is served.
    fn level(&self) -> Option<Level> {
        // `$format` also takes the short name.
        let is_json = ["application/json", "json", "application/*", "*/*"];
        if !is_json.iter().any(|kind| self.kind.eq_ignore_ascii_case(kind)) {
            return None;
        }
        match self.odata {
            None => Some(Level::Minimal),
            Some(odata) if odata.eq_ignore_ascii_case("nometadata") => Some(Level::None),
            Some(odata) if odata.eq_ignore_ascii_case("minimalmetadata") => Some(Level::Minimal),
            Some(odata) if odata.eq_ignore_ascii_case("fullmetadata") => Some(Level::Full),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_what_the_format_or_else_the_accepted_type_says() {
        for (accept, level) in [
            ("application/json", Level::Minimal),
            ("application/json;odata=nometadata", Level::None),
            ("application/json; odata = fullmetadata", Level::Full),
            ("APPLICATION/JSON;charset=utf-8;ODATA=MinimalMetadata", Level::Minimal),
            ("application/atom+xml,application/json;odata=nometadata", Level::None),
            ("text/html, */*;q=0.8", Level::Minimal),
            ("", Level::Minimal),
        ] {
            assert_eq!(Level::negotiate(None, Some(accept)), Ok(level), "{accept}");
        }
        let both = Level::negotiate(Some("application/json;odata=fullmetadata"), Some("text/xml"));
        assert_eq!(both, Ok(Level::Full));
        assert_eq!(Level::negotiate(None, None), Ok(Level::Minimal));
    }

    #[test]
    fn formats_that_ended_are_refused() {
        for accept in ["application/atom+xml", "text/html", "application/json;odata=verbose"] {
            let fault = Level::negotiate(None, Some(accept)).expect_err(accept);
            assert_eq!(fault.reason, Reason::AtomFormatNotSupported);
        }
    }
}
