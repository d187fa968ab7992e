//! Repair of a store whose tables are damaged: every row that can be read goes into a new store, which then takes the
//! place of the damaged one. That is kept as it is.
//!
//! The rows are read from a copy of links, since the database removes what it does not expect from a directory that it
//! opens. Damaged tables are part of it as far as the database opens it with them; else it does without. So a row that
//! a lost table deleted or replaced may be back in its earlier state.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use fjall::{AbstractTree as _, Readable as _, UserKey};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::inventory::{CURRENT, DATABASE, DATABASE_LOCK, NAMES, VERSION};
use super::options::OpenError;
use super::reader::StoreReader;
use super::repair::RepairPlan;
use super::shared::{EngineState, Tree};
use super::table_files::{self, DamagedFile, ListedTable, TABLES, TableList};
use super::writer::{FillError, StoreWriter};
use super::{directory, journal};
use trestle_kv::{Entry, Keyspace, after_prefix};

/// Runs of a level, at most, where the levels are not known any more.
const RUNS_MAX: usize = 255;

/// What a repair read of a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SalvagedKeyspace {
    /// Its name.
    pub keyspace: &'static str,
    /// Rows that were read, and are in the new store.
    pub rows: u64,
    /// Ranges of keys that could not be read.
    pub gaps: u64,
}

/// The store to repair.
pub(super) struct Salvage<'a> {
    pub(super) path: &'a Path,
    pub(super) keyspaces: &'a [Keyspace],
    pub(super) damaged: &'a [DamagedFile],
}

impl Salvage<'_> {
    /// Replaces the store by one with what can be read of it; where the damaged one is then. Both directories beside it
    /// that an earlier repair left are removed first.
    pub(super) fn run(&self) -> Result<(PathBuf, Vec<SalvagedKeyspace>), OpenError> {
        let (copy, repaired) = (self.beside("readable"), self.beside("repaired"));
        for folder in [&copy, &repaired] {
            remove(folder).map_err(|source| self.failed(source))?;
        }
        let reader = self.open_copy(&copy)?;
        let mut writer = StoreWriter::create(&repaired, self.keyspaces.to_vec())?;
        let filled = (self.keyspaces.iter())
            .map(|keyspace| fill(&mut writer, &reader, keyspace))
            .collect::<Result<Vec<_>, FillError>>();
        let keyspaces = filled.map_err(|error| OpenError::Recovery {
            path: repaired.clone(),
            reason: error.to_string(),
        })?;
        writer.finish(reader.version_floor())?;
        drop(reader);
        let originals = self.exchange(&repaired).map_err(|source| self.failed(source))?;
        remove(&copy).map_err(|source| self.failed(source))?;
        Ok((originals, keyspaces))
    }

    fn failed(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.to_owned(), source }
    }

    /// A directory beside that of the store.
    fn beside(&self, what: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!("-{what}"));
        self.path.with_file_name(name)
    }

    /// Opens a copy with the damaged tables, or without them.
    fn open_copy(&self, copy: &Path) -> Result<StoreReader, OpenError> {
        let missing = |file: &&DamagedFile| file.bytes == 0;
        for damaged in
            [self.damaged.iter().filter(missing).collect(), self.damaged.iter().collect()]
        {
            let damaged: Vec<&DamagedFile> = damaged;
            remove(copy).map_err(|source| self.failed(source))?;
            self.copy(copy, &damaged).map_err(|source| self.failed(source))?;
            RepairPlan::of_journals(copy, self.keyspaces)?.accept_loss()?;
            match StoreReader::open(copy, self.keyspaces.to_vec()) {
                Err(_) if damaged.len() < self.damaged.len() => {}
                opened => return opened,
            }
        }
        let reason = "it cannot be read without its damaged tables".to_owned();
        Err(OpenError::Damaged { path: self.path.to_owned(), reason })
    }

    /// Copies the store without some tables: links for tables, and copies of the rest, which the database may change.
    fn copy(&self, copy: &Path, left_out: &[&DamagedFile]) -> io::Result<()> {
        let (source, target) = (self.path.join(DATABASE), copy.join(DATABASE));
        fs::create_dir_all(&target)?;
        for entry in fs::read_dir(self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), copy.join(entry.file_name()))?;
            }
        }
        fs::copy(source.join(VERSION), target.join(VERSION))?;
        File::create(target.join(DATABASE_LOCK))?;
        for number in journal::list(&source)? {
            let name = journal::file_name(number);
            fs::copy(source.join(&name), target.join(&name))?;
        }
        let numbers = (NAMES..).take(self.keyspaces.len() + 1);
        let mut lists = Vec::new();
        for number in numbers {
            let folder = table_files::folder(&source, number);
            if folder.join(CURRENT).try_exists()? {
                lists.push((number, folder.clone(), TableList::read(&folder)?.ok()));
            }
        }
        let known = lists.iter().find_map(|(_, _, list)| list.clone());
        for (number, folder, list) in lists {
            let list = match (list, &known) {
                (Some(list), _) => list,
                (None, Some(known)) => every_table(&folder, known)?,
                (None, None) => return Err(io::ErrorKind::InvalidData.into()),
            };
            let left_out = left_out.iter().filter(|file| file.number == number);
            let left_out: BTreeSet<u64> = left_out.filter_map(|file| file.table).collect();
            link_keyspace(&folder, &table_files::folder(&target, number), &list, &left_out)?;
        }
        Ok(())
    }

    /// Puts the new store in the place of the damaged one, at once, so that there is a store at any instant.
    fn exchange(&self, repaired: &Path) -> io::Result<PathBuf> {
        renameat_with(CWD, repaired, CWD, self.path, RenameFlags::EXCHANGE)?;
        let mut number = 1_u64;
        let originals = loop {
            let originals = self.beside(&format!("damaged-{number}"));
            if !originals.try_exists()? {
                break originals;
            }
            number += 1;
        };
        fs::rename(repaired, &originals)?;
        if let Some(parent) = self.path.parent() {
            directory::sync(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
        }
        Ok(originals)
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The tables of a keyspace whose list is damaged: every file, each as a run of its own. Reads of all rows find the
/// newest state of each in any order of runs.
fn every_table(folder: &Path, known: &TableList) -> io::Result<TableList> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(folder.join(TABLES))? {
        if let Some(id) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            runs.push(vec![ListedTable { id, checksum: 0, global_seqno: 0 }]);
        }
    }
    let mut levels: Vec<Vec<_>> = runs.chunks(RUNS_MAX).map(<[_]>::to_vec).collect();
    if levels.len() > known.levels.len() {
        return Err(io::Error::other("too many tables for a list"));
    }
    levels.resize(known.levels.len(), Vec::new());
    Ok(TableList { version: known.version, sections: known.sections.clone(), levels })
}

fn link_keyspace(
    from: &Path,
    to: &Path,
    list: &TableList,
    left_out: &BTreeSet<u64>,
) -> io::Result<()> {
    fs::create_dir_all(to.join(TABLES))?;
    let mut list = list.clone();
    for runs in &mut list.levels {
        runs.iter_mut().for_each(|run| run.retain(|table| !left_out.contains(&table.id)));
        runs.retain(|run| !run.is_empty());
    }
    for table in list.levels.iter().flatten().flatten() {
        let name = table.id.to_string();
        let (from, to) = (from.join(TABLES).join(&name), to.join(TABLES).join(&name));
        // Not every file system has links.
        if fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to)?;
        }
    }
    list.write(to)
}

fn fill(
    writer: &mut StoreWriter,
    reader: &StoreReader,
    keyspace: &Keyspace,
) -> Result<SalvagedKeyspace, FillError> {
    let unknown = || FillError::UnknownKeyspace { keyspace: keyspace.name.to_owned() };
    let state = reader.state();
    let mut trees = state.keyspaces.list().iter().zip(&state.trees);
    let (_, tree) = trees.find(|(found, _)| found.name == keyspace.name).ok_or_else(unknown)?;
    let mut rows = ReadableRows::new(state, tree, keyspace);
    let count = writer.fill(keyspace.name, std::iter::from_fn(|| rows.next_row().map(Ok)))?;
    Ok(SalvagedKeyspace { keyspace: keyspace.name, rows: count, gaps: rows.gaps })
}

/// A range of keys that is still to be read.
type KeyBounds = (Bound<UserKey>, Bound<UserKey>);

/// The rows of a keyspace that can be read, ascending.
///
/// An iterator ends at damage, and no key behind it is known. So the keys are divided where tables begin; of a part
/// with damage, what is before it is read forwards, and how far it can be read from its end is found backwards.
struct ReadableRows<'a> {
    state: &'a EngineState,
    tree: &'a Tree,
    parts: VecDeque<KeyBounds>,
    rows: Option<fjall::Iter>,
    /// The end of the part that is read, and the last key that was read.
    end: Bound<UserKey>,
    last: Bound<UserKey>,
    /// Whether it is read behind its damage.
    is_resumed: bool,
    gaps: u64,
}

impl<'a> ReadableRows<'a> {
    fn new(state: &'a EngineState, tree: &'a Tree, keyspace: &Keyspace) -> Self {
        let start = UserKey::from([*keyspace.kinds.start()].as_slice());
        let end = UserKey::from(after_prefix(&[*keyspace.kinds.end()]));
        let version = tree.handle.tree.current_version();
        let begins = version.iter_tables().map(|table| table.metadata.key_range.min().clone());
        let mut begins: BTreeSet<UserKey> = begins.filter(|key| *key < end).collect();
        begins.retain(|key| *key > start);
        let starts = std::iter::once(start).chain(begins.iter().cloned());
        let ends = begins.iter().cloned().chain([end.clone()]);
        let parts = starts.zip(ends);
        let parts = parts.map(|(start, end)| (Bound::Included(start), Bound::Excluded(end)));
        let parts = parts.collect();
        let (end, last) = (Bound::Excluded(end), Bound::Unbounded);
        Self { state, tree, parts, rows: None, end, last, is_resumed: false, gaps: 0 }
    }

    fn next_row(&mut self) -> Option<Entry> {
        loop {
            let Some(rows) = &mut self.rows else {
                let (start, end) = self.parts.pop_front()?;
                self.rows = Some(self.read(start.clone(), end.clone()));
                (self.last, self.end, self.is_resumed) = (start, end, false);
                continue;
            };
            match rows.next().map(fjall::Guard::into_inner) {
                Some(Ok((key, value))) => {
                    self.last = Bound::Excluded(key.clone());
                    return Some(Entry { key: key.into(), value: value.into() });
                }
                None => self.rows = None,
                Some(Err(error)) => {
                    tracing::debug!(%error, "rows cannot be read");
                    self.gaps += 1;
                    let behind = (!self.is_resumed).then(|| self.first_behind()).flatten();
                    self.rows = behind.map(|key| self.read(Bound::Included(key), self.end.clone()));
                    self.is_resumed = true;
                }
            }
        }
    }

    fn read(&self, start: Bound<UserKey>, end: Bound<UserKey>) -> fjall::Iter {
        self.state.database.snapshot().range(&self.tree.handle, (start, end))
    }

    /// The first key behind the last damage of the part that is read.
    fn first_behind(&self) -> Option<UserKey> {
        let rows = self.read(self.last.clone(), self.end.clone()).rev();
        let keys = rows.map_while(|row| row.into_inner().ok().map(|(key, _)| key));
        keys.last()
    }
}
