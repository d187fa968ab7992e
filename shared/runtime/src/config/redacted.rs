//! Errors of the configuration without texts that may be misplaced secrets.

/// A value as part of an error, where it is a number or one with a unit. Any other text may be a
/// secret in the wrong place.
pub(super) fn shown(text: &str) -> String {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || "+-._".contains(c));
    let is_number = unit.len() < text.len() && unit.len() <= UNIT_MAX && text.len() <= NUMBER_MAX;
    let has_unit = is_number && unit.chars().all(|c| c.is_ascii_alphabetic());
    // Such as 1e400.
    let is_harmless = has_unit || (is_float(text) && text.len() <= NUMBER_MAX);
    if is_harmless { format!(": value=`{text}`") } else { String::new() }
}

/// Whether a text is a number with an exponent or without.
fn is_float(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

/// Longest unit behind a number, in bytes.
const UNIT_MAX: usize = 5;
/// Longest number that is shown, in bytes, its unit included.
const NUMBER_MAX: usize = 24;

/// An error with its key first, and no text that may be a misplaced secret.
pub(super) fn redacted(error: config::ConfigError) -> String {
    use config::ConfigError as E;
    match error {
        E::At { error, key: Some(key), .. } => format!("{key}: {}", redacted(*error)),
        E::At { error, key: None, .. } => redacted(*error),
        E::Type { key: Some(key), unexpected, expected, .. } => {
            let value = match unexpected.to_string().split_once('`') {
                Some((_, rest)) => shown(rest.trim_end_matches('`')),
                None => text_of(&unexpected.to_string()).map_or_else(String::new, shown),
            };
            let is_integer = expected.contains("integer");
            let expected = if is_integer { "a whole number" } else { expected };
            format!("{key}: must be {expected}{value}")
        }
        E::Message(message) if message.contains(", expected struct ") => {
            "must be a section".to_owned()
        }
        other => without_text(&other.to_string()),
    }
}

/// The text in `string "text"`.
fn text_of(unexpected: &str) -> Option<&str> {
    unexpected.strip_prefix("string \"")?.strip_suffix('"')
}

/// An error without the unexpected text: it may be a misplaced secret.
fn without_text(error: &str) -> String {
    let (start, end) = ("string \"", "\", expected");
    match (error.find(start), error.rfind(end)) {
        (Some(from), Some(to)) if from < to => {
            let (before, after) = (error.get(..from), error.get(to + 1..));
            format!("{}text{}", before.unwrap_or_default(), after.unwrap_or_default())
        }
        _ => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_and_other_texts_are_not() {
        for (text, is_shown) in [
            ("-1", true),
            ("1.5", true),
            ("12apples", false),
            ("128Mob", true),
            ("1e400", true),
            ("-2.5e-3", true),
            ("18446744073709551616", true),
            ("1234567890123456789012345", false),
            ("1e40000000000000000000000", false),
            ("hunter2", false),
            ("2hunter2", false),
            ("infinity", false),
            ("", false),
        ] {
            let expected = if is_shown { format!(": value=`{text}`") } else { String::new() };
            assert_eq!(shown(text), expected);
        }
    }
}
