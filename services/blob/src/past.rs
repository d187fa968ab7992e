//! Names of past states: times with seven fractional digits, `2019-08-28T17:07:35.2821851Z`.

#[cfg(test)]
mod round_trip_tests;

use trestle_model::etag;
use trestle_model::time::Ticks;

/// Length of the seconds in a name, with the date, in bytes.
const SECONDS_BYTES: usize = 19;

/// The name of a state.
pub(crate) fn name(at: Ticks) -> String {
    let (seconds, nanos) = at.to_unix();
    let whole = Ticks::from_unix(seconds, 0).unwrap_or(at);
    let mut name = etag::format_time(whole);
    name.truncate(SECONDS_BYTES);
    name.push_str(&format!(".{:07}Z", nanos / 100));
    name
}

/// The time in a name; none for any other text.
pub(crate) fn parse(text: &str) -> Option<Ticks> {
    etag::parse_time(text).filter(|at| name(*at) == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_seven_digits_and_comes_back() {
        for (nanos, text) in [
            (282_185_100, "2020-07-24T14:34:28.2821851Z"),
            (0, "2020-07-24T14:34:28.0000000Z"),
            (100, "2020-07-24T14:34:28.0000001Z"),
            (520_000_000, "2020-07-24T14:34:28.5200000Z"),
        ] {
            let at = Ticks::from_unix(1_595_601_268, nanos).expect("in range");
            assert_eq!(name(at), text);
            assert_eq!(parse(text), Some(at));
        }
        assert_eq!(name(Ticks::MIN), "0001-01-01T00:00:00.0000000Z");
    }

    #[test]
    fn any_other_text_is_no_name() {
        for text in [
            "",
            "now",
            "2020-07-24T14:34:28Z",
            "2020-07-24T14:34:28.282185Z",
            "2020-07-24T14:34:28.28218511Z",
            "2020-07-24T14:34:28.2821851+",
            "2020-07-24 14:34:28.2821851Z",
            "2020-13-24T14:34:28.2821851Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
