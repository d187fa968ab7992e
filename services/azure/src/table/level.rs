//! Metadata levels: how much metadata a response has, and how a client selects it.

use http::{HeaderMap, header};
use trestle_model::fault::{Fault, Reason, quoted};

/// The metadata of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Level {
    /// Data alone.
    None,
    /// Etags, and the types that cannot be inferred from the values.
    #[default]
    Minimal,
    /// Also addresses.
    Full,
}

impl Level {
    /// The level of `$format`, or else `Accept`; minimal if neither sets it.
    ///
    /// # Errors
    /// If only other formats than JSON are acceptable.
    pub(crate) fn negotiate(format: Option<&str>, headers: &HeaderMap) -> Result<Self, Fault> {
        let (name, accepted_types) = accepted_types(format, headers);
        if accepted_types.is_empty() {
            return Ok(Self::Minimal);
        }
        let mut ranges = accepted_types
            .iter()
            .flat_map(|accepted_types| accepted_types.split(','))
            .map(Range::parse);
        ranges.find_map(|range| range.level()).ok_or_else(|| {
            let accepted_types = accepted_types.join(", ");
            let rule =
                format!("only application/json is served: value=`{}`", quoted(&accepted_types));
            Fault::violation(Reason::AtomFormatNotSupported, name, rule)
        })
    }

    /// Whether a client explicitly accepts JSON.
    pub(super) fn is_named(format: Option<&str>, headers: &HeaderMap) -> bool {
        let (_, accepted_types) = accepted_types(format, headers);
        accepted_types.iter().any(|accepted_types| accepted_types.contains("json"))
    }

    /// The media type of a response at the level.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::None => "application/json;odata=nometadata;streaming=true;charset=utf-8",
            Self::Minimal => "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
            Self::Full => "application/json;odata=fullmetadata;streaming=true;charset=utf-8",
        }
    }
}

/// The value of `$format`, or else `Accept`, which may be repeated, after the name of that part.
fn accepted_types<'a>(
    format: Option<&'a str>,
    headers: &'a HeaderMap,
) -> (&'static str, Vec<&'a str>) {
    let is_set = |text: &&str| !text.trim().is_empty();
    match format.filter(is_set) {
        Some(format) => ("$format", vec![format]),
        None => {
            let accepted = headers.get_all(header::ACCEPT).iter();
            let values = accepted.filter_map(|value| value.to_str().ok()).filter(is_set);
            ("Accept", values.collect())
        }
    }
}

/// One accepted media type.
#[derive(Debug, Clone, Copy)]
struct Range<'a> {
    kind: &'a str,
    /// The parameter `odata`.
    odata: Option<&'a str>,
    /// Whether the client excludes this one (`q=0`).
    is_rejected: bool,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let parameter = |parameter_name: &str| {
            parts.clone().find_map(|part| {
                let (name, value) = part.split_once('=')?;
                name.trim()
                    .eq_ignore_ascii_case(parameter_name)
                    .then(|| value.trim().trim_matches('"'))
            })
        };
        let weight = parameter("q").and_then(|weight| weight.parse::<f32>().ok());
        let is_rejected = weight.is_some_and(|weight| weight <= 0.0);
        Self { kind, odata: parameter("odata"), is_rejected }
    }

    /// The level, if the media type is supported.
    fn level(&self) -> Option<Level> {
        // `$format` also accepts the short name.
        let is_json = ["application/json", "json", "application/*", "*/*"];
        if self.is_rejected || !is_json.iter().any(|kind| self.kind.eq_ignore_ascii_case(kind)) {
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
mod tests;
