//! Numbers of the file beyond 64 bits, and those with an exponent, as texts. The decoder fails for the whole file at a
//! number beyond 64 bits; as a text it is one mistake with its key and its rule, and hides no other. A number with an
//! exponent is then shown as it is written.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The text of a file with quotes around such numbers. Its lines are unchanged.
pub(super) fn quote_numbers(text: &str) -> String {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut quoted = text.to_owned();
    if !errors.is_empty() {
        return quoted;
    }
    let mut found = Vec::new();
    table.get_ref().values().for_each(|value| numbers_to_quote(value, &mut found));
    // From the end, so that the ranges before remain right.
    found.sort_by_key(|range| range.start);
    for range in found.into_iter().rev() {
        if let Some(number) = text.get(range.clone()) {
            quoted.replace_range(range, &format!("\"{number}\""));
        }
    }
    quoted
}

fn numbers_to_quote(value: &Spanned<DeValue<'_>>, found: &mut Vec<Range<usize>>) {
    let is_quoted = match value.get_ref() {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).is_err(),
        DeValue::Float(number) => number.as_str().contains(['e', 'E']),
        DeValue::Array(values) => {
            values.iter().for_each(|value| numbers_to_quote(value, found));
            false
        }
        DeValue::Table(values) => {
            values.values().for_each(|value| numbers_to_quote(value, found));
            false
        }
        DeValue::String(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => false,
    };
    if is_quoted {
        found.push(value.span());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn such_numbers_are_quoted_and_lines_are_kept() {
        for (text, quoted) in [
            (
                "a = 18446744073709551616 # much\nb = 1",
                "a = \"18446744073709551616\" # much\nb = 1",
            ),
            ("a = -9223372036854775809", "a = \"-9223372036854775809\""),
            ("a = 18_446_744_073_709_551_616", "a = \"18_446_744_073_709_551_616\""),
            ("a = 0xfffffffffffffffff", "a = \"0xfffffffffffffffff\""),
            ("a = 1e400\n\n[b]\nc = -1e400", "a = \"1e400\"\n\n[b]\nc = \"-1e400\""),
            ("a = 1e9\nb = 2.5E-3", "a = \"1e9\"\nb = \"2.5E-3\""),
            ("a = [1, 18446744073709551616]", "a = [1, \"18446744073709551616\"]"),
            ("a = { b = 1e999, c = 2 }", "a = { b = \"1e999\", c = 2 }"),
            ("a.b.c = 18446744073709551616", "a.b.c = \"18446744073709551616\""),
        ] {
            assert_eq!(quote_numbers(text), quoted);
            assert!(toml::from_str::<toml::Table>(quoted).is_ok(), "{quoted}");
        }
    }

    #[test]
    fn other_values_and_malformed_files_are_unchanged() {
        for text in [
            "a = 9223372036854775807\nb = -9223372036854775808\nc = 0xff\nd = 1_000",
            "a = 1.5\nb = inf\nc = -inf\nd = nan\ne = 0.1",
            "a = \"18446744073709551616\"\nb = true\nc = 2026-01-31",
            "a = 18446744073709551616\n[b\n",
            "",
        ] {
            assert_eq!(quote_numbers(text), text);
        }
    }
}
