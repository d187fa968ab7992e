//! Which instants can be restored: by the names of windows and by manifests alone.
//!
//! A backup has every change up to its newest version, so the windows after that version lead from it to later
//! instants, up to the first that is missing.

use std::time::Duration;

use trestle_model::time::Ticks;

use crate::{
    manifest::{BackupManifest, time_text},
    window::WindowName,
};

/// Ranges that an error shows on either side of an instant.
const RANGES_SHOWN: usize = 2;
/// How much later than an instant a change may be committed whose version is that of the instant or before.
const COMMITTED_WITHIN: Duration = Duration::from_secs(60);

/// The windows at a target.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// Runs of windows that follow each other: of one line, with consecutive numbers, and each from the version that
    /// the one before ends with. None is empty.
    runs: Vec<Vec<WindowName>>,
    /// Windows that share their line and number with another one.
    ambiguous: Vec<WindowName>,
}

/// The windows that lead from a backup to later instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoveringRun<'a> {
    /// In their order. The first may have changes that the backup has too.
    pub(crate) windows: &'a [WindowName],
    /// The last instant that can be restored.
    pub(crate) until: Ticks,
}

/// How an instant is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RestorePlan<'a> {
    /// The backup that it begins with.
    pub(crate) base: &'a BackupManifest,
    /// The newest version in that.
    pub(crate) newest: Ticks,
    /// The instant.
    pub(crate) to: Ticks,
    /// The windows without which the instant cannot be restored: all that was acknowledged by then is in them.
    pub(crate) windows: &'a [WindowName],
    /// Windows after them that may have changes with versions up to the instant, which were acknowledged after it.
    pub(crate) later: &'a [WindowName],
}

/// A range of instants that can be restored, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RestorableRange {
    /// The first one.
    pub(crate) from: Ticks,
    /// The last one.
    pub(crate) until: Ticks,
}

/// An instant that cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotRestorable {
    /// No window follows any backup.
    #[error("no backup at the target has changes after it: restore a backup by --id")]
    NoRange,
    /// It is in no range.
    #[error("the instant cannot be restored: to=`{to}`; those that can be are {ranges}")]
    Outside {
        /// The instant.
        to: String,
        /// Some ranges around it.
        ranges: String,
    },
}

impl Coverage {
    /// That of the windows with these names. Where a line has two windows of one number, it has two writers: neither
    /// is used, and nothing before them leads to anything after them.
    pub(crate) fn new(mut names: Vec<WindowName>) -> Self {
        names.sort_unstable();
        let (mut runs, mut ambiguous): (Vec<Vec<WindowName>>, _) = (Vec::new(), Vec::new());
        for same in names.chunk_by(|a, b| (&a.line, a.seq) == (&b.line, b.seq)) {
            let [window] = same else {
                runs.push(Vec::new());
                ambiguous.extend_from_slice(same);
                continue;
            };
            let follows = |before: &WindowName| {
                before.line == window.line
                    && before.seq.checked_add(1) == Some(window.seq)
                    && before.to == window.from
            };
            match runs.last_mut() {
                Some(run) if run.last().is_some_and(follows) => run.push(window.clone()),
                _ => runs.push(vec![window.clone()]),
            }
        }
        runs.retain(|run| !run.is_empty());
        Self { runs, ambiguous }
    }

    /// The run that leads furthest from a backup, if one does.
    pub(crate) fn run_after(&self, base: &BackupManifest) -> Option<CoveringRun<'_>> {
        let (at, newest) = (Ticks::new(base.at)?, base.newest.and_then(Ticks::new)?);
        if newest > at {
            return None;
        }
        let windows = self.runs_of(base).filter_map(|run| run.get(start(run, newest)?..));
        let runs = windows.filter_map(|windows| {
            let until = windows.iter().map(|window| window.at).max()?;
            Some(CoveringRun { windows, until })
        });
        runs.filter(|run| run.until >= at).max_by_key(|run| run.until)
    }

    /// The windows that any of these backups needs, of every line that leads on from it.
    pub(crate) fn needed(&self, bases: &[BackupManifest]) -> impl Iterator<Item = &WindowName> {
        let first = move |run: &Vec<WindowName>| {
            let bases = bases.iter().filter(|base| is_of(run, base));
            let newest = bases.filter_map(|it| it.newest.and_then(Ticks::new));
            newest.filter_map(|newest| start(run, newest)).min()
        };
        self.runs.iter().filter_map(move |run| run.get(first(run)?..)).flatten()
    }

    /// The runs of the line that a backup is in.
    fn runs_of(&self, base: &BackupManifest) -> impl Iterator<Item = &Vec<WindowName>> {
        self.runs.iter().filter(|run| is_of(run, base))
    }

    /// The first window of the line of a backup that nothing leads to from there, though it is later: windows between
    /// the two are missing, or ambiguous.
    pub(crate) fn behind_gap(&self, base: &BackupManifest) -> Option<&WindowName> {
        let until = self.run_after(base).map_or(base.at, |run| run.until.get());
        let is_of_line = |window: &&WindowName| base.line.as_ref() == Some(&window.line);
        let later = self.windows().filter(is_of_line).filter(|window| window.at.get() > until);
        later.min_by_key(|window| window.seq)
    }

    /// The number of the first window that leads from a backup, or from the beginning of its line without one, to this
    /// number of a line; none where windows between are missing.
    pub(crate) fn first_to(&self, base: Option<&BackupManifest>, last: (&str, u64)) -> Option<u64> {
        let ends = |run: &&Vec<WindowName>| {
            run.last().is_some_and(|window| (window.line.as_str(), window.seq) == last)
        };
        let newest = |base: &BackupManifest| base.newest.and_then(Ticks::new);
        let run = self.runs.iter().find(ends)?;
        let index = match base {
            None => (run.first()?.seq == 0).then_some(0)?,
            Some(base) => start(run, newest(base)?)?,
        };
        run.get(index).map(|window| window.seq)
    }

    /// The last instant that any window has.
    pub(crate) fn last(&self) -> Option<Ticks> {
        self.windows().map(|window| window.at).max()
    }

    fn windows(&self) -> impl Iterator<Item = &WindowName> {
        self.runs.iter().flatten().chain(&self.ambiguous)
    }

    /// The last instant that a backup and the windows after it can be restored to, by RFC 3339.
    pub(crate) fn until_text(&self, base: &BackupManifest) -> Option<String> {
        self.run_after(base).map(|run| time_text(run.until))
    }

    /// Every range that can be restored, in order and apart from each other.
    pub(crate) fn ranges(&self, bases: &[BackupManifest]) -> Vec<RestorableRange> {
        let range = |base| {
            let until = self.run_after(base)?.until;
            Some(RestorableRange { from: Ticks::new(base.at)?, until })
        };
        let mut found: Vec<_> = bases.iter().filter_map(range).collect();
        found.sort_unstable_by_key(|range| range.from);
        found.dedup_by(|later, before| {
            let is_joined = later.from <= before.until;
            if is_joined {
                before.until = before.until.max(later.until);
            }
            is_joined
        });
        found
    }

    /// How to restore an instant: from the newest backup that leads to it.
    ///
    /// # Errors
    /// Every kind of [`NotRestorable`].
    pub(crate) fn plan<'a>(
        &'a self,
        bases: &'a [BackupManifest],
        to: Ticks,
    ) -> Result<RestorePlan<'a>, NotRestorable> {
        let plans = bases.iter().filter(|base| base.at <= to.get());
        let plans = plans.filter_map(|base| self.plan_from(base, to));
        plans.max_by_key(|plan| plan.base.at).ok_or_else(|| self.outside(bases, to))
    }

    fn plan_from<'a>(&'a self, base: &'a BackupManifest, to: Ticks) -> Option<RestorePlan<'a>> {
        let run = self.run_after(base)?;
        let needed = run.windows.iter().position(|window| window.at >= to)? + 1;
        let (windows, rest) = run.windows.split_at_checked(needed)?;
        let settled = to.after(COMMITTED_WITHIN);
        let may_have = |window: &&WindowName| window.from <= to && window.at <= settled;
        let later = rest.get(..rest.iter().take_while(may_have).count())?;
        let newest = base.newest.and_then(Ticks::new)?;
        Some(RestorePlan { base, newest, to, windows, later })
    }

    fn outside(&self, bases: &[BackupManifest], to: Ticks) -> NotRestorable {
        let ranges = self.ranges(bases);
        if ranges.is_empty() {
            return NotRestorable::NoRange;
        }
        let before = ranges.partition_point(|range| range.until < to);
        let shown = before.saturating_sub(RANGES_SHOWN)..ranges.len().min(before + RANGES_SHOWN);
        let text = |range: &RestorableRange| {
            format!("{} to {}", time_text(range.from), time_text(range.until))
        };
        let shown: Vec<_> = ranges.get(shown).unwrap_or_default().iter().map(text).collect();
        NotRestorable::Outside { to: time_text(to), ranges: shown.join(", ") }
    }
}

/// Whether a backup is in the line of a run.
fn is_of(run: &[WindowName], base: &BackupManifest) -> bool {
    run.first().is_some_and(|first| base.line.as_ref() == Some(&first.line))
}

/// The first window of a run that has anything after a version; none if the run does not lead on from there.
///
/// A group that is larger than a window begins in windows whose last whole group is an earlier one, so every window
/// that ends with the last version that is not after `newest` counts. For the same reason a run whose first windows
/// are missing leads on only from a version after the first group that ends in it.
fn start(run: &[WindowName], newest: Ticks) -> Option<usize> {
    let first = run.first()?;
    if newest < first.from {
        return None;
    }
    let known = run.partition_point(|window| window.to <= newest);
    let last = known.checked_sub(1).and_then(|index| run.get(index));
    let index = last.map_or(0, |last| run.partition_point(|window| window.to < last.to));
    let is_whole = index > 0 || first.seq == 0 || (known > 0 && first.from < first.to);
    is_whole.then_some(index)
}

#[cfg(test)]
mod tests;
