//! Times of records, in nanoseconds since 1970.

use chrono::{
    DateTime, Datelike as _, FixedOffset, Months, NaiveDateTime, Utc,
    format::{Item, Numeric, Parsed, parse_and_remainder},
};
use serde_json::Value;

const RULE: &str =
    "must be RFC 3339, or seconds, milliseconds, microseconds or nanoseconds since 1970";

/// From here on a number is in the next smaller unit: as seconds these are years after 5000.
const MILLISECONDS_FROM: u64 = 100_000_000_000;
const MICROSECONDS_FROM: u64 = 1000 * MILLISECONDS_FROM;
const NANOSECONDS_FROM: u64 = 1000 * MICROSECONDS_FROM;

/// Dates with times in ISO 8601, extended and basic. An offset may follow, as hours, or with minutes, with or without a
/// colon.
const ISO_8601: [&str; 2] = ["%Y-%m-%dT%H:%M:%S%.f", "%Y%m%dT%H%M%S%.f"];
/// Digits of a fraction of a second that have a meaning.
const FRACTION_DIGITS: usize = 9;

/// What times lack that are not complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeRules {
    /// The zone of times without one.
    pub(crate) offset: FixedOffset,
    /// When the command began: a time without a year is in the twelve months before, or on the next day.
    pub(crate) now: DateTime<Utc>,
}

impl TimeRules {
    /// The year of a time without one, for the number of its month and day.
    pub(super) fn year(self, month: u32, day: u32) -> i32 {
        let last = self.now.with_timezone(&self.offset) + chrono::Duration::days(1);
        let is_past = (month, day) <= (last.month(), last.day());
        if is_past {
            last.year()
        } else {
            last.checked_sub_months(Months::new(12)).map_or(last.year(), |before| before.year())
        }
    }

    /// The time at the beginning of a text, by the items of a pattern, and what follows it.
    pub(super) fn take<'a>(
        self,
        text: &'a str,
        items: &[Item<'_>],
    ) -> Result<(u64, &'a str), String> {
        let invalid = || "must begin with a time of the pattern".to_owned();
        let (mut parsed, mut rest) = (Parsed::new(), text);
        for part in items.split_inclusive(is_fraction) {
            let (last, before) = part.split_last().ok_or_else(invalid)?;
            let before = if is_fraction(last) { before } else { part };
            rest = parse_and_remainder(&mut parsed, rest, before.iter()).map_err(|_| invalid())?;
            if is_fraction(last) {
                rest = take_fraction(&mut parsed, rest).ok_or_else(invalid)?;
            }
        }
        Ok((self.resolve(&mut parsed)?, rest))
    }

    fn resolve(self, parsed: &mut Parsed) -> Result<u64, String> {
        let has_year = parsed.year().is_some() || parsed.year_mod_100().is_some();
        if !has_year
            && parsed.timestamp().is_none()
            && let (Some(month), Some(day)) = (parsed.month(), parsed.day())
        {
            let _ = parsed.set_year(self.year(month, day).into());
        }
        let invalid = |_| "the time is incomplete or does not exist".to_owned();
        if parsed.offset().is_some() {
            return nanos(parsed.to_datetime().map_err(invalid)?.to_utc());
        }
        if parsed.timestamp().is_some() {
            return nanos(parsed.to_naive_datetime_with_offset(0).map_err(invalid)?.and_utc());
        }
        self.local(parsed.to_naive_datetime_with_offset(0).map_err(invalid)?)
    }

    fn local(self, time: NaiveDateTime) -> Result<u64, String> {
        let local = time.and_local_timezone(self.offset).single();
        nanos(local.ok_or("the time does not exist")?.to_utc())
    }

    /// The time in a value.
    pub(super) fn of_json(self, value: &Value) -> Result<u64, String> {
        let rule = || format!("{RULE}: time=`{value}`");
        match value {
            Value::Number(number) => match number.as_u64() {
                Some(number) => of_number(number).ok_or_else(rule),
                None => of_double(number.as_f64().unwrap_or(-1.0)).ok_or_else(rule),
            },
            Value::String(text) => self.of_text(text).ok_or_else(rule)?,
            _ => Err(rule()),
        }
    }

    fn of_text(self, text: &str) -> Option<Result<u64, String>> {
        if let Ok(number) = text.parse::<u64>() {
            return of_number(number).map(Ok);
        }
        if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            return Some(nanos(time.to_utc()));
        }
        let text = text.trim();
        let local = text.replacen(' ', "T", 1).replacen(',', ".", 1);
        for pattern in ISO_8601 {
            if let Ok(time) = NaiveDateTime::parse_from_str(&local, pattern) {
                return Some(self.local(time));
            }
            if let Ok(time) = DateTime::parse_from_str(&local, &format!("{pattern} %#z")) {
                return Some(nanos(time.to_utc()));
            }
        }
        text.parse::<f64>().ok().and_then(of_double).map(Ok)
    }
}

/// Whether an item of a pattern is `%f`: in strptime the digits of a fraction, here by default a number of nanoseconds.
fn is_fraction(item: &Item<'_>) -> bool {
    matches!(item, Item::Numeric(Numeric::Nanosecond, _))
}

/// Takes the digits of a fraction of a second, of which the first is the tenth, and returns what follows them.
fn take_fraction<'a>(parsed: &mut Parsed, text: &'a str) -> Option<&'a str> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end).filter(|(digits, _)| !digits.is_empty())?;
    let digits = digits.get(..FRACTION_DIGITS).unwrap_or(digits);
    let nanos = format!("{digits:0<FRACTION_DIGITS$}").parse().ok()?;
    parsed.set_nanosecond(nanos).ok()?;
    Some(rest)
}

/// Whether a text is a time with an offset such as `+0100`.
pub(super) fn has_offset_without_colon(text: &str) -> bool {
    let time = text.split_once('T').map_or("", |(_, time)| time);
    let offset = time.rsplit_once(['+', '-']).map_or("", |(_, offset)| offset);
    offset.len() == 4 && offset.bytes().all(|byte| byte.is_ascii_digit())
}

/// The nanoseconds of a time.
pub(super) fn nanos(time: DateTime<Utc>) -> Result<u64, String> {
    let seconds = u64::try_from(time.timestamp()).ok();
    let nanos = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
    let nanos = nanos.and_then(|nanos| nanos.checked_add(time.timestamp_subsec_nanos().into()));
    nanos.ok_or_else(|| format!("must be in the years 1970 to 2554: time=`{}`", time.to_rfc3339()))
}

fn of_number(number: u64) -> Option<u64> {
    let factor = match number {
        0..MILLISECONDS_FROM => 1_000_000_000,
        MILLISECONDS_FROM..MICROSECONDS_FROM => 1_000_000,
        MICROSECONDS_FROM..NANOSECONDS_FROM => 1000,
        NANOSECONDS_FROM.. => 1,
    };
    number.checked_mul(factor)
}

/// Seconds, or milliseconds, with a fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn of_double(number: f64) -> Option<u64> {
    const SECONDS_MAX: f64 = 1e11;
    let seconds = if number < SECONDS_MAX { number } else { number / 1000.0 };
    if !(0.0..SECONDS_MAX).contains(&seconds) {
        return None;
    }
    // To the microsecond: a double of today's seconds has no more digits.
    let micros = (seconds * 1e6).round() as u64;
    micros.checked_mul(1000)
}

#[cfg(test)]
mod tests;
