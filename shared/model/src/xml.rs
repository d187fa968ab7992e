//! What XML documents of REST can represent. Settings that gRPC clients store are validated by it, so that REST
//! clients can read them and write them back unchanged.

/// Whether XML 1.0 can have the character at all, be it written or by reference.
#[must_use]
pub fn is_allowed(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        _ => character >= ' ',
    }
}

/// Whether a text survives a comma-separated list.
#[must_use]
pub fn is_list_item(text: &str) -> bool {
    let is_bare = text.trim_ascii() == text && !text.is_empty();
    is_bare && text.chars().all(|character| character != ',' && is_allowed(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_rejected_except_white_space() {
        for character in ['\t', '\n', '\r', ' ', '~', '\u{7f}', '\u{fffd}', '\u{10ffff}'] {
            assert!(is_allowed(character), "{character:?}");
        }
        for character in ['\0', '\u{1}', '\u{b}', '\u{1f}', '\u{fffe}', '\u{ffff}'] {
            assert!(!is_allowed(character), "{character:?}");
        }
    }

    #[test]
    fn an_item_of_a_list_has_no_comma_and_no_white_space_around_it() {
        for text in ["*", "https://example.com:8080", "x-ms-meta*", "a b", "é"] {
            assert!(is_list_item(text), "{text}");
        }
        for text in ["", " ", ",", "a,b", " a", "a\n", "a\u{1}"] {
            assert!(!is_list_item(text), "{text:?}");
        }
    }
}
