//! Edm.DateTime as text, the one grammar of requests, filters, files and commands. Written in UTC, in steps of 100 ns,
//! without trailing zeros.

use prost_types::Timestamp;
use time::{Date, Duration, Month, OffsetDateTime, PrimitiveDateTime, Time};

/// The expected format; part of error messages.
pub const RULE: &str =
    "must be a date and time such as 2026-01-31T08:00:00.1234567Z, years 1601 to 9999";

const TICK_NANOS: u32 = 100;
/// Digits of a fraction of a second in ticks.
const TICK_DIGITS: usize = 7;
/// Bytes of `YYYY-MM-DD`.
const DATE_BYTES: usize = 10;

/// Parses a date and time: `YYYY-MM-DDThh:mm[:ss[.f…]]`, then `Z`, an offset such as `+01:00` or `+0100`, or nothing,
/// which is UTC.
///
/// Digits below 100 ns are cut off, as a client does that has no type for them: clients write nanoseconds. Whether a
/// year can be stored is not checked.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    let (date, clock) = text.split_at_checked(DATE_BYTES)?;
    let clock = clock.strip_prefix(['T', 't', ' '])?;
    let zone = clock.find(['Z', 'z', '+', '-']).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at_checked(zone)?;
    let local = PrimitiveDateTime::new(parse_date(date)?, parse_clock(clock)?).assume_utc();
    let utc = local.checked_sub(parse_offset(zone)?)?;
    let nanos = i32::try_from(utc.nanosecond()).ok()?;
    Some(Timestamp { seconds: utc.unix_timestamp(), nanos })
}

/// The same without a loss: none where digits below 100 ns would be cut off.
#[must_use]
pub fn parse_exact(text: &str) -> Option<Timestamp> {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    let cut = digits.get(TICK_DIGITS..).unwrap_or_default();
    parse(text).filter(|_| cut.bytes().all(|digit| digit == b'0'))
}

fn parse_date(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let year = i32::try_from(digits(parts.next()?, 4)?).ok()?;
    let month = Month::try_from(short(parts.next()?)?).ok()?;
    let date = Date::from_calendar_date(year, month, short(parts.next()?)?).ok()?;
    parts.next().is_none().then_some(date)
}

/// A leap second is rejected: no instant of Unix time is one.
fn parse_clock(text: &str) -> Option<Time> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let mut parts = whole.split(':');
    let (hour, minute) = (short(parts.next()?)?, short(parts.next()?)?);
    let second = parts.next();
    if parts.next().is_some() || (second.is_none() && fraction.is_some()) {
        return None;
    }
    let nanos = fraction.map_or(Some(0), parse_fraction)?;
    Time::from_hms_nano(hour, minute, second.map_or(Some(0), short)?, nanos).ok()
}

/// The nanoseconds of a fraction, in whole ticks.
fn parse_fraction(text: &str) -> Option<u32> {
    let kept = text.get(..TICK_DIGITS).unwrap_or(text);
    let scale = 10_u32.checked_pow(u32::try_from(TICK_DIGITS - kept.len()).ok()?)?;
    let is_legal = text.bytes().all(|byte| byte.is_ascii_digit());
    digits(kept, kept.len()).filter(|_| is_legal).map(|number| number * scale * TICK_NANOS)
}

fn parse_offset(text: &str) -> Option<Duration> {
    let (sign, rest) = match text.split_at_checked(1) {
        None => return Some(Duration::ZERO),
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        Some((_, rest)) => return rest.is_empty().then_some(Duration::ZERO),
    };
    let (hours, minutes) = rest.split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
    let (hours, minutes) = (i64::from(short(hours)?), i64::from(short(minutes)?));
    (hours < 24 && minutes < 60).then(|| Duration::minutes(sign * (60 * hours + minutes)))
}

/// A number of two digits.
fn short(text: &str) -> Option<u8> {
    digits(text, 2)?.try_into().ok()
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let is_legal = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_legal)
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
            ("2026-01-31T08:00:00+0200", "2026-01-31T06:00:00Z"),
            ("2026-01-31T22:30:00.5-01:30", "2026-02-01T00:00:00.5Z"),
            ("2026-01-31T08:00", "2026-01-31T08:00:00Z"),
            ("2026-01-31t08:00+00:00", "2026-01-31T08:00:00Z"),
            ("2026-01-31 08:00:00z", "2026-01-31T08:00:00Z"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ] {
            assert_eq!(format(&parse(given).unwrap()).unwrap(), expected, "given {given}");
        }
    }

    #[test]
    fn digits_below_a_tick_are_cut_off_and_never_rounded() {
        for (given, expected) in [
            ("2026-01-31T08:00:00.12345678Z", "2026-01-31T08:00:00.1234567Z"),
            ("2026-01-31T08:00:00.999999999+01:00", "2026-01-31T07:00:00.9999999Z"),
            ("1969-12-31T23:59:59.000000099", "1969-12-31T23:59:59Z"),
            ("2026-01-31T08:00:00.12345670001999Z", "2026-01-31T08:00:00.1234567Z"),
        ] {
            assert_eq!(format(&parse(given).unwrap()).unwrap(), expected, "given {given}");
            assert_eq!(parse_exact(given), None, "given {given}");
        }
        for exact in ["2026-01-31T08:00:00.123456700Z", "2026-01-31T08:00Z"] {
            assert_eq!(parse_exact(exact), parse(exact));
            assert!(parse(exact).is_some(), "{exact}");
        }
    }

    #[test]
    fn rejects_what_is_no_date_and_time() {
        for given in [
            "",
            "2026-01-31",
            "2026-01-31T",
            "2026-01-31T08",
            "2026-01-31T08:00.5",
            "2026-01-31T08:00:00.",
            "2026-01-31T08:00:00.Z",
            "2026-01-31T08:00:00.12345678x",
            "2026-01-31T08:00:00,5Z",
            "2026-01-31T8:00:00Z",
            "2026-01-31T08:00:00:00Z",
            "2026-01-31T24:00:00Z",
            "2026-01-31T08:00:00ZZ",
            "2026-01-31T08:00:00Z+01:00",
            "2026-01-31T08:00:00+1:00",
            "2026-01-31T08:00:00+01",
            "2026-01-31T08:00:00+24:00",
            "2026-01-31T08:00:00+01:60",
            "2026-01-31T08:00:00+01:00:00",
            "+026-01-31T08:00:00Z",
            "2026-1-310T08:00:00Z",
            "2026-02-30T00:00:00Z",
            "2016-12-31T23:59:60Z",
            "9999-12-31T23:59:59-01:00",
            "éééééééééé",
            "2026-01-31é08:00:00Z",
        ] {
            assert_eq!(parse(given), None, "given {given}");
        }
    }
}
