//! The rows of a keyspace that can be read where tables of it are damaged.
//!
//! An iterator of the database ends at damage, and drops what it read ahead of other tables. So each table is read on
//! its own, around its damaged blocks, and tables and journals are merged here: of each key the newest entry that can
//! be read counts.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Bound;

use bytes::Bytes;
use fjall::{AbstractTree as _, LsmError, UserKey};

use super::shared::Tree;
use trestle_kv::{Entry, Keyspace, after_prefix};

/// Ranges that are kept with their keys; more are only counted.
const RANGES_KEPT: usize = 20;

/// Keys of a keyspace between which entries of a table cannot be read. They may be of rows, of earlier states of them,
/// or of deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRange {
    /// The last key before it; none where the table begins with it.
    pub after: Option<Bytes>,
    /// The first key behind it; none where the table ends with it.
    pub before: Option<Bytes>,
}

/// The ranges of a keyspace that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreadableRanges {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub first: Vec<UnreadableRange>,
}

impl UnreadableRanges {
    fn add(&mut self, range: UnreadableRange) {
        self.count += 1;
        if self.first.len() < RANGES_KEPT {
            self.first.push(range);
        }
    }
}

/// The newest entry of each key in the journals, with its sequence number; no value, if it is deleted.
pub(super) type JournaledRows = BTreeMap<Bytes, (u64, Option<Bytes>)>;

/// An entry of a key.
struct StoredEntry {
    key: Bytes,
    seqno: u64,
    /// None, if it is deleted.
    value: Option<Bytes>,
}

/// The entries of some tables one after the other, or of the journals.
struct EntrySource {
    entries: Box<dyn Iterator<Item = Result<StoredEntry, LsmError>>>,
    last: Option<Bytes>,
    is_behind_damage: bool,
}

impl EntrySource {
    fn next(&mut self, unreadable: &mut UnreadableRanges) -> Option<StoredEntry> {
        let entry = loop {
            match self.entries.next() {
                Some(Ok(entry)) => break Some(entry),
                None => break None,
                Some(Err(error)) => {
                    tracing::debug!(%error, "entries cannot be read");
                    self.is_behind_damage = true;
                }
            }
        };
        let key = entry.as_ref().map(|entry| entry.key.clone());
        if std::mem::take(&mut self.is_behind_damage) {
            unreadable.add(UnreadableRange { after: self.last.take(), before: key.clone() });
        }
        self.last = key;
        entry
    }
}

/// The next entry of a source, in a heap whose greatest is the first by key.
struct NextEntry {
    entry: StoredEntry,
    source: usize,
}

impl Ord for NextEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        // Of one key the newest first.
        let by_key = other.entry.key.cmp(&self.entry.key);
        by_key.then(self.entry.seqno.cmp(&other.entry.seqno))
    }
}

impl PartialOrd for NextEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for NextEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for NextEntry {}

/// The rows that can be read, ascending by key.
pub(super) struct ReadableRows {
    sources: Vec<EntrySource>,
    heads: BinaryHeap<NextEntry>,
    /// The key whose newest entry was read last.
    last: Option<Bytes>,
    pub(super) unreadable: UnreadableRanges,
}

impl ReadableRows {
    /// The rows of a keyspace, whose tables are read on their own where `is_damaged` says so by their numbers.
    pub(super) fn of_keyspace(
        tree: &Tree,
        keyspace: &Keyspace,
        journaled: JournaledRows,
        is_damaged: impl Fn(u64) -> bool,
    ) -> Self {
        let end = after_prefix(&[*keyspace.kinds.end()]);
        Self::between(tree, (&[*keyspace.kinds.start()], &end), journaled, is_damaged)
    }

    /// The same from one key to another one.
    pub(super) fn between(
        tree: &Tree,
        (start, end): (&[u8], &[u8]),
        mut journaled: JournaledRows,
        is_damaged: impl Fn(u64) -> bool,
    ) -> Self {
        journaled.retain(|key, _| start <= &**key && &**key < end);
        let journaled = journaled.into_iter();
        let journaled =
            journaled.map(|(key, (seqno, value))| Ok(StoredEntry { key, seqno, value }));
        let range = (Bound::Included(UserKey::from(start)), Bound::Excluded(UserKey::from(end)));
        let mut sources = vec![EntrySource::of(journaled)];
        for run in tree.handle.tree.current_version().iter_levels().flat_map(|level| level.iter()) {
            // One that is damaged need not be where its list has it.
            let (alone, sound): (Vec<_>, Vec<_>) =
                run.iter().cloned().partition(|table| is_damaged(table.id()));
            let alone = alone.into_iter().map(|table| vec![table]);
            for tables in alone.chain(std::iter::once(sound)) {
                let range = range.clone();
                let entries = tables.into_iter().flat_map(move |table| {
                    // Of each block at most one; but an index that cannot be read at all is one without end.
                    let mut errors_left = table.metadata.data_block_count;
                    let entries = table.range(range.clone()).take_while(move |entry| {
                        let is_tried = entry.is_ok() || errors_left > 0;
                        errors_left = errors_left.saturating_sub(u64::from(entry.is_err()));
                        is_tried
                    });
                    entries.map(|entry| {
                        let entry = entry?;
                        let value = (!entry.is_tombstone()).then(|| entry.value.into());
                        let (key, seqno) = (entry.key.user_key.into(), entry.key.seqno);
                        Ok(StoredEntry { key, seqno, value })
                    })
                });
                sources.push(EntrySource::of(entries));
            }
        }
        let mut rows = Self {
            heads: BinaryHeap::with_capacity(sources.len()),
            sources,
            last: None,
            unreadable: UnreadableRanges::default(),
        };
        (0..rows.sources.len()).for_each(|source| rows.advance(source));
        rows
    }

    fn advance(&mut self, source: usize) {
        let Some(entries) = self.sources.get_mut(source) else { return };
        if let Some(entry) = entries.next(&mut self.unreadable) {
            self.heads.push(NextEntry { entry, source });
        }
    }

    pub(super) fn next_row(&mut self) -> Option<Entry> {
        loop {
            let NextEntry { entry: StoredEntry { key, value, .. }, source } = self.heads.pop()?;
            self.advance(source);
            if self.last.as_ref() == Some(&key) {
                continue;
            }
            self.last = Some(key.clone());
            if let Some(value) = value {
                return Some(Entry { key, value });
            }
        }
    }
}

impl EntrySource {
    fn of(entries: impl Iterator<Item = Result<StoredEntry, LsmError>> + 'static) -> Self {
        Self { entries: Box::new(entries), last: None, is_behind_damage: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, seqno: u64, value: Option<&str>) -> StoredEntry {
        let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        StoredEntry { key: bytes(key), seqno, value: value.map(bytes) }
    }

    fn damage() -> Result<StoredEntry, LsmError> {
        Err(LsmError::Io(std::io::ErrorKind::InvalidData.into()))
    }

    /// The rows of these sources, and what of them cannot be read.
    fn merged(
        sources: Vec<Vec<Result<StoredEntry, LsmError>>>,
    ) -> (Vec<(String, String)>, UnreadableRanges) {
        let sources: Vec<_> =
            sources.into_iter().map(|entries| EntrySource::of(entries.into_iter())).collect();
        let mut rows = ReadableRows {
            heads: BinaryHeap::new(),
            sources,
            last: None,
            unreadable: UnreadableRanges::default(),
        };
        (0..rows.sources.len()).for_each(|source| rows.advance(source));
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let read = std::iter::from_fn(|| rows.next_row());
        let read = read.map(|row| (text(row.key), text(row.value))).collect();
        (read, rows.unreadable)
    }

    fn row(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn of_each_key_the_newest_entry_counts_whichever_source_has_it() {
        let old = vec![
            Ok(entry("a", 1, Some("old"))),
            Ok(entry("b", 2, Some("old"))),
            Ok(entry("c", 3, Some("old"))),
        ];
        let new = vec![
            Ok(entry("a", 9, Some("new"))),
            Ok(entry("a", 8, Some("between"))),
            Ok(entry("b", 9, None)),
        ];
        let expected = [row("a", "new"), row("c", "old")];

        let (rows, unreadable) = merged(vec![old, new]);

        assert_eq!(rows, expected);
        assert_eq!(unreadable, UnreadableRanges::default());
    }

    #[test]
    fn damage_of_one_source_hides_no_entry_beside_it_or_of_another_one() {
        let damaged = vec![
            damage(),
            Ok(entry("b", 1, Some("1"))),
            damage(),
            damage(),
            Ok(entry("f", 1, Some("1"))),
            damage(),
        ];
        let sound = ["a", "c", "d", "g"].map(|key| Ok(entry(key, 2, Some("2"))));

        let (rows, unreadable) = merged(vec![damaged, sound.into()]);

        let keys: Vec<_> = rows.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["a", "b", "c", "d", "f", "g"]);
        assert_eq!(unreadable.count, 3);
        let key = |key: &'static str| Some(Bytes::from_static(key.as_bytes()));
        let ranges = [(None, key("b")), (key("b"), key("f")), (key("f"), None)];
        let ranges = ranges.map(|(after, before)| UnreadableRange { after, before });
        assert_eq!(unreadable.first, ranges);
    }

    #[test]
    fn more_ranges_than_are_kept_are_counted() {
        let ranges = RANGES_KEPT as u64 + 5;
        let entries = (0..ranges)
            .flat_map(|number| [damage(), Ok(entry(&format!("{number:03}"), 1, Some("value")))]);

        let (rows, unreadable) = merged(vec![entries.collect()]);

        assert_eq!(rows.len() as u64, ranges);
        assert_eq!((unreadable.count, unreadable.first.len()), (ranges, RANGES_KEPT));
    }
}
