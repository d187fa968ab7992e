//! The rows of one kind of a container in the order of their names, read in parts.

use std::collections::VecDeque;

use bytes::Bytes;
use trestle_kv::{ScanLimit, Snapshot, Span, after_key};
use trestle_model::time::Ticks;

use crate::{
    error::BlobError,
    keys::{self, BlobRow},
    names::BlobName,
    record::ContainerId,
};

/// Rows that are read first: groups are skipped, so that most of a larger part would be read for nothing.
const ROWS_MIN: usize = 32;
/// Most rows that are read at once.
const ROWS_MAX: usize = 1024;
/// Most bytes that are read at once.
const BYTES_MAX: usize = 1024 * 1024;

/// A row under the name of a blob.
#[derive(Debug, Clone)]
pub(super) struct NamedRow {
    /// The name.
    pub(super) name: String,
    /// The time in the key of a past state.
    pub(super) past: Option<Ticks>,
    /// The value.
    pub(super) value: Bytes,
}

/// See the module.
pub(super) struct NameCursor<'a> {
    snapshot: &'a dyn Snapshot,
    row: BlobRow,
    container: ContainerId,
    /// What is not read yet.
    rest: Option<Span>,
    read: VecDeque<NamedRow>,
    rows: usize,
}

impl<'a> NameCursor<'a> {
    /// Begins at the first name from `start` on that has the prefix, and at this number of it.
    pub(super) fn new(
        snapshot: &'a dyn Snapshot,
        row: BlobRow,
        container: ContainerId,
        (prefix, start, number): (&str, &str, u64),
    ) -> Self {
        let mut span = keys::named(row, container, prefix);
        if !start.is_empty() {
            let numbers = if row == BlobRow::Past { &[number][..] } else { &[] };
            let start = BlobName::stored(start.to_owned());
            span.start = span.start.max(keys::blob_row(row, container, &start, numbers));
        }
        Self { snapshot, row, container, rest: Some(span), read: VecDeque::new(), rows: ROWS_MIN }
    }

    /// The next row.
    ///
    /// # Errors
    /// A failed read, or a corrupt key.
    pub(super) async fn peek(&mut self) -> Result<Option<NamedRow>, BlobError> {
        while self.read.is_empty() {
            let Some(span) = self.rest.take().filter(|span| !span.is_empty()) else {
                return Ok(None);
            };
            let limit = ScanLimit { rows: self.rows, bytes: BYTES_MAX };
            let scan = self.snapshot.scan(&span, limit).await?;
            self.rows = (self.rows * 2).min(ROWS_MAX);
            for entry in &scan.entries {
                let (_, name) = keys::blob_of(&entry.key)?;
                let past = (self.row == BlobRow::Past).then(|| keys::time_of(&entry.key));
                let (name, value) = (name.as_str().to_owned(), entry.value.clone());
                self.read.push_back(NamedRow { name, past: past.transpose()?, value });
            }
            let last = scan.entries.last().filter(|_| scan.more);
            self.rest = last.map(|last| Span::new(after_key(&last.key), span.end.clone()));
        }
        Ok(self.read.front().cloned())
    }

    /// Goes to the next row.
    pub(super) fn advance(&mut self) {
        self.read.pop_front();
    }

    /// Skips every name that starts with `prefix`.
    pub(super) fn skip(&mut self, prefix: &str) {
        while self.read.front().is_some_and(|row| row.name.starts_with(prefix)) {
            self.read.pop_front();
        }
        if self.read.is_empty()
            && let Some(span) = &mut self.rest
        {
            let after = keys::after_names(self.row, self.container, prefix);
            span.start = after.max(span.start.clone());
            self.rows = ROWS_MIN;
        }
    }
}
