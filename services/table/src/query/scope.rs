//! How much of a table a query reads.

use super::interval::{Cut, KeyInterval};

/// How much of a table a query reads, from the cheapest to the most expensive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueryScope {
    /// One entity by its whole key.
    Point,
    /// A range of row keys in one partition.
    RowRange,
    /// One whole partition.
    Partition,
    /// A range of partitions.
    PartitionRange,
    /// The whole table.
    Table,
}

impl QueryScope {
    /// The scope of an interval of keys.
    pub(super) fn of(keys: &KeyInterval) -> Self {
        match keys.one_partition() {
            Some((_, rows)) => match (&rows.start, &rows.end) {
                (Cut::First, Cut::Last) => Self::Partition,
                (Cut::First, Cut::After(row)) if row.is_empty() => Self::Point,
                (Cut::Before(first), Cut::After(last)) if first == last => Self::Point,
                _ => Self::RowRange,
            },
            None if keys.has_every_partition() => Self::Table,
            None => Self::PartitionRange,
        }
    }
}
