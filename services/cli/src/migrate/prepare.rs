//! Tables and queues prepared for the copy, and queues restored afterwards.

use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};

use super::{
    args::CopyArgs,
    plan::ImportPlan,
    progress::{Skipped, TableProgress, Tracker},
    queues::{self, TargetQueues},
    tables::{self, folded},
};
use crate::{client::Session, errors::CliError};

/// Most tables or queues that are inspected or created at once.
const AT_ONCE: usize = 16;
/// Most names in an error.
const NAMES_MAX: usize = 10;

/// Creates every table and queue of the plan; those that the server rejects are skipped.
///
/// Existing ones are inspected before anything is changed, and the checkpoint is on disk before it is. Those that are
/// not empty are rejected unless that is allowed.
pub(super) async fn prepare(
    session: &Session,
    tracker: &Arc<Tracker>,
    plan: &ImportPlan,
    args: &CopyArgs,
) -> Result<(), CliError> {
    let mut filled = begin(session, tracker, plan).await?;
    if !filled.is_empty() && !args.into_existing {
        let more = filled.len().saturating_sub(NAMES_MAX);
        filled.truncate(NAMES_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Err(CliError::Usage(format!(
            "targets are not empty: {}{more}; nothing was copied: delete them, or give \
             --into-existing",
            filled.join(", ")
        )));
    }
    tracker.change(|progress| plan.skipped.iter().cloned().for_each(|it| progress.skip(it)));
    tracker.save()?;
    let incomplete = tracker.read(|progress| {
        let is_open =
            |name: &str| progress.tables.get(&folded(name)).is_some_and(|it| !it.complete);
        let tables: Vec<_> = plan.tables.iter().filter(|table| is_open(&table.name)).collect();
        let is_open = |name: &str| progress.queues.get(name).is_some_and(|it| !it.complete);
        let queues: Vec<_> = plan.queues.iter().filter(|queue| is_open(&queue.name)).collect();
        (tables, queues)
    });
    let rejected = |skipped: Option<Skipped>, name: &str, is_table: bool| {
        let Some(skipped) = skipped else { return };
        tracker.change(|progress| {
            match is_table {
                _ if !skipped.which.is_empty() => {}
                true => drop(progress.tables.remove(&folded(name))),
                false => drop(progress.queues.remove(name)),
            }
            progress.skip(skipped);
        });
    };
    let tables = incomplete.0.into_iter().map(async |table| {
        rejected(tables::open(session, table).await?, &table.name, true);
        Ok::<_, CliError>(())
    });
    futures::stream::iter(tables).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let queues = incomplete.1.into_iter().map(async |queue| {
        rejected(TargetQueues(session).open(queue).await?, &queue.name, false);
        Ok::<_, CliError>(())
    });
    futures::stream::iter(queues).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    tracker.save()
}

/// Begins the progress of what has none yet; the names of those that are not empty.
async fn begin(
    session: &Session,
    tracker: &Tracker,
    plan: &ImportPlan,
) -> Result<Vec<String>, CliError> {
    let mut filled = Vec::new();
    let is_new = |name: &str| tracker.read(|all| !all.tables.contains_key(&folded(name)));
    let new = plan.tables.iter().filter(|table| is_new(&table.name));
    let found = new.map(async |table| {
        Ok::<_, CliError>((table, tables::is_filled(session, &table.name).await?))
    });
    let found: Vec<_> = futures::stream::iter(found).buffered(AT_ONCE).try_collect().await?;
    for (table, is_filled) in found {
        filled.extend(is_filled.then(|| tables::whose(&table.name)));
        tracker.change_unsaved(|progress| {
            progress.tables.insert(folded(&table.name), TableProgress::default())
        });
    }
    let is_new = |name: &str| tracker.read(|all| !all.queues.contains_key(name));
    let new = plan.queues.iter().filter(|queue| is_new(&queue.name));
    let found = new.map(async |queue| {
        Ok::<_, CliError>((queue, TargetQueues(session).inspect(&queue.name).await?))
    });
    let found: Vec<_> = futures::stream::iter(found).buffered(AT_ONCE).try_collect().await?;
    for (queue, found) in found {
        filled.extend((found.before > 0).then(|| queues::whose(&queue.name)));
        tracker.change_unsaved(|progress| progress.queues.insert(queue.name.clone(), found));
    }
    Ok(filled)
}

/// Restores the deduplication windows of queues.
pub(super) async fn restore(session: &Session, tracker: &Tracker) -> Result<(), CliError> {
    let queues: Vec<_> = tracker.read(|progress| {
        progress.queues.iter().map(|(name, queue)| (name.clone(), queue.window_ms)).collect()
    });
    let restores = queues.into_iter().map(|(name, window_ms)| async move {
        TargetQueues(session).restore(&name, window_ms).await
    });
    futures::stream::iter(restores).buffer_unordered(AT_ONCE).try_collect().await
}
