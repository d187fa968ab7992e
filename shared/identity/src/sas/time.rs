//! Times of tokens: to the day, the minute, the second or the tick, in UTC or with an offset; signed as they are
//! written.

use std::fmt;

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time as Clock, UtcOffset};

use super::Malformed;
use trestle_model::{fault::quoted, time::Ticks};

/// A time of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Time {
    text: String,
    ticks: Ticks,
}

impl Time {
    /// Reads `2026-01-31`, `2026-01-31T08:00Z`, `2026-01-31T08:00:00Z` or `2026-01-31T08:00:00.1234567Z`; an offset
    /// such as `+01:00` may replace `Z`.
    ///
    /// # Errors
    /// Any other text; `field` is the name of its field.
    pub fn parse(field: &'static str, text: String) -> Result<Self, Malformed> {
        match read(&text) {
            Some(ticks) => Ok(Self { text, ticks }),
            None => {
                let value = quoted(&text);
                let rule = "must be a time such as 2026-01-31, 2026-01-31T08:00Z, \
                            2026-01-31T08:00:00.5Z or 2026-01-31T08:00:00+01:00";
                Err(Malformed::new(field, format!("{rule}: value=`{value}`")))
            }
        }
    }

    /// A point in time, rounded down to a second; none after the year 9999.
    #[must_use]
    pub fn at(moment: Ticks) -> Option<Self> {
        let (seconds, _) = moment.to_unix();
        let at = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
        let (date, clock) = (at.date(), at.time());
        let text = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            date.year(),
            u8::from(date.month()),
            date.day(),
            clock.hour(),
            clock.minute(),
            clock.second()
        );
        Some(Self { text, ticks: Ticks::from_unix(seconds, 0)? })
    }

    /// The point in time.
    #[must_use]
    pub fn ticks(&self) -> Ticks {
        self.ticks
    }

    /// The text, as it is signed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn read(text: &str) -> Option<Ticks> {
    let (date, clock, offset) = match text.split_once('T') {
        None => (text, Clock::MIDNIGHT, UtcOffset::UTC),
        Some((date, rest)) => {
            let (clock, offset) = rest.split_at_checked(rest.find(['Z', '+', '-'])?)?;
            (date, self::clock(clock)?, self::offset(offset)?)
        }
    };
    let at = PrimitiveDateTime::new(self::date(date)?, clock).assume_offset(offset);
    Ticks::from_unix(at.unix_timestamp(), i32::try_from(at.nanosecond()).ok()?)
}

/// Reads `Z`, `+01:00` or `-01:00`.
fn offset(text: &str) -> Option<UtcOffset> {
    if text == "Z" {
        return Some(UtcOffset::UTC);
    }
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let hours = i8::try_from(digits(hours, 2)?).ok().filter(|hours| *hours <= 14)?;
    let minutes = i8::try_from(digits(minutes, 2)?).ok().filter(|minutes| *minutes < 60)?;
    let sign = if text.starts_with('-') { -1 } else { 1 };
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

/// Reads `2026-01-31`.
pub(super) fn date(text: &str) -> Option<Date> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let year = i32::from(digits(year, 4)?);
    let month = Month::try_from(u8::try_from(digits(month, 2)?).ok()?).ok()?;
    Date::from_calendar_date(year, month, u8::try_from(digits(day, 2)?).ok()?).ok()
}

/// Reads `08:00`, `08:00:00` or `08:00:00.1234567`: a fraction has up to seven digits, as a tick is 100 ns.
fn clock(text: &str) -> Option<Clock> {
    let (text, fraction) = match text.split_once('.') {
        None => (text, None),
        Some((text, fraction)) => (text, Some(fraction)),
    };
    let mut parts = text.split(':');
    let mut part = || parts.next().map(|part| u8::try_from(digits(part, 2)?).ok());
    let (hour, minute, second) = (part()??, part()??, part());
    let nanos = match (second, fraction) {
        (_, None) => 0,
        (Some(_), Some(fraction)) => nanos(fraction)?,
        (None, Some(_)) => return None,
    };
    let second = second.map_or(Some(0), |second| second)?;
    if parts.next().is_some() {
        return None;
    }
    Clock::from_hms_nano(hour, minute, second, nanos).ok()
}

/// The nanoseconds of the digits of a fraction.
fn nanos(fraction: &str) -> Option<u32> {
    let is_number = fraction.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=7).contains(&fraction.len()) && is_number;
    let unit =
        u32::try_from(9_usize.checked_sub(fraction.len())?).ok().map(|zeros| 10_u32.pow(zeros));
    if fits { fraction.parse::<u32>().ok()?.checked_mul(unit?) } else { None }
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<u16> {
    let fits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}
