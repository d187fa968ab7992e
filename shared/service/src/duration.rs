//! Durations as people write them.

use prost_types::Duration;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// A duration with all of its digits, such as `15s` or `15.000000001s`, also one that is out of range.
#[must_use]
pub fn exact(duration: Duration) -> String {
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
        assert_eq!(text(i64::MAX, i32::MAX), "9223372036854775809.147483647s");
    }
}
