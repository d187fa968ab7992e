//! Points in time in the formats of the protocol: of HTTP, of access policies and errors, and the
//! day that is a protocol version.

use prost_types::Timestamp;
use time::{
    Date, OffsetDateTime, PrimitiveDateTime,
    format_description::{BorrowedFormatItem, well_known::Rfc3339},
    macros::format_description,
};
use trestle_identity::sas::Time;
use trestle_model::time::Ticks;

/// The last second of the year 9999: no expiry.
const LAST_SECOND: i64 = 253_402_300_799;
/// The format of HTTP, which has whole seconds.
const HTTP: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);
/// The format of the protocol, with seven fractional digits.
const PRECISE: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:7]Z");
/// The format of a day, and its bytes.
const DAY: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]");
const DAY_BYTES: usize = 10;

/// A time in seconds, such as `Fri, 21 Nov 2025 12:00:00 GMT`. Absent is no expiry, the end of the
/// year 9999, and a time before 1970 is the start of that year.
#[must_use]
pub fn http_date(moment: Option<&Timestamp>) -> String {
    let seconds = moment.map_or(LAST_SECOND, |moment| moment.seconds.clamp(0, LAST_SECOND));
    let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    at.format(HTTP).unwrap_or_default()
}

/// A time with seven fractional digits, such as `2026-01-31T08:00:00.0000000Z`; none outside of the
/// years 1 to 9999.
#[must_use]
pub fn precise_date(moment: &Timestamp) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp(moment.seconds).ok()?;
    let at = at.replace_nanosecond(u32::try_from(moment.nanos).ok()?).ok()?;
    // `time` also has years before 1.
    let at = (at.year() >= 1).then_some(at)?;
    at.format(PRECISE).ok()
}

/// Parses a time in the format of HTTP, such as `Fri, 21 Nov 2025 12:00:00 GMT`.
pub(crate) fn read_http_date(text: &str) -> Option<Timestamp> {
    let at = PrimitiveDateTime::parse(text, HTTP).ok()?.assume_utc();
    Some(Timestamp { seconds: at.unix_timestamp(), nanos: 0 })
}

/// Whether a text is a day of the calendar, such as `2026-01-31`.
pub(crate) fn is_day(text: &str) -> bool {
    text.len() == DAY_BYTES && Date::parse(text, DAY).is_ok()
}

/// The format of [`read_date`], for errors.
pub(crate) const DATE_RULE: &str =
    "must be a time such as 2026-01-31, 2026-01-31T08:00Z or 2026-01-31T08:00:00.1234567Z";

/// Parses a time to the day, the minute, the second, or a fraction of it, down to 100 ns.
pub(crate) fn read_date(text: &str) -> Option<Timestamp> {
    let ticks = match Time::parse("time", text.to_owned()) {
        Ok(time) => time.ticks(),
        Err(_) => {
            let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
            let nanos = i32::try_from(at.nanosecond() / 100 * 100).ok()?;
            Ticks::from_unix(at.unix_timestamp(), nanos)?
        }
    };
    Some(ticks.into())
}

#[cfg(test)]
mod tests;
