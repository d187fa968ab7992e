//! Examines a journal: how far it is whole, and what comes behind that.

use std::io::{self, Read, Seek};

use super::group::{GroupRead, read_group};
use super::resync::{Resync, Resynced};
use super::rows::RowsByKind;
use super::whole_run::WholeRun;
use super::window::FileWindow;

/// Most sequence numbers between two groups that can be right. Flushes and compactions take some too, but
/// not millions without a write.
const SEQNOS_BETWEEN_MAX: u64 = 1 << 24;

/// What a journal holds.
#[derive(Debug)]
pub(crate) struct JournalExam {
    /// The whole groups from its beginning on; none if it is empty, or begins with damage.
    pub(crate) whole: WholeRun,
    /// The same without the last one.
    but_last: WholeRun,
    /// Behind its last byte that is not zero.
    pub(crate) written: u64,
    /// Their rows.
    pub(crate) rows: RowsByKind,
    /// What begins where they end; nothing if that is the end of what was written.
    pub(crate) damage: Option<JournalDamage>,
}

/// Bytes that are not a whole group, and what comes behind them.
#[derive(Debug, Default)]
pub(crate) struct JournalDamage {
    /// Rows of the group that begins with them, as far as it can be read.
    pub(crate) rows: RowsByKind,
    /// Whole groups behind them, in order.
    pub(crate) after: Vec<WholeRun>,
    /// The rows of those.
    pub(crate) rows_after: RowsByKind,
    /// Whether the search for them was given up, so that there may be more.
    pub(crate) is_undecided: bool,
}

impl JournalExam {
    /// Groups behind the damage.
    pub(crate) fn groups_after(&self) -> u64 {
        let after = self.damage.as_ref().map(|damage| damage.after.iter());
        after.into_iter().flatten().map(|run| run.groups).sum()
    }

    /// Bytes that belong to no whole group.
    pub(crate) fn damaged_bytes(&self) -> u64 {
        let after = self.damage.as_ref().map(|damage| damage.after.iter());
        let whole: u64 = after.into_iter().flatten().map(|run| run.end - run.start).sum();
        self.written.saturating_sub(self.whole.end).saturating_sub(whole)
    }

    /// The sequence number of its last whole group.
    pub(crate) fn last_seqno(&self) -> Option<u64> {
        let after = self.damage.as_ref().and_then(|damage| damage.after.last());
        after.unwrap_or(&self.whole).last().map(|(seqno, _)| seqno)
    }

    /// Counts its last group as damaged, if the next journal shows that its sequence number is wrong: no
    /// hash covers it.
    pub(crate) fn check_before(&mut self, next: &Self) {
        let is_behind = next.whole.groups > 0 && self.whole.groups > 0;
        if self.damage.is_none() && is_behind && self.whole.seqnos.1 >= next.whole.seqnos.0 {
            self.whole = self.but_last;
            self.damage = Some(JournalDamage::default());
        }
    }
}

/// Reads a journal up to `written`. The last sequence number of the journal before, if any, bounds what is
/// accepted as a group behind damage.
pub(crate) fn examine<R: Read + Seek>(
    source: R,
    written: u64,
    before: Option<u64>,
) -> io::Result<JournalExam> {
    let mut journal = FileWindow::new(source, written);
    let (mut rows, mut all) = (RowsByKind::default(), RowsByKind::default());
    let (mut whole, mut but_last) = (WholeRun::at(0), WholeRun::at(0));
    let skipped = loop {
        if whole.end >= written {
            return Ok(JournalExam { whole, but_last, written, rows: all, damage: None });
        }
        match read_group(&mut journal, whole.end, &mut rows)? {
            GroupRead::Whole { end, seqno } if is_next(&whole, seqno) => {
                but_last = whole;
                whole = whole.with(end, seqno);
                all.add(&rows);
            }
            // No hash covers the sequence number. It is that of the group before which is wrong.
            GroupRead::Whole { seqno, .. }
                if seqno <= whole.seqnos.1 && is_next(&but_last, seqno) =>
            {
                let from = whole.end;
                whole = but_last;
                break from;
            }
            // What looks like a group within a value of it is none.
            GroupRead::Whole { end, .. } | GroupRead::Altered { end } => break end,
            GroupRead::Broken { .. } => break whole.end + 1,
        }
    };
    let last = if whole.groups > 0 { but_last.last().or(whole.last()) } else { None };
    let last = last.or(before.filter(|_| whole.groups == 0).map(|seqno| (seqno, 0)));
    let damage = JournalDamage { rows, ..search(&mut journal, last, skipped)? };
    // The group behind damage that contradicts the last one before it, such as its copy, counts.
    if damage.after.first().is_some_and(|run| whole.groups > 0 && run.seqnos.0 <= whole.seqnos.1) {
        whole = but_last;
    }
    Ok(JournalExam { whole, but_last, written, rows: all, damage: Some(damage) })
}

/// Whether a group may follow others by its sequence number.
fn is_next(whole: &WholeRun, seqno: u64) -> bool {
    whole.last().is_none_or(|(last, _)| seqno > last && seqno - last <= SEQNOS_BETWEEN_MAX)
}

/// The whole groups behind damage.
fn search<R: Read + Seek>(
    journal: &mut FileWindow<R>,
    last: Option<(u64, u64)>,
    from: u64,
) -> io::Result<JournalDamage> {
    let (mut damage, mut at) = (JournalDamage::default(), from);
    let mut search = Resync::new(journal, last);
    loop {
        match search.next(at)? {
            Resynced::Run(run, rows) => {
                at = run.end;
                damage.after.push(run);
                damage.rows_after.add(&rows);
            }
            Resynced::Nothing => return Ok(damage),
            Resynced::GaveUp => return Ok(JournalDamage { is_undecided: true, ..damage }),
        }
    }
}

/// Reads the bytes of a journal, for tests that make them up: the end of each run of whole groups.
///
/// # Errors
/// Never for bytes in memory.
#[cfg(feature = "testing")]
pub fn read_journal(bytes: &[u8]) -> io::Result<Vec<u64>> {
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let exam = examine(io::Cursor::new(bytes), written as u64, None)?;
    let after = exam.damage.iter().flat_map(|damage| damage.after.iter());
    Ok(std::iter::once(&exam.whole).chain(after).map(|run| run.end).collect())
}
