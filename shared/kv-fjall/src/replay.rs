//! Applies the changes of a log to a store that is being filled.
//!
//! A batch of the database gives all its items one sequence number, so changes are merged by key before they are
//! written. Nothing is synced: a store that is not finished is deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use fjall::{AbstractTree as _, Database, PersistMode};

use super::backpressure::{self, buffered_bytes};
use super::committer::exact;
use super::compactions;
use super::fill_error::FillError;
use super::logged_change::LoggedChange;
use super::options::MEMTABLE_BYTES;
use super::shared::{Tree, error_text};
use trestle_kv::keyspace::{Keyspaces, unknown_keyspace};
use trestle_kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use trestle_kv::{EngineError, Entry, Span};

/// Bytes and keys of changes that are written at once; a call may have more.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
const BATCH_KEYS: usize = 16 * 1024;
/// Most bytes in the memtables of all keyspaces together, before more is written.
const WRITE_BUFFER_BYTES: u64 = 64 * 1024 * 1024;
const FLUSH_POLL: Duration = Duration::from_millis(2);

/// A store that is being filled, and the changes that are not written to it yet.
pub(super) struct ChangeReplay<'a> {
    pub(super) keyspaces: &'a Keyspaces,
    pub(super) trees: &'a [Tree],
    pub(super) database: &'a Database,
    /// The newest change of each key: its value, or that it is deleted.
    pub(super) pending: BTreeMap<Bytes, Option<Bytes>>,
    /// Bytes of what is pending, with what was merged since it was last written.
    pub(super) pending_bytes: usize,
}

impl ChangeReplay<'_> {
    /// Applies a change; the index of the keyspace that it is of, or none for the discard of an empty span.
    pub(super) fn apply(&mut self, change: LoggedChange) -> Result<Option<usize>, FillError> {
        let (key, value) = match change {
            LoggedChange::Put(Entry { key, value }) => (key, Some(value)),
            LoggedChange::Delete(key) => (key, None),
            LoggedChange::Discard(span) => return self.discard(&span),
        };
        let index = self.keyspaces.index_of(&key);
        let index = index.ok_or_else(|| rejected(unknown_keyspace(&key)))?;
        let (key_bytes, value_bytes) = (key.len(), value.as_ref().map_or(0, Bytes::len));
        if key_bytes > KEY_BYTES_MAX || value_bytes > VALUE_BYTES_MAX {
            let keyspace = self.keyspaces.list().get(index).map_or("", |keyspace| keyspace.name);
            return Err(FillError::TooBig { keyspace, key_bytes, value_bytes });
        }
        self.pending_bytes += key_bytes + value_bytes;
        self.pending.insert(key, value);
        if self.pending_bytes >= BATCH_BYTES || self.pending.len() >= BATCH_KEYS {
            self.write()?;
        }
        Ok(Some(index))
    }

    /// Deletes every row of a span, those that were just applied and those of the store.
    fn discard(&mut self, span: &Span) -> Result<Option<usize>, FillError> {
        if span.is_empty() {
            return Ok(None);
        }
        let index = self.keyspaces.index_of_span(span).map_err(rejected)?;
        self.write()?;
        let Some(tree) = self.trees.get(index) else { return Ok(None) };
        let (mut start, mut is_over) = (span.start.clone(), false);
        while !is_over {
            // In pieces: an open view keeps what is flushed meanwhile in memory.
            let mut keys = Vec::new();
            for row in tree.handle.range(start.as_ref()..span.end.as_ref()).take(BATCH_KEYS) {
                keys.push(Bytes::from(row.key().map_err(|error| failed(&error))?));
            }
            is_over = keys.len() < BATCH_KEYS;
            if let Some(last) = keys.last() {
                start = trestle_kv::after_key(last).into();
            }
            self.pending_bytes += keys.iter().map(Bytes::len).sum::<usize>();
            self.pending.extend(keys.into_iter().map(|key| (key, None)));
            self.write()?;
        }
        Ok(Some(index))
    }

    /// Writes what is pending, and waits while flushes lag behind.
    pub(super) fn write(&mut self) -> Result<(), FillError> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut batch = self.database.batch();
        for (key, value) in std::mem::take(&mut self.pending) {
            let index = self.keyspaces.index_of(&key);
            let Some(tree) = index.and_then(|index| self.trees.get(index)) else { continue };
            match value {
                Some(value) => {
                    let (key, value) = exact(&key, &value);
                    batch.insert(&tree.handle, key, value);
                }
                None => batch.remove(&tree.handle, Bytes::copy_from_slice(&key)),
            }
        }
        self.pending_bytes = 0;
        batch.commit().and_then(|()| self.relieve()).map_err(|error| failed(&error))
    }

    /// Keeps memory within its bounds: flushes what is big, and waits while too much is in memory.
    #[expect(clippy::disallowed_methods, reason = "it runs where a thread may block")]
    fn relieve(&self) -> Result<(), fjall::Error> {
        let active = |tree: &Tree| tree.handle.tree.active_memtable().size();
        for tree in self.trees.iter().filter(|tree| active(tree) >= MEMTABLE_BYTES) {
            tree.handle.rotate_memtable()?;
        }
        if self.is_crowded()
            && let Some(biggest) = self.trees.iter().max_by_key(|tree| active(tree))
        {
            biggest.handle.rotate_memtable()?;
        }
        loop {
            let is_sealed = self.trees.iter().any(|tree| tree.handle.sealed_memtable_count() > 0);
            let is_lagging = self.trees.iter().any(backpressure::is_lagging);
            if !(is_lagging || is_sealed && self.is_crowded()) {
                return Ok(());
            }
            // Fails where a flush or a compaction failed, which nothing would end the wait after.
            self.database.persist(PersistMode::Buffer)?;
            std::thread::sleep(FLUSH_POLL);
            for tree in self.trees.iter().filter(|tree| compactions::has_replaced(tree)) {
                // No view is open: the writer is borrowed.
                compactions::release_files(tree, self.database.visible_seqno())?;
            }
        }
    }

    fn is_crowded(&self) -> bool {
        self.trees.iter().map(buffered_bytes).sum::<u64>() > WRITE_BUFFER_BYTES
    }
}

fn rejected(error: EngineError) -> FillError {
    let reason = match error {
        EngineError::Rejected { reason } => reason.to_string(),
        other => other.to_string(),
    };
    FillError::Rejected { reason }
}

fn failed(error: &fjall::Error) -> FillError {
    FillError::Apply { reason: error_text(error) }
}
