//! Integer settings whose values are not integers.

use std::ops::RangeInclusive;

use config::{Value, ValueKind};

use super::{
    RangeOf,
    check::joined,
    redacted::shown,
    sizes::{is_size, with_unit},
};

/// Collects values of integer settings that are not integers: the crate would round or truncate them. A setting is an
/// integer if it has a range, or a default that is one.
pub(super) struct WholeNumbers {
    range: Option<RangeOf>,
    /// Each with its key, its range and its value.
    pub(super) problems: Vec<String>,
}

impl WholeNumbers {
    pub(super) fn new(range: Option<RangeOf>) -> Self {
        Self { range, problems: Vec::new() }
    }

    /// Checks the value of a key and what it contains.
    pub(super) fn check(&mut self, key: &str, default: Option<&Value>, value: &Value) {
        use ValueKind as Kind;
        if let (Kind::Table(table), false) = (&value.kind, default.is_some_and(is_integer)) {
            for (name, value) in table {
                let default = default.and_then(|default| match &default.kind {
                    Kind::Table(table) => table.get(name),
                    _ => None,
                });
                self.check(&joined(key, name), default, value);
            }
            return;
        }
        let range = self.range.and_then(|range| range(key));
        let is_whole = range.is_some() || default.is_some_and(is_integer);
        let fits = match &value.kind {
            // A setting without a default is an integer too, since all others have one.
            Kind::Float(_) => !is_whole && default.is_some(),
            _ if !is_whole => true,
            Kind::I64(number) => *number >= 0,
            Kind::String(text) => text.trim().parse::<u64>().is_ok(),
            Kind::U64(_) => true,
            _ => false,
        };
        if !fits {
            let range = range.unwrap_or(0..=u64::MAX);
            self.problems.push(format!("{key}: {}", problem(key, &range, value)));
        }
    }
}

fn is_integer(value: &Value) -> bool {
    use ValueKind as Kind;
    matches!(value.kind, Kind::I64(_) | Kind::U64(_) | Kind::I128(_) | Kind::U128(_))
}

/// The rule that a value violates, and the value where it cannot be a secret.
fn problem(key: &str, range: &RangeInclusive<u64>, value: &Value) -> String {
    let text = match &value.kind {
        // With its point, without which it would look like an integer.
        ValueKind::Float(number) => format!("{number:?}"),
        ValueKind::Array(_) | ValueKind::Table(_) => String::new(),
        _ => value.to_string(),
    };
    let is_integral = text.parse::<f64>().is_ok_and(|number| number.fract() == 0.0);
    let is_in_digits = text.trim_start_matches(['-', '+']).bytes().all(|b| b.is_ascii_digit());
    let digits = if is_integral && !is_in_digits { " in digits" } else { "" };
    let bounds = bounds(key, range);
    let number = match is_size(key) {
        true => format!("a whole number of bytes{digits}, or a size such as 128MiB"),
        false => format!("a whole number{digits}"),
    };
    format!("must be {number}, {bounds}{}", shown(key, &text))
}

/// The range of the number with a key as a rule names it, such as `1 to 3600`, or `1MiB to 1GiB` for bytes.
#[must_use]
pub fn bounds(key: &str, range: &RangeInclusive<u64>) -> String {
    let shown = |number| if is_size(key) { with_unit(number) } else { number.to_string() };
    match (*range.start(), *range.end()) {
        (least @ 1.., u64::MAX) => format!("at least {}", shown(least)),
        (0, most @ u64::MAX) => format!("0 to {most}"),
        (least, most) => format!("{} to {}", shown(least), shown(most)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(key: &str, default: Option<i64>, kind: ValueKind) -> Vec<String> {
        let range = |key: &str| (key == "a.seconds").then_some(1..=3600);
        let mut numbers = WholeNumbers::new(Some(range));
        let default = default.map(Value::from);
        numbers.check(key, default.as_ref(), &Value::new(None, kind));
        numbers.problems
    }

    #[test]
    fn the_rule_is_the_range_of_the_key() {
        use ValueKind as Kind;
        let text = |text: &str| Kind::String(text.to_owned());
        for (kind, rule) in [
            (text("20s"), "must be a whole number, 1 to 3600: value=`20s`"),
            (Kind::I64(-1), "must be a whole number, 1 to 3600: value=`-1`"),
            (Kind::Float(1.5), "must be a whole number, 1 to 3600: value=`1.5`"),
            (Kind::Float(20.0), "must be a whole number in digits, 1 to 3600: value=`20.0`"),
            (text("2e1"), "must be a whole number in digits, 1 to 3600: value=`2e1`"),
            (Kind::Boolean(true), "must be a whole number, 1 to 3600: value=`true`"),
            (Kind::Array(Vec::new()), "must be a whole number, 1 to 3600"),
        ] {
            // With a default and without one.
            for default in [Some(5), None] {
                let found = problems("a.seconds", default, kind.clone());
                assert_eq!(found, [format!("a.seconds: {rule}")]);
            }
        }
        for kind in [text(" 20 "), Kind::I64(0), Kind::U64(u64::MAX)] {
            assert_eq!(problems("a.seconds", None, kind), Vec::<String>::new());
        }
    }

    #[test]
    fn a_size_is_bytes_in_digits_or_with_a_unit() {
        let found = problem("cache_bytes", &(1..=1 << 30), &Value::from("1e9"));

        let rule = "must be a whole number of bytes in digits, or a size such as 128MiB, ";
        assert!(found.starts_with(rule), "{found}");
    }

    #[test]
    fn a_key_without_a_range_is_an_integer_where_its_default_is() {
        let text = || ValueKind::String("x1".to_owned());
        let rule = "must be a whole number, 0 to 18446744073709551615";

        let found = problems("b", Some(5), text());

        assert!(found.len() == 1 && found.concat().starts_with(&format!("b: {rule}")), "{found:?}");
        assert_eq!(problems("b", None, text()), Vec::<String>::new());
    }

    #[test]
    fn a_range_without_an_end_has_its_least_number_only() {
        assert_eq!(bounds("a.calls", &(1..=5)), "1 to 5");
        assert_eq!(bounds("a.calls", &(3..=u64::MAX)), "at least 3");
        assert_eq!(bounds("a.calls", &(0..=u64::MAX)), "0 to 18446744073709551615");
    }

    #[test]
    fn a_range_of_bytes_has_units_as_sizes_are_written() {
        for (range, text) in [
            (1 << 20..=1 << 30, "1MiB to 1GiB"),
            (64 << 20..=u64::MAX, "at least 64MiB"),
            (0..=1536, "0 to 1536"),
            (1024..=1 << 40, "1KiB to 1TiB"),
            (0..=u64::MAX, "0 to 18446744073709551615"),
        ] {
            assert_eq!(bounds("a.cache_bytes", &range), text);
        }
    }
}
