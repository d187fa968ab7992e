//! Positions in the change log of a store.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A position between two groups of a change log: what is before it was committed.
///
/// Its text is `journal:offset:check`, with the first two as decimal numbers and the check as 16 hexadecimal digits.
/// Positions are ordered by journal and offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogPosition {
    journal: u64,
    offset: u64,
    check: u64,
}

impl LogPosition {
    /// The position in a journal after a group that ends with this hash; at offset 0 the hash is 0.
    pub(crate) const fn new(journal: u64, offset: u64, check: u64) -> Self {
        Self { journal, offset, check }
    }

    /// Before the first group of a journal.
    pub(crate) const fn at_start_of(journal: u64) -> Self {
        Self::new(journal, 0, 0)
    }

    /// The number of the journal.
    #[must_use]
    pub const fn journal(self) -> u64 {
        self.journal
    }

    /// The offset in the journal, in bytes.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// The hash that the last group before it ends with; 0 at offset 0.
    #[must_use]
    pub const fn check(self) -> u64 {
        self.check
    }
}

impl PartialOrd for LogPosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LogPosition {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |position: &Self| (position.journal, position.offset, position.check);
        key(self).cmp(&key(other))
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{:016x}", self.journal, self.offset, self.check)
    }
}

/// A text that is no position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a log position is journal:offset:check, such as 3:1024:00d1f2a3b4c5e6f7: found=`{found}`")]
pub struct LogPositionError {
    /// The text, cut where it is long.
    pub found: String,
}

impl FromStr for LogPosition {
    type Err = LogPositionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = parse(text).filter(|parsed| parsed.offset > 0 || parsed.check == 0);
        // Only as it is displayed: without signs, leading zeros and capital letters.
        parsed
            .filter(|parsed| parsed.to_string() == text)
            .ok_or_else(|| LogPositionError { found: text.chars().take(64).collect() })
    }
}

fn parse(text: &str) -> Option<LogPosition> {
    let (journal, rest) = text.split_once(':')?;
    let (offset, check) = rest.split_once(':')?;
    let check = u64::from_str_radix(check, 16).ok()?;
    Some(LogPosition::new(journal.parse().ok()?, offset.parse().ok()?, check))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_position_is_read_as_it_is_displayed(journal: u64, offset in 1_u64.., check: u64) {
            let position = LogPosition::new(journal, offset, check);
            prop_assert_eq!(position.to_string().parse(), Ok(position));
        }

        #[test]
        fn other_texts_are_errors_and_not_panics(text in ".{0,80}|[0-9a-f:+ -]{0,60}") {
            if let Ok(position) = text.parse::<LogPosition>() {
                prop_assert_eq!(position.to_string(), text);
            }
        }

        #[test]
        fn positions_are_ordered_by_journal_and_then_by_offset(a: (u64, u64), b: (u64, u64)) {
            let position = |(journal, offset), check| LogPosition::new(journal, offset, check);
            prop_assume!(a != b);
            prop_assert_eq!(position(a, 1).cmp(&position(b, 0)), a.cmp(&b));
        }
    }

    #[test]
    fn the_start_of_a_journal_has_no_check() {
        let start = LogPosition::at_start_of(7);
        assert_eq!(start.to_string(), "7:0:0000000000000000");
        assert_eq!("7:0:0000000000000000".parse(), Ok(start));
        assert!("7:0:0000000000000001".parse::<LogPosition>().is_err());
    }

    #[test]
    fn texts_of_another_form_are_rejected_with_the_text() {
        for text in [
            "",
            "1",
            "1:2",
            "1:2:",
            "1:2:3",
            "1:2:00000000000000000",
            "1:2:000000000000000G",
            "1:2:000000000000000A",
            "+1:2:0000000000000001",
            "01:2:0000000000000001",
            "1:2:0000000000000001 ",
            "1:2:0000000000000001:3",
            "-1:2:0000000000000001",
            "18446744073709551616:2:0000000000000001",
        ] {
            let error = text.parse::<LogPosition>().unwrap_err().to_string();
            assert!(error.ends_with(&format!("found=`{text}`")), "{error}");
        }
        assert_eq!("x".repeat(1_000).parse::<LogPosition>().unwrap_err().found.len(), 64);
    }
}
