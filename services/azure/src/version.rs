//! The version of the protocol that a request speaks: a date.
//!
//! Clients name new versions with every release, so every date is served as the newest version
//! that this front knows, and echoed. Only a text that is no date is refused.

use http::{HeaderMap, HeaderName, HeaderValue};
use time::{Date, format_description::BorrowedFormatItem, macros::format_description};

use crate::params::Params;

/// The newest version that was looked at; also what answers name where a request names none.
pub(crate) const NEWEST: &str = "2026-10-06";
/// The header with the version of the protocol, on requests and answers.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("x-ms-version");
/// The parameters that name it where no header does, in their order: its own, and that of a shared
/// access signature.
const PARAMS: [&str; 2] = ["api-version", "sv"];
/// Bytes of a version.
const LENGTH: usize = 10;

const FORM: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

/// Whether a text is a version: a day of the calendar.
pub(crate) fn is_version(text: &str) -> bool {
    text.len() == LENGTH && Date::parse(text, FORM).is_ok()
}

/// The version that a request speaks: its header says so, else its parameter, else that of the
/// signature in its address; where none does, it is the newest.
pub(crate) fn spoken(headers: &HeaderMap, params: Option<&Params>) -> HeaderValue {
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
    fn every_day_of_the_calendar_is_a_version_and_nothing_else_is() {
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
    fn the_header_counts_before_the_parameters_and_what_is_no_version_counts_nowhere() {
        let of = |header: &'static str, query: &str| {
            let mut headers = HeaderMap::new();
            if !header.is_empty() {
                headers.insert(VERSION, HeaderValue::from_static(header));
            }
            let params = Params::parse(query).expect("a query");
            spoken(&headers, Some(&params)).to_str().expect("text").to_owned()
        };

        let both = "sv=2019-02-02&api-version=2020-04-08";
        assert_eq!(of("2021-12-02", both), "2021-12-02");
        assert_eq!(of("", both), "2020-04-08");
        assert_eq!(of("latest", "sv=2019-02-02&api-version=latest"), "2019-02-02");
        assert_eq!(of("", "sv=latest"), NEWEST);
        assert_eq!(spoken(&HeaderMap::new(), None), NEWEST);
    }
}
