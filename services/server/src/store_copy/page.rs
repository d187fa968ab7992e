//! Rows of a keyspace, in pages.

use trestle_command::errors::CliError;
use trestle_kv::{Engine, Entry, Keyspace, ScanLimit, Span, after_key};

use super::failure::unread;

/// What is read, and written in one change: at most this, and one more row.
pub(super) const PAGE: ScanLimit = ScanLimit { rows: 500, bytes: 4 * 1024 * 1024 };

/// Rows in the order of their keys.
#[derive(Debug)]
pub(super) struct RowPage {
    pub(super) rows: Vec<Entry>,
    /// The last key that was read, where more may follow.
    pub(super) next: Option<Vec<u8>>,
}

impl RowPage {
    /// Reads rows of a keyspace that follow a key.
    pub(super) async fn read(
        engine: &dyn Engine,
        keyspace: &Keyspace,
        after: Option<&[u8]>,
    ) -> Result<Self, CliError> {
        let mut span = span(keyspace);
        if let Some(after) = after {
            span.start = after_key(after).into();
        }
        if span.is_empty() {
            return Ok(Self { rows: Vec::new(), next: None });
        }
        let scan = engine.scan(&span, PAGE).await.map_err(|error| unread(&error))?;
        let next = scan.entries.last().filter(|_| scan.more).map(|row| row.key.to_vec());
        Ok(Self { rows: scan.entries, next })
    }
}

/// Every key of a keyspace.
pub(super) fn span(keyspace: &Keyspace) -> Span {
    let after = keyspace.kinds.end().saturating_add(1);
    Span::new(vec![*keyspace.kinds.start()], vec![after])
}
