//! Edm.DateTime as text: RFC 3339 in UTC, in steps of 100 ns, without trailing zeros.

use prost_types::Timestamp;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// The expected format; part of error messages.
pub const RULE: &str =
    "must be a date and time such as 2026-01-31T08:00:00.1234567Z, years 1601 to 9999";

const TICK_NANOS: i32 = 100;

/// Parses a date and time; without an offset it is UTC.
///
/// Digits below 100 ns are rejected rather than cut off. Whether a year can be stored is not checked.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    let clock = text.get(10..)?;
    let zoned = clock.contains(['Z', 'z', '+', '-']);
    let parsed = if zoned {
        OffsetDateTime::parse(text, &Rfc3339).ok()?
    } else {
        OffsetDateTime::parse(&format!("{text}Z"), &Rfc3339).ok()?
    };
    let digits = clock.split_once('.').map_or("", |(_, rest)| rest);
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let finest = digits.get(7..).unwrap_or_default();
    let utc = parsed.checked_to_offset(time::UtcOffset::UTC)?;
    // Ten digits and more are cut by the parser, so the text itself is checked.
    let exact = finest.bytes().all(|digit| digit == b'0');
    // A leap second is parsed as the last nanosecond before it, which differs from the input.
    let ticks = i32::try_from(utc.nanosecond()).ok()?;
    if !exact || ticks % TICK_NANOS != 0 {
        return None;
    }
    Some(Timestamp { seconds: utc.unix_timestamp(), nanos: ticks })
}

/// Writes a date and time; `None` when it is outside of the years 0 to 9999.
#[must_use]
pub fn format(timestamp: &Timestamp) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp(timestamp.seconds).ok()?;
    if !(0..=9999).contains(&at.year()) || !(0..1_000_000_000).contains(&timestamp.nanos) {
        return None;
    }
    let mut text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    if timestamp.nanos != 0 {
        let fraction = format!(".{:09}", timestamp.nanos);
        text.push_str(fraction.trim_end_matches('0'));
    }
    text.push('Z');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_preserve_every_tick_and_omit_trailing_zeros() {
        for (given, expected) in [
            ("1601-01-01T00:00:00Z", "1601-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
            ("2026-01-31T08:00:00.2000000Z", "2026-01-31T08:00:00.2Z"),
            ("2026-01-31T08:00:00.000Z", "2026-01-31T08:00:00Z"),
            ("1969-12-31T23:59:59.0000001", "1969-12-31T23:59:59.0000001Z"),
            ("2026-01-31T08:00:00+02:00", "2026-01-31T06:00:00Z"),
            ("2026-01-31T08:00:00.123456700Z", "2026-01-31T08:00:00.1234567Z"),
        ] {
            assert_eq!(format(&parse(given).unwrap()).unwrap(), expected, "given {given}");
        }
    }

    #[test]
    fn rejects_dates_that_cannot_be_stored_exactly() {
        for given in [
            "",
            "2026-01-31",
            "2026-02-30T00:00:00Z",
            "2026-01-31T08:00:00.12345678Z",
            "2026-01-31T08:00:00.12345670001Z",
            "2016-12-31T23:59:60Z",
            "éééééééééé",
        ] {
            assert_eq!(parse(given), None, "given {given}");
        }
    }
}
