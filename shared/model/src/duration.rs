//! Durations of requests, and as people write them.

use prost_types::Duration;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// A duration of 0 or more; none for a negative or malformed one. That of the library negates, which overflows for the
/// least one.
#[must_use]
pub fn not_negative(duration: Duration) -> Option<std::time::Duration> {
    let seconds = u64::try_from(duration.seconds).ok()?;
    let nanos = u32::try_from(duration.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(std::time::Duration::new(seconds, nanos))
}

/// Whether the nanoseconds have another sign than the seconds, or are a second or more.
fn is_malformed(Duration { seconds, nanos }: Duration) -> bool {
    let signs_differ = seconds.signum() * i64::from(nanos.signum()) < 0;
    signs_differ || i128::from(nanos).abs() >= NANOS_PER_SECOND
}

/// A duration with all of its digits, such as `15s` or `15.000000001s`, also one that is out of range. A malformed
/// one, whose nanoseconds have another sign than its seconds or are a second or more, is shown by its two fields.
#[must_use]
pub fn exact(duration: Duration) -> String {
    if is_malformed(duration) {
        return format!("seconds: {}, nanos: {}", duration.seconds, duration.nanos);
    }
    let nanos = i128::from(duration.seconds) * NANOS_PER_SECOND + i128::from(duration.nanos);
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let per_second = NANOS_PER_SECOND.unsigned_abs();
    let text = format!("{sign}{}.{:09}", nanos / per_second, nanos % per_second);
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_a_duration_with_all_of_its_digits() {
        let text = |seconds, nanos| exact(Duration { seconds, nanos });

        assert_eq!(text(30, 0), "30s");
        assert_eq!(text(0, 0), "0s");
        assert_eq!(text(1, 500_000_000), "1.5s");
        assert_eq!(text(-1, -1), "-1.000000001s");
        assert_eq!(text(i64::MAX, 999_999_999), "9223372036854775807.999999999s");
        assert_eq!(text(1, -5), "seconds: 1, nanos: -5");
        assert_eq!(text(-1, 5), "seconds: -1, nanos: 5");
        assert_eq!(text(1, 1_000_000_000), "seconds: 1, nanos: 1000000000");
    }

    #[test]
    fn a_negative_or_malformed_duration_is_none() {
        let parsed = |seconds, nanos| not_negative(Duration { seconds, nanos });

        assert_eq!(parsed(0, 0), Some(std::time::Duration::ZERO));
        assert_eq!(parsed(1, 999_999_999), Some(std::time::Duration::new(1, 999_999_999)));
        for (seconds, nanos) in
            [(-1, 0), (0, -1), (1, 1_000_000_000), (0, i32::MAX), (i64::MIN, i32::MIN), (1, -1)]
        {
            assert_eq!(parsed(seconds, nanos), None, "{seconds} {nanos}");
        }
    }
}
