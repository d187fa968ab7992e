//! From the keys of a query to the keys of the store.

use bytes::Bytes;
use trestle_kv::{Span, after_key};

use crate::{
    keys::{self, TableId},
    query::{KeyBound, ScanRange},
};

/// The span of a range in the keys of a table.
pub(super) fn span(range: &ScanRange, id: TableId) -> Span {
    let whole = keys::entities(id);
    let start = range.start.as_ref().map_or(whole.start, |bound| key(bound, id, !bound.inclusive));
    let end = range.end.as_ref().map_or(whole.end, |bound| key(bound, id, bound.inclusive));
    Span::new(start, end)
}

/// The first key of the row or partition of a bound, or the first key after it.
fn key(bound: &KeyBound, id: TableId, after: bool) -> Bytes {
    match (&bound.row_key, after) {
        (None, false) => keys::partition_start(id, &bound.partition_key),
        (None, true) => keys::partition_end(id, &bound.partition_key),
        (Some(row_key), false) => keys::row(id, &bound.partition_key, row_key),
        (Some(row_key), true) => after_key(&keys::row(id, &bound.partition_key, row_key)).into(),
    }
}
