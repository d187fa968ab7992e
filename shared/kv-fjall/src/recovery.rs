//! What happens to the journals before the database is opened after an unclean end.
//!
//! Each is read by ourselves. A torn end is dropped. Damage to acknowledged data is rejected. What is kept and
//! may not be on stable storage is written again, so that all that readers are shown and everything
//! acknowledged from then on is behind bytes that are.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Instant;

use super::directory;
use super::inventory::{DATABASE, KEYSPACES};
use super::journal::{self, JournalExam};
use trestle_kv::Keyspaces;

/// The journals of a database, from the oldest on.
#[derive(Debug)]
pub(super) struct JournalSet {
    pub(super) exams: Vec<(u64, JournalExam)>,
}

impl JournalSet {
    /// Reads all of them.
    pub(super) fn read(database: &Path) -> io::Result<Self> {
        let (mut exams, mut before) = (Vec::<(u64, JournalExam)>::new(), None);
        for number in journal::list(database)? {
            let file = File::open(database.join(journal::file_name(number)))?;
            let exam = journal::examine(&file, journal::written(&file)?, before)?;
            before = exam.last_seqno().or(before);
            if let Some((_, sealed)) = exams.last_mut() {
                sealed.check_before(&exam);
            }
            exams.push((number, exam));
        }
        Ok(Self { exams })
    }

    /// Groups in the journals behind one.
    pub(super) fn groups_behind(&self, index: usize) -> u64 {
        let behind = self.exams.iter().skip(index + 1);
        behind.map(|(_, exam)| exam.whole.groups + exam.groups_after()).sum()
    }

    /// The first journal with damage that a whole group follows. A rotation syncs the journal that it
    /// seals, so groups in later ones count with any durability.
    pub(super) fn damaged(&self, is_in_order: bool) -> Option<usize> {
        let is_acknowledged = |index, exam: &JournalExam| {
            let Some(damage) = &exam.damage else { return false };
            let is_followed = is_in_order && (!damage.after.is_empty() || damage.is_undecided);
            is_followed || self.groups_behind(index) > 0
        };
        let mut exams = self.exams.iter().enumerate();
        Some(exams.find(|(index, (_, exam))| is_acknowledged(*index, exam))?.0)
    }

    /// Journals that were sealed and are empty. A journal is sealed, and synced, because it is full: no crash
    /// empties it.
    pub(super) fn emptied(&self) -> Vec<u64> {
        let sealed = self.exams.split_last().map(|(_, sealed)| sealed).unwrap_or_default();
        let empty = sealed.iter().filter(|(_, exam)| exam.written == 0);
        empty.map(|(number, _)| *number).collect()
    }

    /// Logs journals whose number is left out. They may have been deleted, if the file system forgot the deletion
    /// of one before them; their groups are in tables then.
    fn warn_of_gaps(&self) {
        for pair in self.exams.windows(2) {
            let [(before, _), (after, _)] = pair else { continue };
            if before + 1 < *after {
                tracing::warn!(before, after, "journals between two others are missing");
            }
        }
    }

    /// The reason why it is rejected, for people.
    pub(super) fn describe(&self, index: usize, keyspaces: &Keyspaces) -> Option<String> {
        let (number, exam) = self.exams.get(index)?;
        let damage = exam.damage.as_ref()?;
        let groups_before = self.exams.iter().take(index).map(|(_, exam)| exam.whole.groups);
        let groups_before = groups_before.sum::<u64>() + exam.whole.groups;
        let mut rows_after = damage.rows_after.clone();
        for (_, exam) in self.exams.iter().skip(index + 1) {
            rows_after.add(&exam.rows);
        }
        let at_least = if damage.is_undecided { " or more" } else { "" };
        Some(format!(
            "acknowledged data is damaged: file=`{DATABASE}/{}`, offset=`{}`, damaged_bytes=`{}`, \
             groups_before=`{groups_before}`, groups_after=`{}{at_least}`, rows_after=`{}`",
            journal::file_name(*number),
            exam.whole.end,
            exam.damaged_bytes(),
            exam.groups_after() + self.groups_behind(index),
            rows_after.by_keyspace(keyspaces),
        ))
    }

    /// The first journal that need not be on stable storage: the newest with a group. Each before was
    /// synced when it was sealed, or no group would have been written behind it.
    fn first_unsynced(&self) -> usize {
        self.exams.iter().rposition(|(_, exam)| exam.whole.groups > 0).unwrap_or_default()
    }

    /// Drops torn ends, and writes again what may not be on stable storage.
    pub(super) fn make_durable(&self, database: &Path) -> io::Result<()> {
        let started = Instant::now();
        let mut bytes = 0;
        self.warn_of_gaps();
        for (number, exam) in self.exams.iter().skip(self.first_unsynced()) {
            if exam.written == 0 {
                continue;
            }
            journal::rewrite(database, *number, exam.whole)?;
            bytes += exam.whole.end;
            let path = database.join(journal::file_name(*number));
            let (path, kept) = (path.display(), exam.whole.end);
            if exam.written > kept {
                let (dropped, groups) = (exam.written - kept, exam.groups_after());
                tracing::warn!(%path, dropped, kept, groups, "torn end of a journal was dropped");
            }
        }
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(bytes, took_ms, "journals were written again after an unclean end");
        Ok(())
    }
}

/// The reason why a sealed journal without a byte is rejected, for people.
pub(super) fn emptied(number: u64) -> String {
    let file = journal::file_name(number);
    format!("a sealed journal is empty, its acknowledged data is lost: file=`{DATABASE}/{file}`")
}

/// Removes what a crash left of rewritten journals.
pub(super) fn remove_drafts(database: &Path) -> io::Result<()> {
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        if journal::is_draft(&path) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Syncs the directories of the database. Its files are synced before their names are changed, but the
/// sync that was to make a name durable may be what failed.
pub(super) fn sync_directories(database: &Path) -> io::Result<()> {
    directory::sync(database)?;
    let keyspaces = database.join(KEYSPACES);
    directory::sync(&keyspaces)?;
    for entry in fs::read_dir(keyspaces)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            directory::sync(&entry.path())?;
            for inner in fs::read_dir(entry.path())? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    directory::sync(&inner.path())?;
                }
            }
        }
    }
    Ok(())
}
