//! The protocol version of a request: a date.
//!
//! Clients use new versions with every release, so every date is served as the newest supported
//! version, and echoed. Only a malformed date is rejected.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{date, params::Params};

/// The newest supported version; also that of responses to requests without one.
pub(crate) const NEWEST: &str = "2026-10-06";
/// The header with the version of the protocol, on requests and responses.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
/// The parameters with the version if no header has it, in their order: its own, and that of a
/// shared access signature.
const PARAMS: [&str; 2] = ["api-version", "sv"];

/// Whether a text is a version: a day of the calendar.
pub(crate) fn is_version(text: &str) -> bool {
    date::is_day(text)
}

/// The version of a request: that of its header, else of its parameter, else of the signature in
/// its address; by default the newest.
pub(crate) fn negotiated(headers: &HeaderMap, params: Option<&Params>) -> HeaderValue {
    let header = headers.get(VERSION).filter(|value| value.to_str().is_ok_and(is_version));
    if let Some(value) = header {
        return value.clone();
    }
    let mut named = PARAMS.into_iter().filter_map(|name| params?.get(name));
    let named = named.find(|text| is_version(text));
    let named = named.and_then(|text| HeaderValue::from_str(text).ok());
    named.unwrap_or(HeaderValue::from_static(NEWEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_every_calendar_date_as_a_version_and_nothing_else() {
        for version in [NEWEST, "2019-02-02", "2017-04-17", "2009-09-19", "2999-12-31"] {
            assert!(is_version(version), "{version}");
        }
        for text in
            ["", "latest", "2019-2-2", "2019-02-30", "2019-02-02 ", "+019-02-02", "2019/02/02"]
        {
            assert!(!is_version(text), "{text}");
        }
    }

    #[test]
    fn the_header_takes_precedence_over_parameters_and_malformed_versions_are_ignored() {
        let of = |header: &'static str, query: &str| {
            let mut headers = HeaderMap::new();
            if !header.is_empty() {
                headers.insert(VERSION, HeaderValue::from_static(header));
            }
            let params = Params::parse(query).expect("a query");
            negotiated(&headers, Some(&params)).to_str().expect("text").to_owned()
        };

        let both = "sv=2019-02-02&api-version=2020-04-08";
        assert_eq!(of("2021-12-02", both), "2021-12-02");
        assert_eq!(of("", both), "2020-04-08");
        assert_eq!(of("latest", "sv=2019-02-02&api-version=latest"), "2019-02-02");
        assert_eq!(of("", "sv=latest"), NEWEST);
        assert_eq!(negotiated(&HeaderMap::new(), None), NEWEST);
    }
}
