//! What a query has to read because of its filter.
//!
//! Entities are stored in key order, and there is no other index, so a query reads one interval
//! of keys: the smallest that the conditions on PartitionKey and RowKey imply. Conditions joined
//! by `or` contribute the interval from the first key to the last; it is not split.
//!
//! What the interval already says is taken out of the filter; the rest, the residual, is checked
//! on each entity read.

use trestle_identity::caller;
use trestle_kv::order::compare_text;

use super::{
    Filter,
    advice::advise,
    ast::Expr,
    eval::system_place,
    interval::{Cut, Keys},
    normal::normalize,
    region::Region,
};

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
    /// The keys to read; none when the filter contradicts itself, or its reader may read nothing
    /// that can match.
    pub range: Option<KeyRange>,
    /// How much that is. [`Scope::Point`] when nothing is read.
    pub scope: Scope,
    /// What is left to check on each entity; none when the key range says it all.
    pub residual: Option<Filter>,
    /// The condition in normal form, for advice.
    normal: Expr,
    /// Whether no key at all can match.
    is_contradiction: bool,
}

impl Plan {
    /// Plans a query with a filter, or without one.
    #[must_use]
    pub fn new(filter: Option<&Filter>) -> Self {
        Self::over(Keys::all(), filter)
    }

    /// The same for somebody who may read these keys only.
    #[must_use]
    pub fn within(filter: Option<&Filter>, granted: &caller::KeyRange) -> Self {
        Self::over(Keys::granted(granted), filter)
    }

    fn over(keys: Keys, filter: Option<&Filter>) -> Self {
        let normal = filter.map_or(Expr::Constant(true), |filter| normalize(filter.expr()));
        let wanted = Region::of(&normal);
        let is_contradiction = wanted.is_none();
        let granted = Region { keys, ..Region::everything(true) };
        let Some(region) = wanted.and_then(|wanted| wanted.intersection(granted)) else {
            let (scope, residual) = (Scope::Point, None);
            return Self { range: None, scope, residual, normal, is_contradiction };
        };
        let residual = residual(&normal, &region).map(Filter::new);
        let (scope, range) = (scope(&region.keys), range(&region.keys));
        Self { range: Some(range), scope, residual, normal, is_contradiction }
    }

    /// The key of the only entity that can match, for [`Scope::Point`].
    #[must_use]
    pub fn point(&self) -> Option<(&str, &str)> {
        let range = self.range.as_ref().filter(|_| self.scope == Scope::Point)?;
        let start = range.start.as_ref()?;
        Some((&start.partition_key, start.row_key.as_deref()?))
    }

    /// The properties that the residual filter reads, each once, in ordinal order.
    #[must_use]
    pub fn filter_properties(&self) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(residual) = &self.residual {
            residual.expr().for_each_comparison(&mut |c| names.push(c.property.clone()));
        }
        names.sort_unstable_by(|a, b| compare_text(a, b));
        names.dedup();
        names
    }

    /// How to make the query cheaper, in English. `selects` is whether it names the properties
    /// that it wants returned.
    #[must_use]
    pub fn advice(&self, selects: bool) -> Vec<String> {
        if self.is_contradiction {
            let nothing = "the conditions contradict each other, so nothing can match and nothing \
                           is read";
            return vec![nothing.to_owned()];
        }
        if self.range.is_none() {
            let nothing = "what can match is outside of the key range of the signature, so \
                           nothing is read";
            return vec![nothing.to_owned()];
        }
        let mut properties = self.filter_properties();
        properties.retain(|name| system_place(name).is_none() || name == "Timestamp");
        let mut advice = advise(&self.normal, self.scope, &properties);
        if !selects {
            advice.push(
                "every property is returned; select those that you use, to transfer less"
                    .to_owned(),
            );
        }
        advice
    }
}

/// The parts of a condition that the interval of keys does not already imply.
fn residual(normal: &Expr, region: &Region) -> Option<Expr> {
    let parts = match normal {
        Expr::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    // Only the interval of keys is read: rows outside of `region.rows` are, in some partitions.
    let read = Region { keys: region.keys.clone(), ..Region::everything(false) };
    let implied =
        |part: &&Expr| Region::of(part).is_some_and(|region| region.exact && region.has(&read));
    let kept: Vec<_> = parts.iter().filter(|part| !implied(part)).cloned().collect();
    (!kept.is_empty()).then(|| Expr::all(kept))
}

fn scope(keys: &Keys) -> Scope {
    match keys.one_partition() {
        Some((_, rows)) => match (&rows.start, &rows.end) {
            (Cut::First, Cut::Last) => Scope::Partition,
            (Cut::First, Cut::After(row)) if row.is_empty() => Scope::Point,
            (Cut::Before(first), Cut::After(last)) if first == last => Scope::Point,
            _ => Scope::RowRange,
        },
        None if keys.has_every_partition() => Scope::Table,
        None => Scope::PartitionRange,
    }
}

fn range(keys: &Keys) -> KeyRange {
    let edge = |partition: &str, row: Option<&str>, inclusive| KeyEdge {
        partition_key: partition.to_owned(),
        row_key: row.map(str::to_owned),
        inclusive,
    };
    let from_first_row = scope(keys) == Scope::Point;
    let at_beginning = keys.start == Keys::all().start && !from_first_row;
    let start = &keys.start;
    let start = match &start.row {
        Cut::First if at_beginning => None,
        // The one row whose key is empty.
        Cut::First if from_first_row => Some(edge(&start.partition, Some(""), true)),
        Cut::First => Some(edge(&start.partition, None, true)),
        Cut::Before(row) => Some(edge(&start.partition, Some(row), true)),
        Cut::After(row) => Some(edge(&start.partition, Some(row), false)),
        Cut::Last => Some(edge(&start.partition, None, false)),
    };
    let end = keys.end.as_ref().map(|end| match &end.row {
        Cut::First => edge(&end.partition, None, false),
        Cut::Before(row) => edge(&end.partition, Some(row), false),
        Cut::After(row) => edge(&end.partition, Some(row), true),
        Cut::Last => edge(&end.partition, None, true),
    });
    KeyRange { start, end }
}
