//! Changes of windows over the rows of a backup.

use std::collections::HashMap;

use futures::{StreamExt as _, stream};
use tokio::sync::mpsc;
use trestle_command::errors::CliError;
use trestle_kv::{Entry, Span};
use trestle_kv_fjall::{FillError, LoggedChange, StoreWriter};
use trestle_model::time::Ticks;

use crate::{
    coverage::RestorePlan,
    failure::broken,
    lists::ObjectRef,
    manifest::time_text,
    repository::Repository,
    rules::{ObjectName, StoreRules},
    verify::{self, AT_ONCE, BadPart},
    window::{ChangeWindow, WindowGroup, WindowName},
};

/// Windows whose changes wait for the writer.
const AHEAD: usize = 2;

/// What was read of windows.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The newest version that was applied.
    pub(crate) newest: Ticks,
    /// The objects that they name.
    pub(crate) objects: HashMap<ObjectName, ObjectRef>,
    /// The spans whose rows were discarded.
    pub(crate) discarded: Vec<Span>,
    /// A window that cannot be read and is not needed for what was acknowledged by the instant.
    unread: Option<BadPart>,
}

impl Replayed {
    /// What was left out, in words.
    pub(crate) fn left_out(&self) -> Option<String> {
        self.unread.as_ref().map(|bad| {
            format!(
                "changes that were in progress at the instant are left out, their window cannot be read: {bad}"
            )
        })
    }
}

/// Applies the windows of a plan to a store, each change in the form that `form` gives it.
///
/// # Errors
/// A window that is needed and cannot be used, which is named with the last instant before it.
pub(crate) async fn replay(
    repository: &Repository,
    plan: &RestorePlan<'_>,
    rules: &StoreRules,
    (mut writer, form): (StoreWriter, fn(LoggedChange) -> LoggedChange),
) -> Result<(StoreWriter, Replayed), CliError> {
    let (sender, mut received) = mpsc::channel::<Vec<LoggedChange>>(AHEAD);
    let applied = tokio::task::spawn_blocking(move || {
        while let Some(changes) = received.blocking_recv() {
            writer.apply(changes.into_iter().map(form))?;
        }
        Ok::<_, FillError>(writer)
    });
    let read = send(repository, plan, rules, &sender).await;
    drop(sender);
    let applied = applied.await.map_err(|error| broken(&error))?;
    // The error of the writer comes second: the reader ends where it does.
    let replayed = read?;
    let writer = applied.map_err(|error| not_restored(&error))?;
    Ok((writer, replayed))
}

async fn send(
    repository: &Repository,
    plan: &RestorePlan<'_>,
    rules: &StoreRules,
    sender: &mpsc::Sender<Vec<LoggedChange>>,
) -> Result<Replayed, CliError> {
    let mut selection = GroupSelection::new(plan);
    let mut replayed = Replayed {
        newest: plan.newest,
        objects: HashMap::new(),
        discarded: Vec::new(),
        unread: None,
    };
    let names = plan.windows.iter().chain(plan.later).cloned();
    let read = stream::iter(names).map(|name| async move {
        let read = verify::window(repository, &name).await;
        (name, read)
    });
    let mut read = std::pin::pin!(read.buffered(AT_ONCE).enumerate());
    while let Some((index, (name, read))) = read.next().await {
        let selected = read?.and_then(|window| {
            let ChangeWindow { groups, objects } = window;
            let groups = selection.select(groups);
            let changes = groups.and_then(|groups| restored(rules, groups));
            changes
                .map(|changes| (changes, objects))
                .map_err(|rule| BadPart::new(&name.path(), &rule))
        });
        match selected {
            Ok((changes, objects)) => {
                let named = objects.into_iter().filter_map(|object| Some((object.name()?, object)));
                replayed.objects.extend(named);
                replayed.discarded.extend(changes.iter().filter_map(|change| match change {
                    LoggedChange::Discard(span) => Some(span.clone()),
                    _ => None,
                }));
                if sender.send(changes).await.is_err() {
                    break;
                }
            }
            Err(bad) if index < plan.windows.len() => return Err(unusable(plan, index, &bad)),
            Err(bad) => {
                replayed.unread = Some(bad);
                break;
            }
        }
        if selection.is_over {
            break;
        }
    }
    replayed.newest = replayed.newest.max(selection.last);
    Ok(replayed)
}

/// The error of what was read and cannot be stored.
pub(crate) fn not_restored(error: &dyn std::error::Error) -> CliError {
    CliError::Source { text: format!("the backup cannot be restored: {error}"), busy: false }
}

/// The error of a window that is needed.
fn unusable(plan: &RestorePlan<'_>, index: usize, bad: &BadPart) -> CliError {
    let before = plan.windows.iter().take(index).map(|window| window.at).max();
    let before = before.filter(|at| at.get() >= plan.base.at).map(time_text);
    let rest = match before {
        Some(before) => format!("the last instant before it is {before}"),
        None => format!(
            "nothing before it leads on from the backup, restore that by --id={}",
            plan.base.id
        ),
    };
    CliError::Source {
        text: format!("a window of changes cannot be restored: {bad}; {rest}"),
        busy: false,
    }
}

/// The changes of groups as a restored store has them.
fn restored(rules: &StoreRules, groups: Vec<WindowGroup>) -> Result<Vec<LoggedChange>, String> {
    let changes = groups.into_iter().flat_map(|group| group.changes).map(LoggedChange::from);
    let restored = changes.map(|change| match change {
        LoggedChange::Put(row) => {
            let key = row.key.clone();
            let row: Option<Entry> = (rules.restored)(row)?;
            Ok(row.map_or(LoggedChange::Delete(key), LoggedChange::Put))
        }
        change => Ok(change),
    });
    restored.collect()
}

/// Decides which groups of consecutive windows are restored.
struct GroupSelection {
    newest: Ticks,
    to: Ticks,
    /// The last version whose group ends in the windows that are needed.
    whole: Ticks,
    /// The version of the group that the last window ended in.
    open: Option<u64>,
    /// The last version that was selected.
    last: Ticks,
    /// Whether nothing that follows is restored.
    is_over: bool,
}

impl GroupSelection {
    fn new(plan: &RestorePlan<'_>) -> Self {
        let whole = plan.windows.last().map_or(plan.newest, |window: &WindowName| window.to);
        let (newest, to) = (plan.newest, plan.to);
        Self { newest, to, whole, open: None, last: newest, is_over: false }
    }

    /// Those of the groups of the next window that are restored.
    ///
    /// # Errors
    /// A window that does not go on with the group that the one before ends in, in words.
    fn select(&mut self, groups: Vec<WindowGroup>) -> Result<Vec<WindowGroup>, String> {
        let mut selected = Vec::new();
        for mut group in groups {
            let open = self.open.take();
            if open.is_some_and(|version| version != group.version) {
                return Err(
                    "it does not go on with the group that the one before ends in".to_owned()
                );
            }
            let is_part = open.is_some() || group.is_continued;
            self.open = group.is_continued.then_some(group.version);
            let version = Ticks::new(group.version).ok_or("a version is no time")?;
            // A part whose end may not be read is not restored, and so nothing after it is.
            if version > self.to || (is_part && version > self.whole) {
                self.is_over = true;
            }
            if self.is_over || version < self.newest {
                continue;
            }
            if version == self.newest {
                // The backup has its rows. What was discarded has the version of the change before it, and may have
                // been discarded after the backup; to do it again changes nothing.
                group.changes.retain(|change| change.is_discard());
            }
            self.last = version;
            selected.push(group);
        }
        Ok(selected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        manifest::{BackupManifest, tests::manifest},
        window::tests::{name, ticks},
    };

    fn group(version: u64, is_continued: bool) -> WindowGroup {
        let change = LoggedChange::Delete(vec![1].into());
        WindowGroup { version, changes: vec![change.into()], is_continued }
    }

    fn selection(newest: u64, to: u64, whole: u64) -> GroupSelection {
        let base = manifest("a");
        let windows = [name("a", 0, [1, whole, whole])];
        GroupSelection::new(&RestorePlan {
            base: &base,
            newest: ticks(newest),
            to: ticks(to),
            windows: &windows,
            later: &[],
        })
    }

    fn versions(selected: Vec<WindowGroup>) -> Vec<u64> {
        selected.into_iter().map(|group| group.version).collect()
    }

    #[test]
    fn groups_after_the_backup_and_up_to_the_instant_are_selected() {
        let mut selection = selection(5, 8, 9);
        let found = selection.select([4, 6, 8].map(|it| group(it, false)).into()).unwrap();
        assert_eq!((versions(found), selection.is_over), (vec![6, 8], false));
        let found = selection.select([9, 10].map(|it| group(it, false)).into()).unwrap();
        assert_eq!((versions(found), selection.is_over), (Vec::new(), true));
        assert_eq!(selection.last, ticks(8));
    }

    #[test]
    fn of_the_newest_version_of_the_backup_what_was_discarded_is_selected() {
        let discard = LoggedChange::Discard(Span::new("a", "b"));
        let of_both = WindowGroup { changes: vec![discard.into()], ..group(5, false) };
        let found = selection(5, 8, 9).select(vec![group(5, false), of_both.clone()]).unwrap();
        let changes: Vec<_> = found.into_iter().flat_map(|group| group.changes).collect();
        assert_eq!(changes, of_both.changes);
    }

    #[test]
    fn a_group_over_windows_is_whole_or_left_out() {
        let windows = || {
            [
                vec![group(6, false), group(7, true)],
                vec![group(7, true)],
                vec![group(7, false), group(8, false)],
            ]
        };
        let select = |mut selection: GroupSelection| {
            let found = windows().map(|groups| selection.select(groups).unwrap());
            found.into_iter().flat_map(versions).collect::<Vec<_>>()
        };
        assert_eq!(select(selection(5, 8, 8)), [6, 7, 7, 7, 8]);
        assert_eq!(select(selection(5, 7, 8)), [6, 7, 7, 7]);
        assert_eq!(select(selection(5, 6, 8)), [6]);
        assert_eq!(
            select(selection(5, 8, 6)),
            [6],
            "its end is in a window that may not be readable"
        );
        assert_eq!(
            select(selection(7, 8, 8)),
            [7, 7, 7, 8],
            "the backup has it: no change of it is left"
        );
        let mut other = selection(5, 9, 9);
        other.select(vec![group(7, true)]).unwrap();
        assert!(other.select(vec![group(8, false)]).unwrap_err().contains("does not go on"));
    }

    #[test]
    fn a_bad_window_is_named_with_the_last_instant_before_it() {
        let base = BackupManifest { at: 7, ..manifest("a") };
        let windows = [name("l", 0, [1, 5, 6]), name("l", 1, [5, 8, 9]), name("l", 2, [8, 9, 12])];
        let plan = RestorePlan {
            base: &base,
            newest: ticks(5),
            to: ticks(11),
            windows: &windows,
            later: &[],
        };
        let bad = BadPart::new("changes/l/x", &"it is missing");
        let error = |index| unusable(&plan, index, &bad).to_string();
        assert!(error(2).contains("changes/l/x: it is missing"), "{}", error(2));
        assert!(
            error(2).ends_with(&format!("before it is {}", time_text(ticks(9)))),
            "{}",
            error(2)
        );
        assert!(error(1).ends_with("restore that by --id=a"), "{}", error(1));
    }
}
