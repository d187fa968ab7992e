//! The range of keys that a query scans.

use super::{
    interval::{Cut, KeyInterval},
    scope::QueryScope,
};

/// One end of a key range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBound {
    /// The partition key.
    pub partition_key: String,
    /// The row key; none for the whole partition.
    pub row_key: Option<String>,
    /// Whether the key itself belongs to the range; without a row key: the whole partition.
    pub inclusive: bool,
}

/// The keys between two bounds, in key order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScanRange {
    /// Where it starts; none for the beginning of the table.
    pub start: Option<KeyBound>,
    /// Where it ends; none for the end of the table.
    pub end: Option<KeyBound>,
}

impl ScanRange {
    /// The range of an interval of keys.
    pub(super) fn of(keys: &KeyInterval) -> Self {
        let bound = |partition: &str, row: Option<&str>, inclusive| KeyBound {
            partition_key: partition.to_owned(),
            row_key: row.map(str::to_owned),
            inclusive,
        };
        let from_first_row = QueryScope::of(keys) == QueryScope::Point;
        let at_beginning = keys.start == KeyInterval::all().start && !from_first_row;
        let start = &keys.start;
        let start = match &start.row {
            Cut::First if at_beginning => None,
            // The one row whose key is empty.
            Cut::First if from_first_row => Some(bound(&start.partition, Some(""), true)),
            Cut::First => Some(bound(&start.partition, None, true)),
            Cut::Before(row) => Some(bound(&start.partition, Some(row), true)),
            Cut::After(row) => Some(bound(&start.partition, Some(row), false)),
            Cut::Last => Some(bound(&start.partition, None, false)),
        };
        let end = keys.end.as_ref().map(|end| match &end.row {
            Cut::First => bound(&end.partition, None, false),
            Cut::Before(row) => bound(&end.partition, Some(row), false),
            Cut::After(row) => bound(&end.partition, Some(row), true),
            Cut::Last => bound(&end.partition, None, true),
        });
        Self { start, end }
    }
}
