//! Tables and queues prepared for the copy, and queues restored afterwards.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};

use super::{
    args::CopyArgs,
    plan::{ImportPlan, PlannedQueue, PlannedTable},
    progress::{MigrationProgress, QueueProgress, Skipped, TableProgress, Tracker},
    queues::{self, TargetQueues},
    tables,
};
use crate::{client::Session, errors::CliError};

/// Most tables or queues that are inspected or created at once.
const AT_ONCE: usize = 16;
/// Most names in an error.
const NAMES_MAX: usize = 10;

/// A table or a queue of the plan.
#[derive(Clone, Copy)]
enum ImportTarget<'a> {
    Table(&'a PlannedTable),
    Queue(&'a PlannedQueue),
}

/// The content of a target before the import.
enum TargetState {
    Table { is_filled: bool },
    Queue(QueueProgress),
}

impl ImportTarget<'_> {
    fn whose(self) -> String {
        match self {
            Self::Table(table) => tables::whose(&table.name),
            Self::Queue(queue) => queues::whose(&queue.name),
        }
    }

    /// Whether it is complete; none if it has no progress yet.
    fn is_complete(self, progress: &MigrationProgress) -> Option<bool> {
        match self {
            Self::Table(table) => {
                progress.tables.get(&tables::folded(&table.name)).map(|table| table.complete)
            }
            Self::Queue(queue) => progress.queues.get(&queue.name).map(|queue| queue.complete),
        }
    }

    async fn inspect(self, session: &Session) -> Result<TargetState, CliError> {
        Ok(match self {
            Self::Table(table) => {
                TargetState::Table { is_filled: tables::is_filled(session, &table.name).await? }
            }
            Self::Queue(queue) => {
                TargetState::Queue(TargetQueues::new(session).inspect(&queue.name).await?)
            }
        })
    }

    /// Begins its progress; returns whether it is not empty.
    fn begin(self, progress: &mut MigrationProgress, found: TargetState) -> bool {
        match (self, found) {
            (Self::Table(table), TargetState::Table { is_filled }) => {
                progress.tables.insert(tables::folded(&table.name), TableProgress::default());
                is_filled
            }
            (Self::Queue(queue), TargetState::Queue(found)) => {
                let is_filled = found.before > 0;
                progress.queues.insert(queue.name.clone(), found);
                is_filled
            }
            _ => false,
        }
    }

    async fn open(self, session: &Session) -> Result<Option<Skipped>, CliError> {
        match self {
            Self::Table(table) => tables::open(session, table).await,
            Self::Queue(queue) => TargetQueues::new(session).open(queue).await,
        }
    }

    fn forget(self, progress: &mut MigrationProgress) {
        match self {
            Self::Table(table) => drop(progress.tables.remove(&tables::folded(&table.name))),
            Self::Queue(queue) => drop(progress.queues.remove(&queue.name)),
        }
    }
}

/// Creates every table and queue of the plan; those that the server rejects are skipped.
///
/// Existing ones are inspected before anything is changed, and the checkpoint is on disk before it is. Those that are
/// not empty are refused unless that is allowed.
pub(super) async fn prepare(
    session: &Session,
    tracker: &Arc<Tracker>,
    plan: &ImportPlan,
    args: &CopyArgs,
) -> Result<(), CliError> {
    let tables = plan.tables.iter().map(ImportTarget::Table);
    let targets: Vec<_> = tables.chain(plan.queues.iter().map(ImportTarget::Queue)).collect();
    let states: Vec<_> = tracker
        .read(|progress| targets.iter().map(|target| target.is_complete(progress)).collect());
    let new = targets.iter().zip(states).filter(|(_, state)| state.is_none());
    let found =
        new.map(async |(target, _)| Ok::<_, CliError>((target, target.inspect(session).await?)));
    let found: Vec<_> = futures::stream::iter(found).buffered(AT_ONCE).try_collect().await?;
    let mut filled = Vec::new();
    for (target, found) in found {
        let is_filled = tracker.change_unsaved(|progress| target.begin(progress, found));
        filled.extend((is_filled && !args.into_existing).then(|| target.whose()));
    }
    if !filled.is_empty() {
        let more = filled.len().saturating_sub(NAMES_MAX);
        filled.truncate(NAMES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Err(CliError::Usage(format!(
            "there already, and not empty: {}{more}; nothing was copied: delete them, or give \
             --into-existing",
            filled.join(", ")
        )));
    }
    tracker.change(|progress| plan.skipped.iter().cloned().for_each(|it| progress.skip(it)));
    tracker.save()?;
    let incomplete = |target: &&ImportTarget<'_>| {
        tracker.read(|progress| target.is_complete(progress)) == Some(false)
    };
    let opens = targets.iter().filter(incomplete).map(async |target| {
        if let Some(skipped) = target.open(session).await? {
            tracker.change(|progress| {
                if skipped.which.is_empty() {
                    target.forget(progress);
                }
                progress.skip(skipped);
            });
        }
        Ok::<_, CliError>(())
    });
    futures::stream::iter(opens).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    tracker.save()
}

/// Restores the deduplication windows of queues.
pub(super) async fn restore(session: &Session, tracker: &Tracker) -> Result<(), CliError> {
    let queues: Vec<_> = tracker.read(|progress| {
        progress.queues.iter().map(|(name, queue)| (name.clone(), queue.window_ms)).collect()
    });
    let restores = queues.into_iter().map(|(name, window_ms)| async move {
        TargetQueues::new(session).restore(&name, window_ms).await
    });
    futures::stream::iter(restores).buffer_unordered(AT_ONCE).try_collect().await
}
