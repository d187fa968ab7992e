//! The rows of an instant: those of a backup, and over them what was changed from then on.
//!
//! The changes are in a store of their own, in a directory for temporary files, so that memory is bounded however many
//! there are.

use std::{collections::BTreeMap, io};

use async_trait::async_trait;
use bytes::Bytes;
use tempfile::TempDir;
use trestle_command::errors::CliError;
use trestle_kv::{
    Direction, Engine as _, EngineError, Entry, Keyspace, Scan, ScanLimit, Snapshot, Span,
    after_key,
};
use trestle_kv_fjall::{FjallEngine, FjallOptions, LoggedChange, StoreWriter};

use super::rows::{BackedUpRows, fill};
use crate::{
    coverage::RestorePlan,
    failure::broken,
    replay::{Replayed, not_restored, replay},
    repository::Repository,
    restore::{blocking, finish},
    rules::StoreRules,
};

/// The store of changes, in the directory of it.
const CHANGES: &str = "changes";
/// Memory for blocks of changes, in bytes.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// The last byte of a value in the store of changes: the key has what comes before it.
const PRESENT: u8 = 1;
/// The same: the key was removed.
const REMOVED: u8 = 0;

/// The rows of a backup under those that were changed.
pub(super) struct ChangedRows {
    base: BackedUpRows,
    /// What was discarded of the backup: in order, and apart from each other.
    discarded: Vec<Span>,
    changes: ChangeStore,
}

/// The newest state of each key that was changed.
struct ChangeStore {
    /// Dropped before its directory.
    engine: FjallEngine,
    _directory: TempDir,
}

impl ChangedRows {
    /// Reads the windows of a plan.
    ///
    /// # Errors
    /// A window that is needed and cannot be used, or a directory for temporary files that cannot be written.
    pub(super) async fn over(
        base: BackedUpRows,
        repository: &Repository,
        plan: &RestorePlan<'_>,
        rules: &StoreRules,
    ) -> Result<(Self, Replayed), CliError> {
        let (writer, directory) = begin(&rules.keyspaces).await?;
        let (writer, mut replayed) = replay(repository, plan, rules, (writer, marked)).await?;
        finish(writer, plan.to).await?;
        let changes = ChangeStore::open(directory, &rules.keyspaces).await?;
        let discarded = joined(std::mem::take(&mut replayed.discarded));
        Ok((Self { base, discarded, changes }, replayed))
    }

    /// Whether the backup's row at a key was discarded.
    fn is_discarded(&self, key: &[u8]) -> bool {
        let after = self.discarded.partition_point(|span| span.start <= key);
        let span = after.checked_sub(1).and_then(|index| self.discarded.get(index));
        span.is_some_and(|span| key < span.end)
    }
}

impl ChangeStore {
    async fn open(directory: TempDir, keyspaces: &[Keyspace]) -> Result<Self, CliError> {
        let options = FjallOptions {
            cache_bytes: CACHE_BYTES,
            cached_files: 64,
            // Nothing is written to it any more.
            min_free_bytes: 0,
            ..FjallOptions::new(directory.path().join(CHANGES), keyspaces.to_vec())
        };
        let engine = blocking(move || FjallEngine::open(options)).await?;
        let engine = engine.map_err(|error| broken(&error))?;
        Ok(Self { engine, _directory: directory })
    }
}

/// Begins a store of changes, in a directory for temporary files.
async fn begin(keyspaces: &[Keyspace]) -> Result<(StoreWriter, TempDir), CliError> {
    let directory = tempfile::Builder::new().prefix("trestle-backup-").tempdir();
    let directory = directory.map_err(cannot_write)?;
    let (path, keyspaces) = (directory.path().join(CHANGES), keyspaces.to_vec());
    let writer = blocking(move || StoreWriter::create(&path, keyspaces)).await?;
    Ok((writer.map_err(|error| not_restored(&error))?, directory))
}

fn cannot_write(error: io::Error) -> CliError {
    let directory = std::env::temp_dir();
    CliError::input(format!(
        "cannot write changes to a directory for temporary files, see TMPDIR: `{}`",
        directory.display()
    ))(error)
}

/// A change as the store of changes has it, which remembers what was removed.
fn marked(change: LoggedChange) -> LoggedChange {
    match change {
        LoggedChange::Put(Entry { key, value }) => {
            let value = [&*value, &[PRESENT]].concat().into();
            LoggedChange::Put(Entry { key, value })
        }
        LoggedChange::Delete(key) => {
            LoggedChange::Put(Entry { key, value: Bytes::from_static(&[REMOVED]) })
        }
        discard @ LoggedChange::Discard(_) => discard,
    }
}

/// The value that was marked; none if the key was removed.
fn unmarked(mut value: Bytes) -> Option<Bytes> {
    let is_present = value.last() == Some(&PRESENT);
    value.truncate(value.len().saturating_sub(1));
    is_present.then_some(value)
}

/// The same spans in their order, those that meet as one.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by(|a, b| a.start.cmp(&b.start));
    spans.dedup_by(|later, before| {
        let meets = later.start <= before.end;
        if meets && later.end > before.end {
            before.end = later.end.clone();
        }
        meets
    });
    spans
}

#[async_trait]
impl Snapshot for ChangedRows {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        match self.changes.engine.get(key).await? {
            Some(changed) => Ok(unmarked(changed)),
            None if self.is_discarded(key) => Ok(None),
            None => self.base.get(key).await,
        }
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        let (mut scan, mut rest) = (Scan { entries: Vec::new(), more: false }, span.clone());
        loop {
            let base = self.base.scan(&rest, limit).await?;
            let changed = self.changes.engine.scan(&rest, limit).await?;
            // What follows the end of either one is not known yet.
            let ends = [&base, &changed].into_iter().filter(|scan| scan.more);
            let ends = ends.filter_map(|scan| scan.entries.last().map(|row| row.key.clone()));
            let end = match span.direction {
                Direction::Forward => ends.min(),
                Direction::Backward => ends.max(),
            };
            let kept = base.entries.into_iter().filter(|row| !self.is_discarded(&row.key));
            let mut rows: BTreeMap<_, _> = kept.map(|row| (row.key, Some(row.value))).collect();
            let changed = changed.entries.into_iter();
            rows.extend(changed.map(|row| (row.key, unmarked(row.value))));
            let rows = rows.into_iter().filter_map(|(key, value)| {
                let value = value?;
                Some(Entry { key, value })
            });
            let is_full = match span.direction {
                Direction::Forward => {
                    let known = rows.filter(|row| end.as_ref().is_none_or(|end| row.key <= *end));
                    fill(&mut scan, known, limit)
                }
                Direction::Backward => {
                    let known = rows.filter(|row| end.as_ref().is_none_or(|end| row.key >= *end));
                    fill(&mut scan, known.rev(), limit)
                }
            };
            match end {
                Some(end) if !is_full => match span.direction {
                    Direction::Forward => rest.start = after_key(&end).into(),
                    Direction::Backward => rest.end = end,
                },
                _ => return Ok(scan),
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The rows of a backup, and changes over them.
    pub(in super::super) async fn changed(
        base: BackedUpRows,
        changes: Vec<LoggedChange>,
        keyspaces: &[Keyspace],
    ) -> ChangedRows {
        let (mut writer, directory) = begin(keyspaces).await.unwrap();
        let discarded = changes.iter().filter_map(|change| match change {
            LoggedChange::Discard(span) => Some(span.clone()),
            _ => None,
        });
        let discarded = joined(discarded.collect());
        writer.apply(changes.into_iter().map(marked)).unwrap();
        finish(writer, trestle_model::time::Ticks::MIN).await.unwrap();
        let changes = ChangeStore::open(directory, keyspaces).await.unwrap();
        ChangedRows { base, discarded, changes }
    }

    #[test]
    fn a_change_is_remembered_as_a_value_and_as_none() {
        let put = |value: &'static [u8]| {
            let row = Entry { key: Bytes::from_static(b"k"), value: Bytes::from_static(value) };
            LoggedChange::Put(row)
        };
        let value = |change| match marked(change) {
            LoggedChange::Put(row) => unmarked(row.value),
            other => panic!("{other:?}"),
        };
        assert_eq!(value(put(b"abc")), Some(Bytes::from_static(b"abc")));
        assert_eq!(value(put(b"")), Some(Bytes::new()));
        assert_eq!(value(LoggedChange::Delete(Bytes::from_static(b"k"))), None);
        let discard = LoggedChange::Discard(Span::new("a", "b"));
        assert_eq!(marked(discard.clone()), discard);
        assert_eq!(unmarked(Bytes::new()), None, "no value of the store is empty");
    }

    #[test]
    fn spans_that_meet_are_one() {
        let spans = |spans: &[(&'static str, &'static str)]| -> Vec<Span> {
            spans.iter().map(|(start, end)| Span::new(*start, *end)).collect()
        };
        let found = joined(spans(&[("m", "n"), ("a", "e"), ("b", "c"), ("e", "f"), ("g", "h")]));
        assert_eq!(found, spans(&[("a", "f"), ("g", "h"), ("m", "n")]));
        assert_eq!(joined(Vec::new()), Vec::new());
    }
}
