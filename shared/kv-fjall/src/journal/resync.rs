//! Finds whole groups behind damage, where the bytes no longer say where a group begins.
//!
//! Values may hold anything, also the journal of another store, so a whole group that is found need
//! not be one of this journal. Two properties distinguish most of them: sequence numbers rise by one for
//! each group, and a little for other work; and behind a group there is the next one, or nothing.

use std::io::{self, Read, Seek};

use super::group::{GROUP_BYTES_MIN, GroupRead, read_group, start};
use super::rows::RowsByKind;
use super::whole_run::WholeRun;
use super::window::FileWindow;

/// Sequence numbers that flushes, compactions and the like may take between two groups.
const SEQNOS_BETWEEN: u64 = 65_536;

/// Bytes that are read at most of what only looked like a group. Nothing honest needs a fraction of
/// it; it bounds what bytes can cost that were made to look like the beginnings of many.
const WASTED_BYTES_MAX: u64 = 4 << 30;

/// The search of one journal.
pub(super) struct Resync<'a, R> {
    pub(super) journal: &'a mut FileWindow<R>,
    /// Sequence number and end of the last group that is known to be whole, if there is one.
    pub(super) last: Option<(u64, u64)>,
    wasted: u64,
}

/// What a search found.
#[derive(Debug)]
pub(super) enum Resynced {
    /// Whole groups one after the other, and their rows.
    Run(WholeRun, RowsByKind),
    /// No whole group any more.
    Nothing,
    /// Too many bytes look like the beginning of a group.
    GaveUp,
}

impl<'a, R: Read + Seek> Resync<'a, R> {
    pub(super) fn new(journal: &'a mut FileWindow<R>, last: Option<(u64, u64)>) -> Self {
        Self { journal, last, wasted: 0 }
    }

    /// The next run of whole groups from there on.
    pub(super) fn next(&mut self, from: u64) -> io::Result<Resynced> {
        let mut at = from;
        while let Some(candidate) = self.candidate(at)? {
            let (run, rows) = self.run(candidate)?;
            if run.groups > 0 && self.is_followed(&run)? {
                self.last = Some((run.seqnos.1, run.end));
                return Ok(Resynced::Run(run, rows));
            }
            // Behind a run that is not of this journal, or one byte on.
            at = run.end.max(candidate + 1);
            if self.wasted > WASTED_BYTES_MAX {
                return Ok(Resynced::GaveUp);
            }
        }
        Ok(Resynced::Nothing)
    }

    /// The next position that looks like the start of a group that may follow here.
    fn candidate(&mut self, from: u64) -> io::Result<Option<u64>> {
        let mut at = from;
        loop {
            let bytes = self.journal.some(at)?;
            if bytes.is_empty() {
                return Ok(None);
            }
            let Some(skipped) = bytes.iter().position(|byte| *byte == 1) else {
                at += bytes.len() as u64;
                continue;
            };
            at += skipped as u64;
            let last = self.last;
            if start(self.journal, at)?.is_some_and(|start| may_follow(last, start.seqno, at)) {
                return Ok(Some(at));
            }
            at += 1;
        }
    }

    /// The whole groups one after the other from there on.
    fn run(&mut self, from: u64) -> io::Result<(WholeRun, RowsByKind)> {
        let (mut rows, mut all) = (RowsByKind::default(), RowsByKind::default());
        let mut run = WholeRun::at(from);
        loop {
            match read_group(self.journal, run.end, &mut rows)? {
                GroupRead::Whole { end, seqno } if run.groups == 0 || seqno > run.seqnos.1 => {
                    run = run.with(end, seqno);
                    all.add(&rows);
                }
                GroupRead::Whole { end: at, .. }
                | GroupRead::Altered { end: at }
                | GroupRead::Broken { at } => {
                    self.wasted += at - run.end;
                    return Ok((run, all));
                }
            }
        }
    }

    /// Whether behind a run there is nothing, a lost page, or the start of a group that may follow.
    fn is_followed(&mut self, run: &WholeRun) -> io::Result<bool> {
        if self.journal.some(run.end)?.first().is_none_or(|byte| *byte == 0) {
            return Ok(true);
        }
        let last = Some((run.seqnos.1, run.end));
        let next = start(self.journal, run.end)?;
        Ok(next.is_some_and(|next| may_follow(last, next.seqno, run.end))
            // Cut off within the start.
            || run.end + super::group::EDGE_BYTES > self.journal.end())
    }
}

/// Whether a group with a sequence number may be there, behind the last whole one.
fn may_follow(last: Option<(u64, u64)>, seqno: u64, at: u64) -> bool {
    let Some((newest, end)) = last else { return true };
    let groups = at.saturating_sub(end) / GROUP_BYTES_MIN + 1;
    seqno > newest && seqno - newest <= groups + SEQNOS_BETWEEN
}
