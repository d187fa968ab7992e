//! The rows of a keyspace from the first to the last, for a store that is read or filled as a whole.

use std::ops::Bound;

use fjall::{Database, Readable as _};

use super::shared::{Tree, read_failed};
use trestle_kv::keyspace::Keyspaces;
use trestle_kv::{EngineError, Entry, Keyspace, after_prefix};

/// The rows of the keyspace of a name in the order of their keys, at one instant; only those with greater keys than
/// `after`, if it is given. The engine's own rows are left out. Ends after an error.
pub(super) fn rows(
    database: &Database,
    keyspaces: &Keyspaces,
    trees: &[Tree],
    name: &str,
    after: Option<&[u8]>,
) -> Result<impl Iterator<Item = Result<Entry, EngineError>> + Send + use<>, EngineError> {
    let mut found = keyspaces.list().iter().zip(trees).filter(|(found, _)| found.name == name);
    let (Keyspace { kinds, .. }, tree) = found.next().ok_or_else(|| EngineError::Rejected {
        reason: format!("there is no such keyspace: keyspace=`{name}`").into(),
    })?;
    let first = vec![*kinds.start()];
    let end = after_prefix(&[*kinds.end()]);
    // A range that ends before it begins has no order.
    let start = match after {
        Some(after) if *after >= *end => Bound::Included(end.clone()),
        Some(after) if *after >= *first => Bound::Excluded(after.to_vec()),
        _ => Bound::Included(first),
    };
    let view = database.snapshot();
    let rows = view.range(&tree.handle, (start, Bound::Excluded(end)));
    let mut is_over = false;
    let rows = rows.map(|row| {
        let (key, value) = row.into_inner().map_err(|error| read_failed(&error))?;
        Ok(Entry { key: key.into(), value: value.into() })
    });
    Ok(rows.take_while(move |row| !std::mem::replace(&mut is_over, row.is_err())))
}
