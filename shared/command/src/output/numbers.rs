//! Numbers as people read them.

use indicatif::{BinaryBytes, HumanCount};

/// A number with a thousands separator.
#[must_use]
pub fn thousands(number: u64) -> String {
    HumanCount(number).to_string()
}

/// How many of a thing, such as `1 entity` or `2,000 entities`.
#[must_use]
pub fn counted(number: u64, thing: &str) -> String {
    let things = match (number, thing.strip_suffix('y')) {
        (1, _) => thing.to_owned(),
        (_, Some(stem)) => format!("{stem}ies"),
        (_, None) => format!("{thing}s"),
    };
    format!("{} {things}", thousands(number))
}

/// A size in a suitable unit.
pub fn bytes(number: u64) -> String {
    BinaryBytes(number).to_string()
}
