//! Errors of the configuration without texts that may be misplaced secrets.

/// A value as part of an error, where it is a number, one with a unit, or a boolean. Any other text may be a secret in
/// the wrong place, and is named without its content; no text has none.
pub(super) fn shown(text: &str) -> String {
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
        _ => ": value=(a text, not shown)".to_owned(),
    }
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
/// Longest number that is shown whole, in bytes, its unit included.
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
            format!("{key}: must be {}{value}", in_words(expected))
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
fn in_words(expected: &'static str) -> &'static str {
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
    fn numbers_are_shown_and_other_texts_are_not() {
        for text in
            ["-1", "1.5", "128Mob", "1e400", "-2.5e-3", "18446744073709551616", "0o777", "true"]
        {
            assert_eq!(shown(text), format!(": value=`{text}`"));
        }
        let long = ": value=`123456789012345678901234…`";
        assert_eq!(shown("1234567890123456789012345"), long);
        assert_eq!(shown(""), "");
        let hex = "0x0123456789abcdef0123456789abcdef";
        for text in
            ["12apples", "hunter2", "2hunter2", "infinity", "1e40000000000000000000000", "0o9", hex]
        {
            assert_eq!(shown(text), ": value=(a text, not shown)");
        }
    }
}
