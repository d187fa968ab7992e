//! Repair of a directory that is rejected because of its journals, or whose tables are damaged: what would be lost is
//! shown first, and only then, and only if it is accepted, removed. The originals are kept.
//!
//! Whole groups behind damage are kept. A group is all or nothing, so no change is torn, but later
//! changes were decided on what is lost.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::clean_shutdown::{self, MarkerVerdict};
use super::directory;
use super::inventory::{self, DATABASE};
use super::journal::{self, JournalExam, WholeRun};
use super::last_durability;
use super::manifest::{self, ManifestVerdict};
use super::options::OpenError;
use super::recovery::{self, JournalSet};
use super::salvage::{self, RepairRules, Salvage, SalvagedKeyspace};
use super::table_files::{self, DamagedFile, FileCheck};
use trestle_kv::{Keyspace, Keyspaces};

/// A directory that was examined for repair. It stays locked until this is dropped.
#[derive(Debug)]
pub struct RepairPlan {
    path: PathBuf,
    losses: Vec<JournalLoss>,
    marker: Option<String>,
    /// Sealed journals that are empty.
    emptied: Vec<u64>,
    is_empty_journal_needed: bool,
    keyspaces: Vec<Keyspace>,
    damaged: Vec<DamagedFile>,
    /// What is whole of each journal.
    journals: Vec<(u64, Vec<WholeRun>)>,
    _lock: File,
}

/// What a repair takes out of one journal.
#[derive(Debug, Clone)]
pub struct JournalLoss {
    /// The journal, relative to the directory.
    pub file: String,
    /// The first byte that belongs to no whole group.
    pub offset: u64,
    /// Bytes that are lost.
    pub bytes: u64,
    /// Whole groups before them, in this journal.
    pub groups_before: u64,
    /// Whole groups behind them, in this journal; they are kept.
    pub groups_after: u64,
    /// At most so many groups are lost, by the sequence numbers around them; `None` if they are not known.
    pub groups_lost_max: Option<u64>,
    /// Rows that can still be recognised in what is lost, by keyspace.
    pub rows: String,
    /// Whether no group follows in any journal and the directory was not closed: such a torn end is dropped by the
    /// next start anyway, as it was never acknowledged.
    pub is_torn_end: bool,
    number: u64,
    kept: Vec<WholeRun>,
}

/// What a repair did.
#[derive(Debug)]
pub struct RepairDone {
    /// The folder with the originals.
    pub originals: PathBuf,
    /// What was read of each keyspace, where tables were damaged; else nothing.
    pub salvaged: Vec<SalvagedKeyspace>,
}

impl RepairPlan {
    /// Examines a directory and changes nothing in it. Reads every file once.
    ///
    /// # Errors
    /// The directory is locked, holds no store of these keyspaces, or lacks files that no repair brings back.
    pub fn examine(path: &Path, keyspaces: &[Keyspace]) -> Result<Self, OpenError> {
        let plan = Self::of_journals(path, keyspaces)?;
        let damaged = table_files::damaged(&path.join(DATABASE), keyspaces, FileCheck::Whole);
        let damaged = damaged.map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        if let Some(names) = damaged.iter().find(|file| file.keyspace.is_none()) {
            let reason = format!("{names}; a repair cannot bring it back; restore a backup");
            return Err(OpenError::Damaged { path: path.to_owned(), reason });
        }
        Ok(Self { damaged, ..plan })
    }

    /// Examines the journals, and no tables.
    fn of_journals(path: &Path, keyspaces: &[Keyspace]) -> Result<Self, OpenError> {
        let io_failed = |source| OpenError::Io { path: path.to_owned(), source };
        let unfit = |reason: &str| OpenError::Manifest { path: path.into(), reason: reason.into() };
        let routes = Keyspaces::new(keyspaces.to_vec());
        let routes = routes.map_err(|reason| OpenError::Options { reason })?;
        if !path.is_dir() {
            return Err(unfit("there is no such directory"));
        }
        let lock = directory::lock(path)?;
        let stored = match manifest::check(path, keyspaces).map_err(io_failed)? {
            ManifestVerdict::Same => keyspaces.len(),
            ManifestVerdict::Grown(names) => names.len(),
            ManifestVerdict::Absent => return Err(unfit("there is no store: no manifest")),
            ManifestVerdict::Unfit(reason) => return Err(unfit(&reason)),
        };
        let database = path.join(DATABASE);
        if let Some(missing) = inventory::missing(&database, stored).map_err(io_failed)? {
            let reason = format!("{missing}; a repair cannot bring it back; restore a backup");
            return Err(OpenError::Damaged { path: path.to_owned(), reason });
        }
        let marker = match clean_shutdown::check(path, &database).map_err(io_failed)? {
            MarkerVerdict::Damaged(reason) => Some(reason),
            MarkerVerdict::Intact | MarkerVerdict::Absent => None,
        };
        let journals = JournalSet::read(&database).map_err(io_failed)?;
        let is_in_order = last_durability::was_in_order(path).map_err(io_failed)?;
        let losses = losses(&journals, is_in_order && marker.is_none(), marker.is_some(), &routes);
        let kept = |(number, exam): &(u64, JournalExam)| {
            let loss = losses.iter().find(|loss| loss.number == *number);
            (*number, loss.map_or_else(|| vec![exam.whole], |loss| loss.kept.clone()))
        };
        Ok(Self {
            journals: journals.exams.iter().map(kept).collect(),
            path: path.to_owned(),
            losses,
            emptied: journals.emptied(),
            is_empty_journal_needed: journals.exams.is_empty(),
            marker,
            keyspaces: keyspaces.to_vec(),
            damaged: Vec::new(),
            _lock: lock,
        })
    }

    /// Files of keyspaces that are damaged. Of these, what can be read is kept.
    #[must_use]
    pub fn damaged_files(&self) -> &[DamagedFile] {
        &self.damaged
    }

    /// What would be lost, by journal.
    #[must_use]
    pub fn losses(&self) -> &[JournalLoss] {
        &self.losses
    }

    /// Why the directory is rejected beside that: the journals are not as a clean shutdown left them, or there is none.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        let missing = self.is_empty_journal_needed;
        let missing = missing.then(|| format!("every journal is missing: file=`{DATABASE}/*.jnl`"));
        let emptied = || self.emptied.first().map(|number| recovery::emptied(*number));
        self.marker.clone().or(missing).or_else(emptied)
    }

    /// Whether the directory is rejected as it is.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        !self.damaged.is_empty()
            || self.reason().is_some()
            || self.losses.iter().any(|loss| !loss.is_torn_end)
    }

    /// Takes out what is lost. The originals of every changed file are kept in a new folder in the directory; where
    /// tables are damaged, the whole directory is kept beside the new one. It can be repeated after a crash at any
    /// instant.
    ///
    /// # Errors
    /// The file system failed, or the store cannot be read even without its damaged tables.
    pub fn accept_loss(self, rules: &RepairRules) -> Result<RepairDone, OpenError> {
        if !self.damaged.is_empty() {
            let Self { path, keyspaces, damaged, journals, .. } = &self;
            let (originals, salvaged) =
                Salvage { path, keyspaces, damaged, journals, rules }.run()?;
            return Ok(RepairDone { originals, salvaged });
        }
        let accepted = self.replace_files();
        let originals =
            accepted.map_err(|source| OpenError::Io { path: self.path.clone(), source })?;
        Ok(RepairDone { originals, salvaged: Vec::new() })
    }

    /// Removes what repairs that were killed left beside the directory: copies, and no originals.
    ///
    /// # Errors
    /// The file system failed.
    pub fn remove_drafts(&self) -> Result<(), OpenError> {
        let removed = salvage::remove_drafts(&self.path);
        removed.map_err(|source| OpenError::Io { path: self.path.clone(), source })
    }

    fn replace_files(&self) -> io::Result<PathBuf> {
        let database = self.path.join(DATABASE);
        let originals = make_folder(&self.path)?;
        for loss in &self.losses {
            let path = database.join(journal::file_name(loss.number));
            let draft = journal::copy_runs(&path, &loss.kept)?;
            keep(&path, &originals)?;
            fs::rename(draft, path)?;
        }
        for number in &self.emptied {
            close_gap(&database, *number, &originals)?;
        }
        if self.is_empty_journal_needed {
            // As after a rotation; numbers of journals are never used twice while one is there.
            File::create(database.join(journal::file_name(0)))?.sync_all()?;
        }
        directory::sync(&database)?;
        // At last: without it the next start would take what is missing for the end of a crash.
        if self.marker.is_some() {
            keep(&self.path.join(clean_shutdown::FILE), &originals)?;
            clean_shutdown::take(&self.path)?;
        }
        Ok(originals)
    }
}

/// Removes an empty journal, and renumbers those before it, so that no number is left out.
fn close_gap(database: &Path, number: u64, originals: &Path) -> io::Result<()> {
    let path = |number| database.join(journal::file_name(number));
    keep(&path(number), originals)?;
    fs::remove_file(path(number))?;
    let before = journal::list(database)?.into_iter().filter(|before| *before < number);
    for before in before.rev() {
        fs::rename(path(before), path(before + 1))?;
    }
    Ok(())
}

fn losses(
    journals: &JournalSet,
    is_in_order: bool,
    was_closed: bool,
    keyspaces: &Keyspaces,
) -> Vec<JournalLoss> {
    let loss = |(index, (number, exam)): (usize, &(u64, JournalExam))| {
        let damage = exam.damage.as_ref()?;
        let is_followed = journals.groups_behind(index) > 0;
        // Groups in no order are cut at the damage, as by a start.
        let keeps_after = is_in_order || was_closed || is_followed;
        let after = if keeps_after { damage.after.as_slice() } else { &[] };
        let kept_after: u64 = after.iter().map(|run| run.end - run.start).sum();
        let lost = groups_lost_max(journals, index, after);
        Some(JournalLoss {
            file: format!("{DATABASE}/{}", journal::file_name(*number)),
            offset: exam.whole.end,
            bytes: exam.written - exam.whole.end - kept_after,
            groups_before: exam.whole.groups,
            groups_after: after.iter().map(|run| run.groups).sum(),
            groups_lost_max: lost,
            rows: damage.rows.by_keyspace(keyspaces),
            is_torn_end: after.is_empty() && !damage.is_undecided && !is_followed && !was_closed,
            number: *number,
            kept: std::iter::once(exam.whole).chain(after.iter().copied()).collect(),
        })
    };
    journals.exams.iter().enumerate().filter_map(loss).collect()
}

/// The number of groups that may have been between the groups that are kept: of a journal, of the last before it and of
/// the first behind it. `None` if what is lost has no such group on one side.
fn groups_lost_max(journals: &JournalSet, index: usize, after: &[WholeRun]) -> Option<u64> {
    let runs = |exam: &JournalExam| (exam.whole.groups > 0).then_some(exam.whole.seqnos);
    let (_, exam) = journals.exams.get(index)?;
    let others = |index: Option<usize>| Some(&journals.exams.get(index?)?.1);
    let before = others(index.checked_sub(1)).and_then(JournalExam::last_seqno);
    let behind = others(index.checked_add(1)).and_then(runs).map(|seqnos| seqnos.0);
    let end = after.last().map_or(exam.whole.end, |run| run.end);
    let is_open_before = before.is_none() && exam.whole.groups == 0;
    if is_open_before || (behind.is_none() && end < exam.written) {
        return None;
    }
    let kept = runs(exam).into_iter().chain(after.iter().map(|run| run.seqnos));
    // The last of each run, and the first of the next.
    let ends = before.into_iter().chain(kept.clone().map(|(_, last)| last));
    let starts = kept.map(|(first, _)| first).skip(usize::from(before.is_none())).chain(behind);
    let gaps = ends.zip(starts).map(|(end, start)| start.saturating_sub(end.saturating_add(1)));
    gaps.reduce(u64::saturating_add)
}

/// The first folder `damaged-1`, `damaged-2` and so on that is not there.
fn make_folder(directory: &Path) -> io::Result<PathBuf> {
    let mut number = 1_u64;
    loop {
        let folder = directory.join(format!("damaged-{number}"));
        match fs::create_dir(&folder) {
            Ok(()) => {
                directory::sync(directory)?;
                return Ok(folder);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Keeps a file in a folder, before it is replaced.
fn keep(path: &Path, folder: &Path) -> io::Result<()> {
    let Some(name) = path.file_name() else { return Ok(()) };
    let kept = folder.join(name);
    // Not every file system has links.
    if fs::hard_link(path, &kept).is_err() {
        fs::copy(path, &kept)?;
        File::open(&kept)?.sync_all()?;
    }
    directory::sync(folder)
}
