//! The path of a property in violations, by its name: `properties["NAME"]`. A client sees no positions in a map.
//!
//! Names in requests may break every rule, so a quote in one is escaped, and a backslash.

use super::quoted;

/// The beginning of a path.
const BEGIN: &str = "properties[\"";
/// Its end.
const END: &str = "\"]";

/// The path of a property, with the first characters of a long name.
#[must_use]
pub fn property_path(name: &str) -> String {
    let escaped = quoted(name).replace('\\', "\\\\").replace('"', "\\\"");
    format!("{BEGIN}{escaped}{END}")
}

/// The escaped name in the path that a text begins with, and the text behind it.
#[must_use]
pub fn split_property_path(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix(BEGIN)?;
    let mut is_escaped = false;
    let end = text.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })?;
    Some((text.get(..end)?, text.get(end..)?.strip_prefix(END)?))
}

/// The name of an escaped one.
#[must_use]
pub fn unescaped(escaped: &str) -> String {
    escaped.replace("\\\"", "\"").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_behind_its_name_whatever_the_name_contains() {
        for name in
            ["", "total", "a b", "\"", "\\", "\\\"", "\"\\", "a\"]", "a\"]: b", "\\\\\"]", "é"]
        {
            let text = format!("{}: must be a letter", property_path(name));

            let (escaped, rest) = split_property_path(&text).expect(name);

            assert_eq!((unescaped(escaped).as_str(), rest), (name, ": must be a letter"));
        }
        for other in ["", "properties", "properties[0]", "properties[\"a", "properties[\"a\\\"]"] {
            assert_eq!(split_property_path(other), None, "{other}");
        }
    }
}
