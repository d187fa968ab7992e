//! Values of flags: times and whole numbers, each with its range in the error.

use std::{ops::RangeInclusive, time::Duration};

/// Shortest time where zero has no meaning.
const DURATION_MIN: &str = "1ms";
/// Longest time. Deadlines of calls have to fit 99,999,999 hours.
pub const DURATION_MAX: &str = "36500d";

/// Reads a time such as `500ms`, `10s`, `2m`, `1h`, `7d`, up to 36,500 days; a bare number is in seconds.
///
/// # Errors
/// The rule with the range.
pub fn duration(text: &str) -> Result<Duration, String> {
    time_between(DURATION_MIN, DURATION_MAX)(text)
}

/// Reads a time in a range, whose bounds are times as well; else the rule with the range.
pub fn time_between(
    min: &'static str,
    max: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let range = millis(min)..=millis(max);
        let found = millis(text).filter(|millis| range.contains(&Some(*millis)));
        found.map(Duration::from_millis).ok_or_else(|| {
            format!(
                "must be {min} to {max}: a whole number and ms, s, m, h or d; a number alone is in seconds"
            )
        })
    }
}

/// A time in milliseconds.
fn millis(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let millis: u64 = match unit {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(millis)
}

/// Reads a whole number in a range; else the rule with the range.
pub fn whole_number<N: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.and_then(|number| N::try_from(number).ok());
        number
            .ok_or_else(|| format!("must be a whole number, {} to {}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests;
