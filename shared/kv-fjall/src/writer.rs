//! Fills a new store in bulk: sorted rows straight into tables, without a journal. Changes of a log that follow them go
//! through the journal.
//!
//! The directory has no manifest until everything is in it and synced, and no `CREATING`, with which an engine would
//! make it anew: what an interrupted fill leaves is opened by no engine, and deleted by none.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fjall::{Database, PersistMode};

use super::backpressure::buffered_bytes;
use super::clean_shutdown::CleanShutdown;
use super::fill_error::FillError;
use super::inventory::DATABASE;
use super::logged_change::LoggedChange;
use super::options::{FjallOptions, OpenError};
use super::replay::ChangeReplay;
use super::shared::{Tree, error_text};
use super::{directory, failure, keyspace_rows, manifest, open, recovery, version_floor};
use trestle_kv::domain::Readable;
use trestle_kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use trestle_kv::{EngineError, Entry, Keyspace, Keyspaces};
use trestle_model::time::{Clock as _, SystemClock, Ticks};

/// Memory for blocks, in bytes, for the compactions that follow.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// A new store that is filled keyspace by keyspace, each in the order of its keys. Until [`StoreWriter::finish`] no
/// engine opens its directory; one that was dropped before is to be deleted. It is locked meanwhile.
pub struct StoreWriter {
    keyspaces: Keyspaces,
    fills: Vec<Fill>,
    /// Whether changes could not be applied.
    is_broken: bool,
    /// Dropped before the database, and the database before the lock.
    trees: Vec<Tree>,
    database: Database,
    path: PathBuf,
    _lock: File,
}

/// How far a keyspace is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fill {
    Empty,
    Begun,
    Whole,
}

impl StoreWriter {
    /// Begins a store with these keyspaces, in a directory that is empty, or absent and then made with its parents.
    ///
    /// # Errors
    /// [`OpenError::Manifest`] for a directory that holds something; [`OpenError::Options`], [`OpenError::Locked`],
    /// [`OpenError::Io`] and [`OpenError::Recovery`].
    pub fn create(path: &Path, keyspaces: Vec<Keyspace>) -> Result<Self, OpenError> {
        let io_failed = |source| OpenError::Io { path: path.to_owned(), source };
        let options = FjallOptions {
            cache_bytes: CACHE_BYTES,
            cached_files: 64,
            ..FjallOptions::new(path, keyspaces)
        };
        let keyspaces = Keyspaces::new(options.keyspaces.clone())
            .map_err(|reason| OpenError::Options { reason })?;
        failure::listen();
        fs::create_dir_all(path).map_err(io_failed)?;
        if let Some(entry) = fs::read_dir(path).map_err(io_failed)?.next() {
            let found = entry.map_err(io_failed)?.file_name();
            let reason =
                format!("a new store needs an empty directory: found=`{}`", found.display());
            return Err(OpenError::Manifest { path: path.to_owned(), reason });
        }
        let lock = directory::lock(path)?;
        directory::start_restoring(path).map_err(io_failed)?;
        let (database, trees) = open::open_database(&options, &[], open::WORKERS)?;
        let fills = vec![Fill::Empty; trees.len()];
        Ok(Self {
            keyspaces,
            fills,
            is_broken: false,
            trees,
            database,
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// Writes every row of a keyspace, ascending by key; how many there were. Rows are stored as they come, so memory
    /// is bounded by the biggest one. A keyspace that is not filled is empty. After an error, of the rows or of the
    /// writer, the store cannot be finished.
    ///
    /// # Errors
    /// The first error of the rows, or every kind of [`FillError`].
    pub fn fill<E: From<FillError>>(
        &mut self,
        keyspace: &str,
        rows: impl Iterator<Item = Result<Entry, E>>,
    ) -> Result<u64, E> {
        let found = self.keyspaces.list().iter().position(|found| found.name == keyspace);
        let unknown = || FillError::UnknownKeyspace { keyspace: keyspace.to_owned() };
        let index = found.ok_or_else(unknown)?;
        let (keyspace, tree) =
            self.keyspaces.list().get(index).zip(self.trees.get(index)).ok_or_else(unknown)?;
        let fill = self.fills.get_mut(index).ok_or_else(unknown)?;
        if std::mem::replace(fill, Fill::Begun) != Fill::Empty {
            return Err(FillError::Repeated { keyspace: keyspace.name }.into());
        }
        let count = fill_tree(tree, keyspace, rows)?;
        *fill = Fill::Whole;
        Ok(count)
    }

    /// Applies changes in their order to what was filled, later ones over earlier ones, whatever keyspace each is of. A
    /// keyspace that has one may not be filled any more. Blocks while flushes lag behind; memory is bounded by a few
    /// memtables and the biggest change. After an error the store cannot be finished, and some changes may be applied.
    ///
    /// # Errors
    /// [`FillError::Rejected`], [`FillError::TooBig`] and [`FillError::Apply`].
    pub fn apply(
        &mut self,
        changes: impl IntoIterator<Item = LoggedChange>,
    ) -> Result<(), FillError> {
        // Until they are all applied.
        let was_broken = std::mem::replace(&mut self.is_broken, true);
        let mut replay = ChangeReplay {
            keyspaces: &self.keyspaces,
            trees: &self.trees,
            database: &self.database,
            pending: BTreeMap::new(),
            pending_bytes: 0,
        };
        for change in changes {
            let index = replay.apply(change)?;
            if let Some(fill) = index.and_then(|index| self.fills.get_mut(index))
                && *fill == Fill::Empty
            {
                *fill = Fill::Whole;
            }
        }
        replay.write()?;
        self.is_broken = was_broken;
        Ok(())
    }

    /// The rows of a keyspace as they are now, as [`super::StoreReader::rows`] returns them.
    ///
    /// # Errors
    /// [`EngineError::Rejected`] for a keyspace that it was not created with. While it is iterated,
    /// [`EngineError::Unavailable`] and [`EngineError::Corrupt`].
    pub fn rows(
        &self,
        keyspace: &str,
        after: Option<&[u8]>,
    ) -> Result<impl Iterator<Item = Result<Entry, EngineError>> + Send + use<'_>, EngineError>
    {
        keyspace_rows::rows(&self.database, &self.keyspaces, &self.trees, keyspace, after)
    }

    /// Bytes in memtables now, with those that are flushed and not released yet.
    #[must_use]
    pub fn memtable_bytes(&self) -> u64 {
        self.trees.iter().map(buffered_bytes).sum()
    }

    /// Makes it a store that engines open. Its versions go on after `floor` and after the wall clock, whichever is
    /// later. Everything is on stable storage when it returns.
    ///
    /// # Errors
    /// [`OpenError::Manifest`] where a keyspace was not filled to its end, or changes were not applied to theirs;
    /// [`OpenError::Io`] and [`OpenError::Recovery`]. No engine opens the directory then, and it is to be deleted.
    pub fn finish(self, floor: Ticks) -> Result<(), OpenError> {
        let Self { keyspaces, fills, is_broken, trees, database, path, _lock, .. } = self;
        if is_broken {
            let reason = "changes were not applied to their end; delete the directory".to_owned();
            return Err(OpenError::Manifest { path, reason });
        }
        let mut by_name = keyspaces.list().iter().zip(&fills);
        if let Some((keyspace, _)) = by_name.find(|(_, fill)| **fill == Fill::Begun) {
            let reason = format!(
                "a keyspace was not filled to its end: keyspace=`{}`; delete the directory",
                keyspace.name
            );
            return Err(OpenError::Manifest { path, reason });
        }
        let failed = |error: fjall::Error| match error {
            fjall::Error::Io(source) => OpenError::Io { path: path.clone(), source },
            other => OpenError::Recovery { path: path.clone(), reason: error_text(&other) },
        };
        let mut batch = database.batch().durability(Some(PersistMode::SyncAll));
        version_floor::put(floor.max(SystemClock.now()), &mut batch, &trees);
        batch.commit().map_err(failed)?;
        database.persist(PersistMode::SyncAll).map_err(failed)?;
        drop(trees);
        drop(database);
        let io_failed = |source| OpenError::Io { path: path.clone(), source };
        recovery::sync_directories(&path.join(DATABASE)).map_err(io_failed)?;
        let mut closing = CleanShutdown::of(&path);
        closing.is_sound = true;
        drop(closing);
        directory::end_restoring(&path).map_err(io_failed)?;
        manifest::write(&path, keyspaces.list()).map_err(io_failed)
    }
}

fn fill_tree<E: From<FillError>>(
    tree: &Tree,
    keyspace: &Keyspace,
    rows: impl Iterator<Item = Result<Entry, E>>,
) -> Result<u64, E> {
    let name = keyspace.name;
    let failed =
        |error: fjall::Error| FillError::Write { keyspace: name, reason: error_text(&error) };
    let mut tables = None;
    let mut before = Bytes::new();
    let mut count = 0;
    for row in rows {
        let Entry { key, value } = row?;
        check(keyspace, &before, &key, &value)?;
        // Begun with the first row: without one it would leave a table that is empty.
        let tables = match &mut tables {
            Some(tables) => tables,
            none => none.insert(tree.handle.start_ingestion().map_err(failed)?),
        };
        // In memory of its own: the writer holds some keys for long, and this may be a part of something bigger.
        before = Bytes::copy_from_slice(&key);
        tables.write(before.clone(), value).map_err(failed)?;
        count += 1;
    }
    if let Some(tables) = tables {
        tables.finish().map_err(failed)?;
    }
    Ok(count)
}

fn check(keyspace: &Keyspace, before: &[u8], key: &[u8], value: &[u8]) -> Result<(), FillError> {
    let name = keyspace.name;
    let for_people = || Readable(key).to_string();
    if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
        let (key_bytes, value_bytes) = (key.len(), value.len());
        return Err(FillError::TooBig { keyspace: name, key_bytes, value_bytes });
    }
    if !key.first().is_some_and(|kind| keyspace.kinds.contains(kind)) {
        return Err(FillError::WrongKind { keyspace: name, key: for_people() });
    }
    // No key is empty, so the first one passes.
    if key <= before {
        return Err(FillError::Unordered { keyspace: name, key: for_people() });
    }
    Ok(())
}

impl std::fmt::Debug for StoreWriter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("StoreWriter").field("path", &self.path).finish_non_exhaustive()
    }
}
