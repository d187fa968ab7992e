//! Reads the change log of a store from links to its journals, while the server appends to them.
//!
//! Nothing is read that is not before a position which the server returned. A journal before that of the position is
//! sealed, so it is read to its end.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::change_log::ChangeLogError;
use super::journal::{self, GroupFault, GroupReader, LoggedGroup, LoggedItem};
use super::log_position::LogPosition;
use super::logged_change::LoggedChange;
use super::marks::{DISCARD_KEY, MARK_KEY, decode_discard, decode_mark};
use trestle_kv::Entry;
use trestle_model::time::Ticks;

/// The kind of the engine's own rows.
const OWN_KIND: u8 = 0;

/// A reader of a change log: whole groups, in their order. It holds one of them in memory at a time.
pub struct ChangeReader {
    links: PathBuf,
    position: LogPosition,
    /// Where reading ended last.
    until: Option<LogPosition>,
    /// The journal of the position, up to where it is read.
    journal: GroupReader<File>,
    /// Of the group before the position, as far as it was read.
    last: Option<LastGroup>,
}

#[derive(Debug, Clone, Copy)]
struct LastGroup {
    seqno: u64,
    /// None before the first group that has one.
    version: Option<Ticks>,
}

/// The changes of one or more callers that were committed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeGroup {
    /// The newest version in it. It rises from group to group, but a group with a [`LoggedChange::Discard`] may have
    /// the version of the group before it. A checkpoint has the group if its version is up to
    /// [`crate::CheckpointMade::at`]; a discard of that very version may have come after the checkpoint, and is to be
    /// applied again.
    pub version: Ticks,
    /// After the group.
    pub end: LogPosition,
    /// What it writes. No key occurs twice.
    pub changes: Vec<LoggedChange>,
}

impl ChangeReader {
    /// Begins to read at a position that [`crate::ChangeLog::link`] returned, or that a group had as its end.
    ///
    /// # Errors
    /// [`ChangeLogError::Missing`] where the journal is not linked, [`ChangeLogError::WrongCheck`] where no group with
    /// the check of the position ends there, and [`ChangeLogError::Io`].
    pub fn open(links: &Path, from: LogPosition) -> Result<Self, ChangeLogError> {
        let journal = open_at(links, from, from.offset())?;
        Ok(Self { links: links.to_owned(), position: from, until: None, journal, last: None })
    }

    /// After the last group that was returned or skipped.
    #[must_use]
    pub const fn position(&self) -> LogPosition {
        self.position
    }

    /// The next group before a position that [`crate::ChangeLog::link`] returned; none at that position. Reading goes
    /// on when it is called with a later one. After an error the position is the one before what could not be read.
    ///
    /// # Errors
    /// Every kind of [`ChangeLogError`] but those of an open store.
    pub fn next(&mut self, until: LogPosition) -> Result<Option<ChangeGroup>, ChangeLogError> {
        if self.until != Some(until) {
            self.look_again(until)?;
        }
        loop {
            if self.position == until {
                return Ok(None);
            }
            if self.position.journal() < until.journal()
                && self.position.offset() == self.journal.end()
            {
                self.open_next(until)?;
                continue;
            }
            let group = self.journal.read(self.position.offset());
            let group = group.map_err(|source| self.io_failed(source))?;
            let group = group.map_err(|fault| self.fault(fault))?;
            if let Some(group) = self.accept(group)? {
                return Ok(Some(group));
            }
        }
    }

    /// Opens the journal anew: the server may have replaced the link, and the file may have grown.
    fn look_again(&mut self, until: LogPosition) -> Result<(), ChangeLogError> {
        self.until = None;
        if self.position > until {
            return Err(ChangeLogError::PastEnd { position: self.position, end: until });
        }
        // Checks that it is of this store, before anything in front of it is read.
        open_at(&self.links, until, until.offset())?;
        self.journal = open_until(&self.links, self.position, until)?;
        self.until = Some(until);
        Ok(())
    }

    fn open_next(&mut self, until: LogPosition) -> Result<(), ChangeLogError> {
        let next = LogPosition::at_start_of(self.position.journal() + 1);
        self.journal = open_until(&self.links, next, until)?;
        self.position = next;
        Ok(())
    }

    /// Moves the position behind a group; the group, unless it has rows of the engine alone.
    fn accept(&mut self, group: LoggedGroup) -> Result<Option<ChangeGroup>, ChangeLogError> {
        let position = self.position;
        let damaged = |reason: String| ChangeLogError::Damaged { position, reason };
        let LoggedGroup { end, check, seqno, items } = group;
        let last = self.last.unwrap_or(LastGroup { seqno: 0, version: None });
        if self.last.is_some() && seqno <= last.seqno {
            let before = last.seqno;
            return Err(damaged(format!(
                "the sequence number does not rise: before=`{before}`, found=`{seqno}`"
            )));
        }
        let (version, changes) = decode(items).map_err(|what| damaged(what.to_owned()))?;
        let end = LogPosition::new(position.journal(), end, check);
        let Some(version) = version else {
            if !changes.is_empty() {
                return Err(ChangeLogError::Unmarked { position });
            }
            self.last = Some(LastGroup { seqno, ..last });
            self.position = end;
            return Ok(None);
        };
        let is_discard = matches!(*changes, [LoggedChange::Discard(_)]);
        let is_next = |before: Ticks| before < version || (is_discard && before == version);
        if !last.version.is_none_or(is_next) {
            let before = last.version.map_or(0, Ticks::get);
            let found = version.get();
            return Err(damaged(format!(
                "the version does not rise: before=`{before}`, found=`{found}`"
            )));
        }
        self.last = Some(LastGroup { seqno, version: Some(version) });
        self.position = end;
        Ok(Some(ChangeGroup { version, end, changes }))
    }

    fn io_failed(&self, source: io::Error) -> ChangeLogError {
        let path = self.links.join(journal::file_name(self.position.journal()));
        ChangeLogError::Io { path, source }
    }

    fn fault(&self, fault: GroupFault) -> ChangeLogError {
        let position = self.position;
        match fault {
            GroupFault::Damaged(reason) => ChangeLogError::Damaged { position, reason },
            GroupFault::Unsupported(reason) => ChangeLogError::Unsupported { position, reason },
        }
    }
}

/// The version and the changes that rows of a group are; the row that is malformed, as an error.
fn decode(items: Vec<LoggedItem>) -> Result<(Option<Ticks>, Vec<LoggedChange>), &'static str> {
    let mut version = None;
    let mut changes = Vec::with_capacity(items.len());
    for LoggedItem { key, value } in items {
        if key.first() != Some(&OWN_KIND) {
            changes.push(match value {
                Some(value) => LoggedChange::Put(Entry { key, value }),
                None => LoggedChange::Delete(key),
            });
            continue;
        }
        let value = value.unwrap_or_default();
        if *key == MARK_KEY {
            version = Some(decode_mark(&value).ok_or("the version of a group is malformed")?);
        } else if *key == DISCARD_KEY {
            let span = decode_discard(&value).ok_or("the span of a discard is malformed")?;
            changes.push(LoggedChange::Discard(span));
        }
    }
    Ok((version, changes))
}

/// Opens the journal of a position, whose check is compared, to be read up to `end`.
fn open_at(links: &Path, at: LogPosition, end: u64) -> Result<GroupReader<File>, ChangeLogError> {
    let path = links.join(journal::file_name(at.journal()));
    let file = open_file(&path)?;
    let length = file.metadata();
    let length = length.map_err(|source| ChangeLogError::Io { path: path.clone(), source })?.len();
    check_at(GroupReader::new(file, end.min(length)), &path, at)
}

/// Opens the journal of a position, to be read up to another one: to its end, if that is in a later journal.
fn open_until(
    links: &Path,
    at: LogPosition,
    until: LogPosition,
) -> Result<GroupReader<File>, ChangeLogError> {
    if at.journal() == until.journal() {
        return open_at(links, at, until.offset());
    }
    let path = links.join(journal::file_name(at.journal()));
    let file = open_file(&path)?;
    let end = journal::written(&file)
        .map_err(|source| ChangeLogError::Io { path: path.clone(), source })?;
    check_at(GroupReader::new(file, end), &path, at)
}

fn open_file(path: &Path) -> Result<File, ChangeLogError> {
    File::open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => ChangeLogError::Missing { path: path.to_owned() },
        _ => ChangeLogError::Io { path: path.to_owned(), source },
    })
}

fn check_at(
    mut journal: GroupReader<File>,
    path: &Path,
    at: LogPosition,
) -> Result<GroupReader<File>, ChangeLogError> {
    let found = match at.offset() {
        0 => Some(0),
        offset => journal
            .check_before(offset)
            .map_err(|source| ChangeLogError::Io { path: path.to_owned(), source })?,
    };
    if found == Some(at.check()) {
        return Ok(journal);
    }
    let found = match found {
        Some(check) => format!("found=`{check:016x}`"),
        None => "no group ends there".to_owned(),
    };
    Err(ChangeLogError::WrongCheck { position: at, found })
}

impl std::fmt::Debug for ChangeReader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ChangeReader")
            .field("links", &self.links)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
