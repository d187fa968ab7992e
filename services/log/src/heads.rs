//! The heads of all streams together, for what joins them with the records of the streams.

use std::collections::HashMap;

use trestle_kv::{Engine, visit_rows};

use crate::{
    error::LogError,
    keys,
    stored::StoredForm as _,
    stream::{Head, StreamId},
};

/// The heads of streams, of the first `rows_max` of them; none for one that cannot be read, which hides no other
/// stream: the sweep reports it.
///
/// # Errors
/// A failed read.
pub(crate) async fn read_heads(
    engine: &dyn Engine,
    rows_max: usize,
) -> Result<HashMap<StreamId, Option<Head>>, LogError> {
    let mut heads = HashMap::new();
    visit_rows(engine, keys::every_head(), |entry| {
        if heads.len() < rows_max
            && let Ok(id) = keys::head_of(&entry.key)
        {
            heads.insert(id, Head::decode(&entry.value).ok());
        }
    })
    .await?;
    Ok(heads)
}
