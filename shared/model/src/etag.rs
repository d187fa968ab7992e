//! Versions of entities, and conditions on them.
//!
//! An etag is the time of the write in Azure's form, `W/"datetime'2020-07-24T14%3A34%3A28.5209593Z'"`. Clients must
//! treat it as opaque; some rebuild it from the timestamp, so the two always agree.

use percent_encoding::percent_decode_str;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::time::Ticks;

const PREFIX: &str = "W/\"datetime'";
const SUFFIX: &str = "'\"";

/// What a write requires of the stored entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It exists, in any version.
    Exists,
    /// It exists in the version written at this time.
    Match(Ticks),
    /// It exists in a version of another server, which never matches.
    Foreign,
}

impl Condition {
    /// Parses `if_match`: absent or `*` for any version, else an etag. Every weak etag is one, also where it is none
    /// of this server; none if it is malformed.
    #[must_use]
    pub fn parse(if_match: Option<&str>) -> Option<Self> {
        match if_match {
            None | Some("*") => Some(Self::Exists),
            Some(etag) => match parse_etag(etag) {
                Some(ticks) => Some(Self::Match(ticks)),
                None => is_weak(etag).then_some(Self::Foreign),
            },
        }
    }
}

/// The etag of an entity written at `ticks`.
#[must_use]
pub fn format_etag(ticks: Ticks) -> String {
    let mut etag = String::with_capacity(50);
    etag.push_str(PREFIX);
    push_time(&mut etag, ticks, "%3A");
    etag.push_str(SUFFIX);
    etag
}

/// The time in the form `2020-07-24T14:34:28.5209593Z`: up to seven fractional digits, trailing zeros trimmed.
#[must_use]
pub fn format_time(ticks: Ticks) -> String {
    let mut text = String::with_capacity(28);
    push_time(&mut text, ticks, ":");
    text
}

fn push_time(out: &mut String, ticks: Ticks, colon: &str) {
    let (seconds, nanos) = ticks.to_unix();
    // In range: ticks and the calendar of `time` both end with the year 9999.
    let when = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    push_digits(out, when.year().unsigned_abs(), 4);
    out.push('-');
    push_digits(out, u8::from(when.month()).into(), 2);
    out.push('-');
    push_digits(out, when.day().into(), 2);
    out.push('T');
    push_digits(out, when.hour().into(), 2);
    out.push_str(colon);
    push_digits(out, when.minute().into(), 2);
    out.push_str(colon);
    push_digits(out, when.second().into(), 2);
    let fraction = nanos.unsigned_abs() / 100;
    if fraction > 0 {
        out.push('.');
        push_digits(out, fraction, 7);
        let kept = out.trim_end_matches('0').len();
        out.truncate(kept);
    }
    out.push('Z');
}

fn push_digits(out: &mut String, value: u32, width: u32) {
    for exponent in (0..width).rev() {
        let digit = value / 10_u32.pow(exponent) % 10;
        out.push(char::from_digit(digit, 10).unwrap_or('0'));
    }
}

fn parse_etag(etag: &str) -> Option<Ticks> {
    // Some clients send all of it back decoded, and some with more escapes.
    let etag = percent_decode_str(etag).decode_utf8().ok()?;
    parse_time(etag.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?)
}

/// Whether a text has the form of a weak etag, `W/"…"`.
fn is_weak(text: &str) -> bool {
    let opaque = text.strip_prefix("W/\"").or_else(|| text.strip_prefix("w/\""));
    let opaque = opaque.and_then(|rest| rest.strip_suffix('"'));
    opaque.is_some_and(|opaque| !opaque.contains('"'))
}

/// Parses the form of [`format_time`]; none for anything else.
#[must_use]
pub fn parse_time(text: &str) -> Option<Ticks> {
    if !text.ends_with('Z') {
        return None;
    }
    let when = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Ticks::from_unix(when.unix_timestamp(), i32::try_from(when.nanosecond()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: i64 = 1_595_601_268;

    #[test]
    fn an_etag_is_the_percent_encoded_time_of_the_write() {
        let ticks = Ticks::from_unix(WRITTEN, 520_959_300).expect("in range");

        let etag = format_etag(ticks);

        assert_eq!(etag, "W/\"datetime'2020-07-24T14%3A34%3A28.5209593Z'\"");
        assert_eq!(Condition::parse(Some(&etag)), Some(Condition::Match(ticks)));
        let decoded = etag.replace("%3A", ":");
        assert_eq!(Condition::parse(Some(&decoded)), Some(Condition::Match(ticks)));
        let escaped = etag.replace('\'', "%27").replace('"', "%22").replace("%3A", "%3a");
        assert_eq!(Condition::parse(Some(&escaped)), Some(Condition::Match(ticks)));
    }

    #[test]
    fn trailing_zeros_of_the_fraction_are_trimmed() {
        let time = |nanos| format_time(Ticks::from_unix(WRITTEN, nanos).expect("in range"));

        assert_eq!(time(0), "2020-07-24T14:34:28Z");
        assert_eq!(time(200_000_000), "2020-07-24T14:34:28.2Z");
        assert_eq!(time(100), "2020-07-24T14:34:28.0000001Z");
    }

    #[test]
    fn the_edges_of_the_calendar_survive() {
        for (seconds, nanos) in [(-62_135_596_800, 0), (253_402_300_799, 999_999_900)] {
            let ticks = Ticks::from_unix(seconds, nanos).expect("in range");
            assert_eq!(parse_time(&format_time(ticks)), Some(ticks), "{}", format_time(ticks));
        }
    }

    #[test]
    fn rejects_malformed_etags_and_accepts_a_star_for_any_version() {
        assert_eq!(Condition::parse(None), Some(Condition::Exists));
        assert_eq!(Condition::parse(Some("*")), Some(Condition::Exists));
        for etag in ["", "x", "\"*\"", "\"0x8D\"", "W/", "W/\"", "W/x", "W/\"a\"b\"", "W/\"x"] {
            assert_eq!(Condition::parse(Some(etag)), None, "{etag}");
        }
    }

    #[test]
    fn a_weak_etag_of_another_server_is_a_version_that_does_not_match() {
        for etag in [
            "W/\"\"",
            "W/\"0x8D4BCC2E4835CD0\"",
            "w/\"datetime''\"",
            "W/\"datetime'2020-13-01T00%3A00%3A00Z'\"",
        ] {
            assert_eq!(Condition::parse(Some(etag)), Some(Condition::Foreign), "{etag}");
        }
    }
}
