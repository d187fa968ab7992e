//! Names of properties: the shape of a C# identifier, by Unicode category.

use unicode_general_category::{GeneralCategory as C, get_general_category};

/// Whether a name can start with this: a letter or `_`.
#[must_use]
pub fn is_name_start(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic() || c == '_';
    }
    matches!(
        get_general_category(c),
        C::UppercaseLetter
            | C::LowercaseLetter
            | C::TitlecaseLetter
            | C::ModifierLetter
            | C::OtherLetter
            | C::LetterNumber
    )
}

/// Whether a name can continue with this: a letter, digit, connector, mark or format character.
#[must_use]
pub fn is_name_part(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    is_name_start(c)
        || matches!(
            get_general_category(c),
            C::DecimalNumber
                | C::ConnectorPunctuation
                | C::NonspacingMark
                | C::SpacingMark
                | C::Format
        )
}

/// A character in an error: one that controls a terminal by its number.
#[must_use]
pub fn shown(c: char) -> String {
    if c.is_control() { format!("U+{:04X}", u32::from(c)) } else { c.to_string() }
}
