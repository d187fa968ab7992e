//! Errors of the configuration without texts that may be secrets.

use super::places::within;

/// The section whose values may be secrets, and a setting that is one.
const SECRETS: [&str; 2] = ["accounts", "server.gateway_secret"];

/// The value of a key as part of an error: a number, one with a unit, a boolean, or a short text. A text in a section
/// with secrets, and a long one, which may be a secret in the wrong place, is named without its content; no text has
/// none.
#[must_use]
pub fn shown(key: &str, text: &str) -> String {
    let is_secret = SECRETS.iter().any(|secret| key == *secret || within(key, secret));
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || "+-._".contains(c));
    let is_number = unit.len() < text.len() && unit.len() <= UNIT_MAX;
    let has_unit = is_number && unit.chars().all(|c| c.is_ascii_alphabetic());
    // Such as 1e400 and 0o777.
    let is_other = is_float(text) || has_radix(text) || ["true", "false"].contains(&text);
    match text.len() {
        0 => String::new(),
        ..=NUMBER_MAX if has_unit || is_other => format!(": value=`{text}`"),
        _ if is_number && unit.is_empty() => {
            let start: String = text.chars().take(NUMBER_MAX).collect();
            format!(": value=`{start}…`")
        }
        ..=NUMBER_MAX if !is_secret && !text.contains(char::is_control) => {
            format!(": value=`{text}`")
        }
        _ => ": value=(a text, not shown)".to_owned(),
    }
}

/// The mistake in the syntax of a file, with the key that is written twice.
pub(super) fn in_words(error: &toml::de::Error, text: &str) -> String {
    let message = error.message();
    match error.span().filter(|_| is_duplicate(error)).and_then(|span| text.get(span)) {
        Some(key) => format!("{message}: key=`{key}`"),
        None => message.to_owned(),
    }
}

/// Whether a key is written twice.
pub(super) fn is_duplicate(error: &toml::de::Error) -> bool {
    error.message() == "duplicate key"
}

/// Whether a text is a number with an exponent or without.
fn is_float(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

/// Whether a text is an integer of another radix, as TOML has it.
fn has_radix(text: &str) -> bool {
    let of = |prefix: &str, radix: u32| {
        let digits = text.strip_prefix(prefix);
        digits.is_some_and(|digits| digits.chars().all(|c| c == '_' || c.is_digit(radix)))
    };
    of("0x", 16) || of("0o", 8) || of("0b", 2)
}

/// Longest unit behind a number, in bytes.
const UNIT_MAX: usize = 5;
/// Longest value that is shown whole, in bytes, its unit included. Keys of accounts and signatures are longer.
const NUMBER_MAX: usize = 24;

/// An error with its key first, and no text that may be a misplaced secret.
pub(super) fn redacted(error: config::ConfigError) -> String {
    use config::ConfigError as E;
    match error {
        E::At { error, key: Some(key), .. } => format!("{key}: {}", redacted(*error)),
        E::At { error, key: None, .. } => redacted(*error),
        E::Type { key: Some(key), unexpected, expected, .. } => {
            let value = match unexpected.to_string().split_once('`') {
                Some((_, rest)) => shown(&key, rest.trim_end_matches('`')),
                None => text_of(&unexpected.to_string())
                    .map_or_else(String::new, |text| shown(&key, text)),
            };
            format!("{key}: must be {}{value}", type_in_words(expected))
        }
        E::Message(message) => match section_in(&message) {
            Some(section) => format!("must be {section}"),
            None => without_text(&message),
        },
        other => without_text(&other.to_string()),
    }
}

/// How errors about a section end, as the decoder writes them.
const SECTIONS: [&str; 2] = [", expected struct ", ", expected a map"];

/// The section that an error expects, if it does. What was found is before it, and may be a secret.
fn section_in(error: &str) -> Option<&str> {
    let (_, expected) = error.rsplit_once(", expected ")?;
    let is_unnamed = SECTIONS.iter().any(|end| error.contains(end));
    expected.starts_with("a section").then_some(expected).or(is_unnamed.then_some("a section"))
}

/// What a setting must be. The decoder reads as a boolean what files and variables of others have, too.
fn type_in_words(expected: &'static str) -> &'static str {
    match expected {
        "a boolean" => "true or false (or yes or no, on or off, 1 or 0)",
        "a string" => "a text",
        "a floating point" => "a number",
        other if other.contains("integer") => "a whole number",
        other => other,
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
    fn values_are_shown_but_not_long_texts_nor_those_of_a_section_with_secrets() {
        for text in
            ["-1", "1.5", "128Mob", "1e400", "-2.5e-3", "18446744073709551616", "0o777", "true"]
        {
            assert_eq!(shown("limits.calls_max", text), format!(": value=`{text}`"));
            assert_eq!(shown("accounts.acme.key1", text), format!(": value=`{text}`"));
        }
        let long = ": value=`123456789012345678901234…`";
        assert_eq!(shown("limits.calls_max", "1234567890123456789012345"), long);
        assert_eq!(shown("limits.calls_max", ""), "");
        let not_shown = ": value=(a text, not shown)";
        for text in ["12apples", "hunter2", "2hunter2", "infinity", "0o9"] {
            assert_eq!(shown("limits.calls_max", text), format!(": value=`{text}`"));
            assert_eq!(shown("accounts.acme.key1", text), not_shown);
            assert_eq!(shown("accounts", text), not_shown);
        }
        for text in ["1e40000000000000000000000", "0x0123456789abcdef0123456789abcdef", "a\nb"] {
            assert_eq!(shown("limits.calls_max", text), not_shown);
        }
    }
}
