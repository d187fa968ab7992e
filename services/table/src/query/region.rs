//! Which keys can match a condition: an interval of keys and an interval of row keys.
//!
//! A region always has every key that can match; it may have more, and then it is not `exact`.

use trestle_filter::{Comparison, Expr, Literal};

use super::interval::{KeyInterval, TextInterval};

/// Keys in an interval whose row keys are in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) keys: KeyInterval,
    /// Everything when `keys` lie in one partition, whose row keys they then bound themselves.
    pub(super) rows: TextInterval,
    /// Whether exactly the keys of the region match, with any other properties.
    pub(super) exact: bool,
}

impl Region {
    pub(super) fn everything(exact: bool) -> Self {
        Self { keys: KeyInterval::all(), rows: TextInterval::ALL, exact }
    }

    /// The region of a condition in normal form; none when nothing can match.
    pub(super) fn of(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::Constant(truth) => truth.then(|| Self::everything(true)),
            Expr::Compare(comparison) => Self::of_comparison(comparison),
            Expr::Not(_) => Some(Self::everything(false)),
            Expr::And(parts) => parts.iter().try_fold(Self::everything(true), |region, part| {
                region.intersection(Self::of(part)?)
            }),
            Expr::Or(parts) => {
                let mut parts: Vec<_> = parts.iter().filter_map(Self::of).collect();
                // In order, so that those that touch are neighbours.
                parts.sort_by(|a, b| a.keys.start.cmp(&b.keys.start));
                parts.into_iter().reduce(Self::hull)
            }
        }
    }

    fn of_comparison(comparison: &Comparison) -> Option<Self> {
        let Comparison { property, operator, literal } = comparison;
        let everything = Self::everything(false);
        let region = match (property.as_str(), literal) {
            ("PartitionKey", Literal::String(text)) => KeyInterval::of(*operator, text)
                .map(|keys| Self { keys, exact: true, ..Self::everything(true) }),
            ("RowKey", Literal::String(text)) => TextInterval::of(*operator, text)
                .map(|rows| Self { rows, exact: true, ..Self::everything(true) }),
            _ => None,
        };
        region.unwrap_or(everything).tightened()
    }

    /// The keys in both; none if empty.
    pub(super) fn intersection(self, other: Self) -> Option<Self> {
        let keys = self.keys.intersection(other.keys);
        let rows = self.rows.intersection(other.rows);
        Self { keys, rows, exact: self.exact && other.exact }.tightened()
    }

    /// The smallest region with both.
    fn hull(self, other: Self) -> Self {
        if self.has(&other) {
            return self;
        }
        if other.has(&self) {
            return other;
        }
        let no_gap = self.rows == other.rows && self.keys.touches(&other.keys)
            || self.keys == other.keys && self.rows.touches(&other.rows);
        Self {
            keys: self.keys.hull(other.keys),
            rows: self.rows.hull(other.rows),
            exact: self.exact && other.exact && no_gap,
        }
    }

    /// Whether every key of `other` is one of this region.
    pub(super) fn has(&self, other: &Self) -> bool {
        let rows_within = self.rows == TextInterval::ALL
            || self.rows.contains(&other.rows)
            || other.keys.one_partition().is_some_and(|(_, rows)| self.rows.contains(&rows));
        rows_within && self.keys.contains(&other.keys)
    }

    /// The same keys in the smallest interval; none if empty.
    fn tightened(self) -> Option<Self> {
        if self.rows.is_empty() {
            return None;
        }
        let keys = self.keys.with_rows(&self.rows);
        if keys.is_empty() {
            return None;
        }
        let rows = if keys.one_partition().is_some() { TextInterval::ALL } else { self.rows };
        Some(Self { keys, rows, exact: self.exact })
    }
}
