//! Which keys a query reads, and which condition it checks on each entity.
//!
//! Entities are stored in key order, and no other index exists, so a query reads one interval
//! of keys: the smallest that the conditions on PartitionKey and RowKey imply. Conditions joined
//! by `or` contribute the interval from the first key to the last; it is not split.
//!
//! Conditions that the interval implies are removed from the filter; the rest, the residual, is checked
//! on each entity read.

use trestle_filter::Expr;
use trestle_identity::caller;
use trestle_kv::order::compare_text;

use super::{
    Filter, advice::advise, eval::system_slot, interval::KeyInterval, normal::normalize,
    range::ScanRange, region::Region, scope::QueryScope,
};

/// The plan of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPlan {
    /// The keys to read; none when the filter contradicts itself, or no key in the range of the caller can
    /// match.
    pub range: Option<ScanRange>,
    /// How much that is. [`QueryScope::Point`] when nothing is read.
    pub scope: QueryScope,
    /// The condition to check on each entity; none when the key range implies it.
    pub residual: Option<Filter>,
    /// The condition in normal form, for advice.
    normal: Expr,
    /// Whether no key at all can match.
    is_contradiction: bool,
}

impl QueryPlan {
    /// Plans a query with a filter, or without one.
    #[must_use]
    pub fn new(filter: Option<&Filter>) -> Self {
        Self::over(KeyInterval::all(), filter)
    }

    /// The same for a caller who may read these keys only.
    #[must_use]
    pub fn within(filter: Option<&Filter>, granted: &caller::KeyRange) -> Self {
        Self::over(KeyInterval::granted(granted), filter)
    }

    fn over(keys: KeyInterval, filter: Option<&Filter>) -> Self {
        let normal = filter.map_or(Expr::Constant(true), |filter| normalize(filter.expr()));
        let filtered = Region::of(&normal);
        let is_contradiction = filtered.is_none();
        let granted = Region { keys, ..Region::everything(true) };
        let Some(region) = filtered.and_then(|filtered| filtered.intersection(granted)) else {
            let (scope, residual) = (QueryScope::Point, None);
            return Self { range: None, scope, residual, normal, is_contradiction };
        };
        let residual = residual(&normal, &region).map(Filter::new);
        let (scope, range) = (QueryScope::of(&region.keys), ScanRange::of(&region.keys));
        Self { range: Some(range), scope, residual, normal, is_contradiction }
    }

    /// The key of the only entity that can match, for [`QueryScope::Point`].
    #[must_use]
    pub fn point(&self) -> Option<(&str, &str)> {
        let range = self.range.as_ref().filter(|_| self.scope == QueryScope::Point)?;
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

    /// Why no key is read, where none is.
    pub(super) fn unread_reason(&self) -> Option<&'static str> {
        if self.is_contradiction {
            return Some(
                "the conditions contradict each other, so nothing can match and nothing is read",
            );
        }
        self.range.is_none().then_some(
            "what can match is outside of the key range of the signature, so nothing is read",
        )
    }

    /// How to make the query cheaper, in English. `selects` is whether the request selects properties to return.
    #[must_use]
    pub fn advice(&self, selects: bool) -> Vec<String> {
        if let Some(nothing) = self.unread_reason() {
            return vec![nothing.to_owned()];
        }
        let mut properties = self.filter_properties();
        properties.retain(|name| system_slot(name).is_none() || name == "Timestamp");
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
