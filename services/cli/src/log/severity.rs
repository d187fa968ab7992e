//! Names and numbers of severities.

/// Names of severities in logs, in lower case, with their numbers in OpenTelemetry.
const NAMES: &[(&str, i32)] = &[
    ("trace", 1),
    ("verbose", 1),
    ("debug", 5),
    ("info", 9),
    ("information", 9),
    ("informational", 9),
    ("notice", 10),
    ("warn", 13),
    ("warning", 13),
    ("error", 17),
    ("err", 17),
    ("critical", 18),
    ("crit", 18),
    ("alert", 19),
    ("fatal", 21),
    ("panic", 21),
    ("emerg", 21),
    ("emergency", 21),
];

/// What is shown for each four numbers.
const SHOWN: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/// The number of a name in any case; 0 if it is unknown.
pub(super) fn number_of(name: &str) -> i32 {
    let found = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
    found.map_or(0, |(_, number)| *number)
}

/// A number of OpenTelemetry; none if it is another one.
pub(super) fn checked(number: i64) -> Option<i32> {
    i32::try_from(number).ok().filter(|number| (1..=24).contains(number))
}

/// The number of a numeric level: that of OpenTelemetry, or 10 to 60 in tens, as bunyan and pino write; 0 for others.
pub(super) fn number_of_level(level: i64) -> i32 {
    match level {
        10 | 20 | 30 | 40 | 50 | 60 => i32::try_from(level / 10 * 4 - 3).unwrap_or_default(),
        other => checked(other).unwrap_or_default(),
    }
}

/// The name that is shown for a number; empty for 0 and unknown ones.
pub(super) fn name_of(number: i32) -> &'static str {
    let group = usize::try_from(number.saturating_sub(1)).map(|number| number / 4);
    group.ok().and_then(|group| SHOWN.get(group)).copied().unwrap_or_default()
}

/// The name that is shown for the first number that has it; none for the others.
pub(super) fn exact_name_of(number: i64) -> Option<&'static str> {
    checked(number).filter(|number| number % 4 == 1).map(name_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_levels_have_numbers_of_opentelemetry() {
        assert_eq!(["Warning", "INFO", "crit", "loud", ""].map(number_of), [13, 9, 18, 0, 0]);
        assert_eq!([10, 30, 60, 17, 0, 25, -1].map(number_of_level), [1, 9, 21, 17, 0, 0, 0]);
    }

    #[test]
    fn numbers_of_opentelemetry_are_no_levels_of_bunyan() {
        let numbers = [0, 1, 10, 20, 24, 25, 30, -1, i64::MAX].map(checked);
        assert_eq!(numbers, [None, Some(1), Some(10), Some(20), Some(24), None, None, None, None]);
    }

    #[test]
    fn numbers_have_names() {
        assert_eq!([1, 8, 9, 20, 24].map(name_of), ["TRACE", "DEBUG", "INFO", "ERROR", "FATAL"]);
        assert_eq!([0, 25, -3, i32::MIN].map(name_of), [""; 4]);
    }
}
