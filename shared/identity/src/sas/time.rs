//! Times of tokens: in UTC, to the day, the minute or the second, and signed as they are written.

use std::fmt;

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time as Clock};

use super::Malformed;
use trestle_service::{clock::Ticks, fault::quoted};

/// A time of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Time {
    text: String,
    ticks: Ticks,
}

impl Time {
    /// Reads `2026-01-31`, `2026-01-31T08:00Z` or `2026-01-31T08:00:00Z`.
    ///
    /// # Errors
    /// Any other text; `field` is the name of its field.
    pub fn parse(field: &'static str, text: String) -> Result<Self, Malformed> {
        match read(&text) {
            Some(ticks) => Ok(Self { text, ticks }),
            None => {
                let value = quoted(&text);
                let rule = "must be a time in UTC such as 2026-01-31, 2026-01-31T08:00Z or \
                            2026-01-31T08:00:00Z";
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
    let (date, clock) = match text.split_once('T') {
        None => (text, Clock::MIDNIGHT),
        Some((date, clock)) => (date, self::clock(clock.strip_suffix('Z')?)?),
    };
    let seconds = PrimitiveDateTime::new(self::date(date)?, clock).assume_utc().unix_timestamp();
    Ticks::from_unix(seconds, 0)
}

/// Reads `2026-01-31`.
pub(super) fn date(text: &str) -> Option<Date> {
    let (year, rest) = text.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    let year = i32::from(digits(year, 4)?);
    let month = Month::try_from(u8::try_from(digits(month, 2)?).ok()?).ok()?;
    Date::from_calendar_date(year, month, u8::try_from(digits(day, 2)?).ok()?).ok()
}

/// Reads `08:00` or `08:00:00`.
fn clock(text: &str) -> Option<Clock> {
    let mut parts = text.split(':');
    let mut part = || parts.next().map(|part| u8::try_from(digits(part, 2)?).ok());
    let (hour, minute, second) = (part()??, part()??, part());
    let second = match second {
        None => 0,
        Some(second) => second?,
    };
    if parts.next().is_some() { None } else { Clock::from_hms(hour, minute, second).ok() }
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<u16> {
    let fits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if fits { text.parse().ok() } else { None }
}
