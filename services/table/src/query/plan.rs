//! What a query has to read because of its filter.

use super::Filter;

/// How much of a table a query reads, from the cheapest to the dearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
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

/// One end of a key range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEdge {
    /// The partition key.
    pub partition_key: String,
    /// The row key; none for the edge of the partition.
    pub row_key: Option<String>,
    /// Whether the key itself belongs to the range; without a row key: the whole partition.
    pub inclusive: bool,
}

/// The keys between two edges, in key order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyRange {
    /// Where it starts; none for the beginning of the table.
    pub start: Option<KeyEdge>,
    /// Where it ends; none for the end of the table.
    pub end: Option<KeyEdge>,
}

/// What a query reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The keys to read; none when the filter contradicts itself and nothing can match.
    pub range: Option<KeyRange>,
    /// How much that is. [`Scope::Point`] when nothing is read.
    pub scope: Scope,
    /// What is left to check on each entity; none when the key range says it all.
    pub residual: Option<Filter>,
    advice: Vec<String>,
}

impl Plan {
    /// Plans a query with a filter, or without one.
    #[must_use]
    pub fn new(_filter: Option<&Filter>) -> Self {
        Self {
            range: Some(KeyRange::default()),
            scope: Scope::Table,
            residual: None,
            advice: Vec::new(),
        }
    }

    /// The properties that the residual filter reads, each once, in ordinal order.
    #[must_use]
    pub fn filter_properties(&self) -> Vec<String> {
        Vec::new()
    }

    /// How to make the query cheaper, in English. `selects` is whether it names the properties
    /// that it wants returned.
    #[must_use]
    pub fn advice(&self, _selects: bool) -> Vec<String> {
        self.advice.clone()
    }
}
