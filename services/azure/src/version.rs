//! The version of the protocol that a request speaks: a date.
//!
//! Clients name new versions with every release, so every date is served as the newest version
//! that this front knows, and echoed. Only a text that is no date is refused.

use time::{Date, format_description::BorrowedFormatItem, macros::format_description};

/// The newest version that was looked at; also what answers name where a request names none.
pub(crate) const NEWEST: &str = "2026-10-06";
/// Bytes of a version.
const LENGTH: usize = 10;

const FORM: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");

/// Whether a text is a version: a day of the calendar.
pub(crate) fn is_version(text: &str) -> bool {
    text.len() == LENGTH && Date::parse(text, FORM).is_ok()
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
}
