//! Repair of a store whose tables are damaged: every row that can be read goes into a new store, which then takes the
//! place of the damaged one. That is kept as it is.
//!
//! The tables are read from a copy of links, since the database removes what it does not expect from a directory that
//! it opens. Damaged tables are part of it unless the database does not open them. The journals are read by ourselves:
//! the database leaves out what a later table shows to be in tables, also where the table with it is lost. A row that
//! a lost table deleted or replaced may be back in its earlier state.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fjall::{AbstractTree as _, Database};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::archive;
use super::fill_error::FillError;
use super::inventory::{CURRENT, DATABASE, DATABASE_LOCK, NAMES, VERSION};
use super::journal::{self, GroupReader, WholeRun};
use super::logged_change::LoggedChange;
use super::manifest::{self, ManifestVerdict};
use super::options::{FjallOptions, OpenError};
use super::readable_rows::{JournaledRows, ReadableRows, UnreadableRanges};
use super::shared::Tree;
use super::table_files::{self, DamagedFile, ListedTable, TABLES, TableList};
use super::writer::StoreWriter;
use super::{directory, failure, open, version_floor};
use trestle_kv::{Entry, Keyspace};
use trestle_model::time::Ticks;

/// Runs of a level, at most, where the levels are not known any more.
const RUNS_MAX: usize = 255;
/// Memory for blocks, in bytes: each is read once.
const CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// What a repair read of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SalvagedKeyspace {
    /// Its name.
    pub keyspace: &'static str,
    /// Rows that were read, and are in the new store.
    pub rows: u64,
    /// Ranges of keys that could not be read.
    pub unreadable: UnreadableRanges,
    /// Tables of which nothing could be read, relative to the directory.
    pub lost_tables: Vec<String>,
}

/// The store to repair.
pub(super) struct Salvage<'a> {
    pub(super) path: &'a Path,
    pub(super) keyspaces: &'a [Keyspace],
    pub(super) damaged: &'a [DamagedFile],
    /// What is whole of each journal.
    pub(super) journals: &'a [(u64, Vec<WholeRun>)],
    pub(super) rules: &'a RepairRules,
}

/// What the services change in a store that lost rows: the engine knows none of theirs.
#[derive(Debug, Clone)]
pub struct RepairRules {
    /// The row as a repaired store has it; none for one that it must not have.
    pub repaired: fn(Entry) -> Option<Entry>,
    /// Rows that are put in any case, such as the next of numbers that must not be given twice: what was stored of
    /// them may be lost, or be back in an earlier state.
    pub raised: Vec<Entry>,
}

/// A table: the number of its keyspace, and its own.
type TableNumber = (u64, u64);

/// What can be opened of the store.
struct OpenedTables {
    trees: Vec<Tree>,
    _database: Database,
    lost: BTreeSet<TableNumber>,
}

impl Salvage<'_> {
    /// Replaces the store by one with what can be read of it; where the damaged one is then. What an earlier repair
    /// left beside it is removed first, and what this one leaves at last.
    pub(super) fn run(&self) -> Result<(PathBuf, Vec<SalvagedKeyspace>), OpenError> {
        let io_failed = |source| self.failed(source);
        remove_drafts(self.path).map_err(io_failed)?;
        let done = self.fill().and_then(|keyspaces| {
            let originals = self.exchange().map_err(io_failed)?;
            Ok((originals, keyspaces))
        });
        let removed = remove_drafts(self.path).map_err(io_failed);
        done.and_then(|done| removed.map(|()| done))
    }

    /// Makes the new store beside the damaged one.
    fn fill(&self) -> Result<Vec<SalvagedKeyspace>, OpenError> {
        let (copy, repaired) = (beside(self.path, READABLE), beside(self.path, REPAIRED));
        let opened = self.open_copy(&copy)?;
        let mut writer = StoreWriter::create(&repaired, self.keyspaces.to_vec())?;
        let mut salvaged = Vec::new();
        let mut floor = Ticks::MIN;
        for ((number, keyspace), tree) in (1..).zip(self.keyspaces).zip(&opened.trees) {
            let journaled = self.journaled(number, keyspace, tree);
            let journaled = journaled.map_err(|source| self.failed(source))?;
            floor = floor.max(version_floor::readable(tree, &journaled));
            let is_damaged = |table| self.is_damaged(number, table);
            let mut rows = ReadableRows::of_keyspace(tree, keyspace, journaled, is_damaged);
            let next = std::iter::from_fn(|| rows.next_row());
            let next = next.filter_map(self.rules.repaired).map(Ok);
            let filled = writer.fill::<FillError>(keyspace.name, next);
            let lost = opened.lost.iter().filter(|(of, _)| *of == number);
            let file = |(_, table): &TableNumber| table_files::table_name(number, *table);
            salvaged.push(SalvagedKeyspace {
                keyspace: keyspace.name,
                rows: filled.map_err(|error| unwritten(&repaired, &error))?,
                unreadable: rows.unreadable,
                lost_tables: lost.map(file).collect(),
            });
        }
        let raised = self.rules.raised.iter().cloned().map(LoggedChange::Put);
        writer.apply(raised).map_err(|error| unwritten(&repaired, &error))?;
        writer.finish(floor)?;
        Ok(salvaged)
    }

    fn failed(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.to_owned(), source }
    }

    fn is_damaged(&self, number: u64, table: u64) -> bool {
        let is_damaged = |file: &DamagedFile| file.number == number && file.table == Some(table);
        self.damaged.iter().any(is_damaged)
    }

    /// The newest entries of a keyspace in the journals. Of one without damage only what is in no table: what its
    /// tables had before may have been removed without a word in the journals.
    fn journaled(
        &self,
        number: u64,
        keyspace: &Keyspace,
        tree: &Tree,
    ) -> io::Result<JournaledRows> {
        let is_damaged = self.damaged.iter().any(|file| file.number == number);
        let persisted = tree.handle.tree.get_highest_persisted_seqno().filter(|_| !is_damaged);
        let kinds = |kind: u8| kind == 0 || keyspace.kinds.contains(&kind);
        let mut rows = JournaledRows::new();
        for (journal, runs) in self.journals {
            let path = self.path.join(DATABASE).join(journal::file_name(*journal));
            for run in runs.iter().filter(|run| run.groups > 0) {
                let mut reader = GroupReader::new(File::open(&path)?, run.end);
                let mut at = run.start;
                while at < run.end {
                    let group = reader.read(at)?.map_err(|fault| {
                        io::Error::other(format!("a journal cannot be read: at=`{at}`, {fault:?}"))
                    })?;
                    at = group.end;
                    if persisted.is_some_and(|persisted| group.seqno <= persisted) {
                        continue;
                    }
                    let items = group.items.into_iter();
                    let items = items.filter(|item| item.key.first().is_some_and(|it| kinds(*it)));
                    for item in items {
                        let newest = rows.entry(item.key).or_default();
                        if newest.0 <= group.seqno {
                            *newest = (group.seqno, item.value);
                        }
                    }
                }
            }
        }
        Ok(rows)
    }

    /// Opens a copy with every damaged table that the database opens.
    fn open_copy(&self, copy: &Path) -> Result<OpenedTables, OpenError> {
        let lists = self.lists().map_err(|source| self.failed(source))?;
        let (mut lost, mut doubtful) = (BTreeSet::new(), Vec::new());
        for (number, list) in &lists {
            for table in
                list.tables().filter(|table| list.is_rebuilt || self.is_damaged(*number, *table))
            {
                let file = table_files::folder(&self.path.join(DATABASE), *number);
                let file = File::open(file.join(TABLES).join(table.to_string()));
                match file.and_then(|file| archive::has_whole_end(&file)) {
                    Ok(true) => doubtful.push((*number, table)),
                    _ => drop(lost.insert((*number, table))),
                }
            }
        }
        if let Ok(opened) = self.open_without(copy, &lists, &lost)? {
            return Ok(opened);
        }
        // Another reason than damage is one without them too.
        let every: BTreeSet<_> = lost.iter().chain(&doubtful).copied().collect();
        drop(self.open_without(copy, &lists, &every)??);
        // Which of them is not opened is found one by one: the error names none.
        for table in doubtful {
            let mut others = every.clone();
            others.remove(&table);
            if self.open_without(copy, &lists, &others)?.is_err() {
                lost.insert(table);
            }
        }
        self.open_without(copy, &lists, &lost)?
    }

    /// Opens a copy without some tables, and without the journals. The error of the database is the inner one.
    fn open_without(
        &self,
        copy: &Path,
        lists: &[(u64, KeyspaceList)],
        lost: &BTreeSet<TableNumber>,
    ) -> Result<Result<OpenedTables, OpenError>, OpenError> {
        let io_failed = |source| self.failed(source);
        remove(copy).map_err(io_failed)?;
        self.copy(copy, lists, lost).map_err(io_failed)?;
        let stored = match manifest::check(copy, self.keyspaces).map_err(io_failed)? {
            ManifestVerdict::Grown(names) => names,
            _ => self.keyspaces.iter().map(|keyspace| keyspace.name).collect(),
        };
        failure::listen();
        let options = FjallOptions {
            cache_bytes: CACHE_BYTES,
            cached_files: 64,
            min_free_bytes: 0,
            ..FjallOptions::new(copy, self.keyspaces.to_vec())
        };
        let opened = open::open_database(&options, &stored, open::WORKERS);
        Ok(opened.map(|(database, trees)| OpenedTables {
            trees,
            _database: database,
            lost: lost.clone(),
        }))
    }

    /// The tables of each keyspace.
    fn lists(&self) -> io::Result<Vec<(u64, KeyspaceList)>> {
        let source = self.path.join(DATABASE);
        let mut lists = Vec::new();
        for number in (NAMES..).take(self.keyspaces.len() + 1) {
            let folder = table_files::folder(&source, number);
            if folder.join(CURRENT).try_exists()? {
                lists.push((number, folder.clone(), TableList::read(&folder)?.ok()));
            }
        }
        let known = lists.iter().find_map(|(_, _, list)| list.clone());
        let found = lists.into_iter().map(|(number, folder, list)| {
            let list = match (list, &known) {
                (Some(list), _) => KeyspaceList { list, is_rebuilt: false },
                (None, Some(known)) => {
                    KeyspaceList { list: every_table(&folder, known)?, is_rebuilt: true }
                }
                (None, None) => return Err(io::ErrorKind::InvalidData.into()),
            };
            Ok((number, list))
        });
        found.collect()
    }

    /// Copies the store without some tables and without the journals: links for tables, and copies of the rest, which
    /// the database may change.
    fn copy(
        &self,
        copy: &Path,
        lists: &[(u64, KeyspaceList)],
        lost: &BTreeSet<TableNumber>,
    ) -> io::Result<()> {
        let (source, target) = (self.path.join(DATABASE), copy.join(DATABASE));
        fs::create_dir_all(&target)?;
        fs::copy(self.path.join(manifest::FILE), copy.join(manifest::FILE))?;
        fs::copy(source.join(VERSION), target.join(VERSION))?;
        File::create(target.join(DATABASE_LOCK))?;
        File::create(target.join(journal::file_name(0)))?;
        for (number, list) in lists {
            let lost =
                lost.iter().filter(|(of, _)| of == number).map(|(_, table)| *table).collect();
            let folders =
                (table_files::folder(&source, *number), table_files::folder(&target, *number));
            link_keyspace(&folders.0, &folders.1, &list.list, &lost)?;
        }
        Ok(())
    }

    /// Puts the new store in the place of the damaged one, at once, so that there is a store at any instant, and the
    /// damaged one is where it is kept.
    fn exchange(&self) -> io::Result<PathBuf> {
        let originals = free_name(self.path)?;
        fs::rename(beside(self.path, REPAIRED), &originals)?;
        let exchanged = renameat_with(CWD, &originals, CWD, self.path, RenameFlags::EXCHANGE);
        if let Err(error) = exchanged {
            remove(&originals)?;
            return Err(error.into());
        }
        if let Some(parent) = self.path.parent() {
            directory::sync(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
        }
        Ok(originals)
    }
}

/// The directories beside that of a store in which a repair works.
const READABLE: &str = "readable";
const REPAIRED: &str = "repaired";

/// Removes what a repair that did not end left beside a store: copies. A store that is whole may be the only one that
/// has a row, so it is kept as the originals are.
pub(super) fn remove_drafts(path: &Path) -> io::Result<()> {
    remove(&beside(path, READABLE))?;
    let repaired = beside(path, REPAIRED);
    if repaired.join(manifest::FILE).try_exists()? {
        return fs::rename(repaired, free_name(path)?);
    }
    remove(&repaired)
}

/// The first name `…-damaged-1`, `…-damaged-2` and so on beside a store that is not taken.
fn free_name(path: &Path) -> io::Result<PathBuf> {
    let mut number = 1_u64;
    loop {
        let name = beside(path, &format!("damaged-{number}"));
        if !name.try_exists()? {
            return Ok(name);
        }
        number += 1;
    }
}

/// A directory beside that of the store.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{what}"));
    path.with_file_name(name)
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The error of a new store that could not be written; the damaged one is as it was.
fn unwritten(path: &Path, error: &FillError) -> OpenError {
    let reason = format!("nothing was changed, the repaired store needs space of its own: {error}");
    OpenError::Io { path: path.to_owned(), source: io::Error::other(reason) }
}

/// The tables of a keyspace.
struct KeyspaceList {
    list: TableList,
    /// Whether its list is damaged, and this is every file of its folder.
    is_rebuilt: bool,
}

impl KeyspaceList {
    fn tables(&self) -> impl Iterator<Item = u64> {
        self.list.levels.iter().flatten().flatten().map(|table| table.id)
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
