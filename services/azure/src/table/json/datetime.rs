//! Edm.DateTime in requests: RFC 3339 in steps of 100 ns, in UTC where no offset says otherwise.

use prost_types::Timestamp;
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};

/// What a text must look like; part of error messages.
pub(super) const RULE: &str =
    "must be a date and time such as 2026-01-31T08:00:00.1234567Z, years 1601 to 9999";

const TICK_NANOS: i32 = 100;
/// Digits of the fraction of a second that can be stored.
const FRACTION_DIGITS: usize = 7;

/// Reads a date and time. Digits that cannot be kept are refused rather than cut off; which years
/// there are, the service says.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let clock = text.get(10..)?;
    let parsed = if clock.contains(['Z', 'z', '+', '-']) {
        OffsetDateTime::parse(text, &Rfc3339)
    } else {
        OffsetDateTime::parse(&format!("{text}Z"), &Rfc3339)
    };
    let utc = parsed.ok()?.checked_to_offset(UtcOffset::UTC)?;
    let fraction = clock.split_once('.').map_or("", |(_, rest)| rest);
    let mut fine = fraction.bytes().take_while(u8::is_ascii_digit).skip(FRACTION_DIGITS);
    let nanos = i32::try_from(utc.nanosecond()).ok()?;
    // A leap second is read as the last nanosecond before it, which is no step of 100 ns.
    if fine.any(|digit| digit != b'0') || nanos % TICK_NANOS != 0 {
        return None;
    }
    Some(Timestamp { seconds: utc.unix_timestamp(), nanos })
}
