//! The heads of all streams together, for what joins them with the records of the streams.

use std::collections::HashMap;

use trestle_kv::{Engine, Entry, ScanLimit, scan_in_steps};

use crate::{
    error::LogError,
    keys,
    stored::StoredForm as _,
    stream::{Head, StreamId},
};

/// What one step reads at most.
const STEP: ScanLimit = ScanLimit { rows: 1000, bytes: 1024 * 1024 };

/// The heads of streams, of the first `rows_max` of them; none for one that cannot be read, which hides no other
/// stream: the sweep reports it.
///
/// # Errors
/// A failed read.
pub(crate) async fn read_heads(
    engine: &dyn Engine,
    rows_max: usize,
) -> Result<HashMap<StreamId, Option<Head>>, LogError> {
    let rows = scan_in_steps(engine, keys::every_head(), STEP, rows_max).await?;
    let head = |entry: &Entry| {
        let id = keys::head_of(&entry.key).ok()?;
        Some((id, Head::decode(&entry.value).ok()))
    };
    Ok(rows.iter().take(rows_max).filter_map(head).collect())
}
