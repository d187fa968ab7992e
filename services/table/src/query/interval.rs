//! Intervals of texts and of keys, between cuts.
//!
//! A cut is a position between two neighbours of an order, so an interval is two cuts and needs no
//! inclusive or exclusive ends. Keys are ordered by partition key, then row key; a cut of keys is
//! a partition key and a cut of the row keys within it.

use std::cmp::Ordering;

use trestle_filter::Operator;
use trestle_identity::caller::KeyRange;
use trestle_kv::order::compare_text;

/// A position in the order of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cut {
    /// Before every text, the empty one too.
    First,
    /// Before this text, which is not empty: before the empty one is `First`.
    Before(String),
    /// After this text.
    After(String),
    /// After every text.
    Last,
}

impl Cut {
    pub(super) fn before(text: &str) -> Self {
        if text.is_empty() { Self::First } else { Self::Before(text.to_owned()) }
    }

    pub(super) fn after(text: &str) -> Self {
        Self::After(text.to_owned())
    }

    /// The side of everything, the text, the side of the text.
    fn parts(&self) -> (i8, &str, i8) {
        match self {
            Self::First => (-1, "", 0),
            Self::Before(text) => (0, text, -1),
            Self::After(text) => (0, text, 1),
            Self::Last => (1, "", 0),
        }
    }
}

impl Ord for Cut {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.parts(), other.parts());
        a.0.cmp(&b.0).then_with(|| compare_text(a.1, b.1)).then(a.2.cmp(&b.2))
    }
}

impl PartialOrd for Cut {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The texts between two cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextInterval {
    pub(super) start: Cut,
    pub(super) end: Cut,
}

impl TextInterval {
    pub(super) const ALL: Self = Self { start: Cut::First, end: Cut::Last };

    /// The texts that satisfy a comparison; none when they are not one interval.
    pub(super) fn of(operator: Operator, text: &str) -> Option<Self> {
        let (before, after) = (Cut::before(text), Cut::after(text));
        Some(match operator {
            Operator::Equal => Self { start: before, end: after },
            Operator::NotEqual => return None,
            Operator::Greater => Self { start: after, end: Cut::Last },
            Operator::GreaterOrEqual => Self { start: before, end: Cut::Last },
            Operator::Less => Self { start: Cut::First, end: before },
            Operator::LessOrEqual => Self { start: Cut::First, end: after },
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    pub(super) fn intersection(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// The smallest interval that contains both.
    pub(super) fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether the hull of both is exactly their union.
    pub(super) fn touches(&self, other: &Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    pub(super) fn contains(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// A position in the order of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyCut {
    pub(super) partition: String,
    pub(super) row: Cut,
}

impl KeyCut {
    fn new(partition: &str, row: Cut) -> Self {
        Self { partition: partition.to_owned(), row }
    }

    /// Before every key.
    fn first() -> Self {
        Self::new("", Cut::First)
    }
}

impl Ord for KeyCut {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_text(&self.partition, &other.partition).then_with(|| self.row.cmp(&other.row))
    }
}

impl PartialOrd for KeyCut {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The keys between two cuts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyInterval {
    pub(super) start: KeyCut,
    /// None for the end of the table.
    pub(super) end: Option<KeyCut>,
}

impl KeyInterval {
    pub(super) fn all() -> Self {
        Self { start: KeyCut::first(), end: None }
    }

    /// The keys of a grant.
    pub(super) fn granted(range: &KeyRange) -> Self {
        let start = range.start_partition_key.as_deref().map(|partition| {
            KeyCut::new(partition, range.start_row_key.as_deref().map_or(Cut::First, Cut::before))
        });
        let end = range.end_partition_key.as_deref().map(|partition| {
            KeyCut::new(partition, range.end_row_key.as_deref().map_or(Cut::Last, Cut::after))
        });
        Self { start: start.unwrap_or_else(KeyCut::first), end }
    }

    /// Whether it contains some rows of every partition.
    pub(super) fn has_every_partition(&self) -> bool {
        self.start.partition.is_empty() && self.start.row != Cut::Last && self.end.is_none()
    }

    /// The keys whose partition key satisfies a comparison; none when they are not one interval.
    pub(super) fn of(operator: Operator, partition: &str) -> Option<Self> {
        let (before, after) =
            (KeyCut::new(partition, Cut::First), KeyCut::new(partition, Cut::Last));
        Some(match operator {
            Operator::Equal => Self { start: before, end: Some(after) },
            Operator::NotEqual => return None,
            Operator::Greater => Self { start: after, end: None },
            Operator::GreaterOrEqual => Self { start: before, end: None },
            Operator::Less => Self { start: KeyCut::first(), end: Some(before) },
            Operator::LessOrEqual => Self { start: KeyCut::first(), end: Some(after) },
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| self.start >= *end)
    }

    pub(super) fn intersection(self, other: Self) -> Self {
        let end = match (self.end, other.end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (end, None) | (None, end) => end,
        };
        Self { start: self.start.max(other.start), end }
    }

    /// The smallest interval that contains both.
    pub(super) fn hull(self, other: Self) -> Self {
        let end = self.end.zip(other.end).map(|(a, b)| a.max(b));
        Self { start: self.start.min(other.start), end }
    }

    /// Whether the hull of both is exactly their union.
    pub(super) fn touches(&self, other: &Self) -> bool {
        let overlaps = |a: &Self, b: &Self| b.end.as_ref().is_none_or(|end| a.start <= *end);
        overlaps(self, other) && overlaps(other, self)
    }

    pub(super) fn contains(&self, other: &Self) -> bool {
        let ends_within = match (&self.end, &other.end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => other <= own,
        };
        self.start <= other.start && ends_within
    }

    /// The partition and its row keys, when all keys lie in one.
    pub(super) fn one_partition(&self) -> Option<(&str, TextInterval)> {
        let end = self.end.as_ref().filter(|end| end.partition == self.start.partition)?;
        let rows = TextInterval { start: self.start.row.clone(), end: end.row.clone() };
        Some((&self.start.partition, rows))
    }

    /// The smallest interval that contains the keys of this one whose row key is in `rows`.
    ///
    /// Only the first and the last partition can shrink: of those between, every one may have
    /// such rows, and they are not neighbours.
    pub(super) fn with_rows(mut self, rows: &TextInterval) -> Self {
        if self.start.row != Cut::Last {
            let row = self.start.row.max(rows.start.clone());
            self.start.row = if row < rows.end { row } else { Cut::Last };
        }
        if let Some(end) = self.end.as_mut().filter(|end| end.row != Cut::First) {
            let row = end.row.clone().min(rows.end.clone());
            end.row = if row > rows.start { row } else { Cut::First };
        }
        self
    }
}

#[cfg(test)]
mod tests;
