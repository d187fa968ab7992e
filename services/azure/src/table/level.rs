//! Metadata levels: how much an answer says about itself beside its data, and how a client asks.

use http::{HeaderMap, header};
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
    pub(crate) fn negotiate(format: Option<&str>, headers: &HeaderMap) -> Result<Self, Fault> {
        let asked = asked(format, headers);
        if asked.is_empty() {
            return Ok(Self::Minimal);
        }
        let mut ranges = asked.iter().flat_map(|asked| asked.split(',')).map(Range::parse);
        ranges.find_map(|range| range.level()).ok_or_else(|| {
            let asked = asked.join(", ");
            let rule = format!("only application/json is served: value=`{}`", quoted(&asked));
            Fault::violation(Reason::AtomFormatNotSupported, "Accept", rule)
        })
    }

    /// Whether a client names JSON itself among what it takes.
    pub(super) fn is_named(format: Option<&str>, headers: &HeaderMap) -> bool {
        asked(format, headers).iter().any(|asked| asked.contains("json"))
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

/// What `$format`, or else `Accept`, says, which may be there more than once.
fn asked<'a>(format: Option<&'a str>, headers: &'a HeaderMap) -> Vec<&'a str> {
    let is_said = |text: &&str| !text.trim().is_empty();
    match format.filter(is_said) {
        Some(format) => vec![format],
        None => {
            let accepted = headers.get_all(header::ACCEPT).iter();
            accepted.filter_map(|value| value.to_str().ok()).filter(is_said).collect()
        }
    }
}

/// One of the types that a client takes.
#[derive(Debug, Clone, Copy)]
struct Range<'a> {
    kind: &'a str,
    /// The parameter `odata`.
    odata: Option<&'a str>,
    /// Whether the client says that it does not take this one.
    is_refused: bool,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let parameter = |wanted: &str| {
            parts.clone().find_map(|part| {
                let (name, value) = part.split_once('=')?;
                name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"'))
            })
        };
        let weight = parameter("q").and_then(|weight| weight.parse::<f32>().ok());
        let is_refused = weight.is_some_and(|weight| weight <= 0.0);
        Self { kind, odata: parameter("odata"), is_refused }
    }

    /// The level, if the type is one that is served.
    fn level(&self) -> Option<Level> {
        // `$format` also takes the short name.
        let is_json = ["application/json", "json", "application/*", "*/*"];
        if self.is_refused || !is_json.iter().any(|kind| self.kind.eq_ignore_ascii_case(kind)) {
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

    fn negotiate(format: Option<&str>, accept: &[&str]) -> Result<Level, Reason> {
        let values = accept.iter().map(|value| value.parse().expect("a value"));
        let headers = values.map(|value| (header::ACCEPT, value)).collect();
        Level::negotiate(format, &headers).map_err(|fault| fault.reason)
    }

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
            assert_eq!(negotiate(None, &[accept]), Ok(level), "{accept}");
        }
        let both = negotiate(Some("application/json;odata=fullmetadata"), &["text/xml"]);
        assert_eq!(both, Ok(Level::Full));
        assert_eq!(negotiate(None, &[]), Ok(Level::Minimal));
        let lines = ["text/html", "application/json;odata=nometadata"];
        assert_eq!(negotiate(None, &lines), Ok(Level::None));
    }

    #[test]
    fn formats_that_ended_are_refused() {
        for accept in [
            "application/atom+xml",
            "text/html",
            "application/json;odata=verbose",
            "application/json;q=0, application/atom+xml",
            "*/*;q=0.0",
        ] {
            assert_eq!(negotiate(None, &[accept]), Err(Reason::AtomFormatNotSupported), "{accept}");
        }
    }
}
