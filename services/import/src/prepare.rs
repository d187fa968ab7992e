//! Tables, queues and containers prepared for the copy, and queues restored afterwards.

use futures::{StreamExt as _, TryStreamExt as _};
use trestle_command::errors::CliError;

use super::{
    ImportTarget,
    args::CopyArgs,
    containers,
    plan::{ImportPlan, PlannedContainer, PlannedQueue, PlannedTable},
    progress::{ContainerProgress, MigrationProgress, Skipped, TableProgress},
    queues,
    tables::{self, folded},
};

/// Most tables, queues or containers that are inspected or created at once.
const AT_ONCE: usize = 16;
/// Most names in an error.
const NAMES_MAX: usize = 10;

/// Creates every table, queue and container of the plan; those that the server rejects are skipped.
///
/// Existing ones are inspected before anything is changed, and the checkpoint is on disk before it is. Those that are
/// not empty are rejected unless that is allowed.
pub(super) async fn prepare(
    target: ImportTarget<'_>,
    plan: &ImportPlan,
    args: &CopyArgs,
) -> Result<(), CliError> {
    let mut filled = begin(target, plan).await?;
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
    let tracker = target.tracker;
    tracker.change(|progress| plan.skipped.iter().cloned().for_each(|it| progress.skip(it)));
    tracker.save()?;
    open_tables(target, plan).await?;
    open_queues(target, plan).await?;
    open_containers(target, plan).await?;
    tracker.save()
}

async fn open_tables(target: ImportTarget<'_>, plan: &ImportPlan) -> Result<(), CliError> {
    let tracker = target.tracker;
    let tables: Vec<_> = tracker.read(|all| {
        let is_open = |name: &str| all.tables.get(&folded(name)).is_some_and(|it| !it.complete);
        plan.tables.iter().filter(|table| is_open(&table.name)).collect()
    });
    let opened = async |table: &PlannedTable| {
        let skipped = target.open_table(table).await?;
        record(target, skipped, |progress| {
            progress.tables.remove(&folded(&table.name));
        });
        Ok(())
    };
    each(tables, opened).await.map(drop)
}

async fn open_queues(target: ImportTarget<'_>, plan: &ImportPlan) -> Result<(), CliError> {
    let tracker = target.tracker;
    let queues: Vec<_> = tracker.read(|all| {
        let is_open = |name: &str| all.queues.get(name).is_some_and(|it| !it.complete);
        plan.queues.iter().filter(|queue| is_open(&queue.name)).collect()
    });
    let opened = async |queue: &PlannedQueue| {
        let skipped = target.open_queue(queue).await?;
        record(target, skipped, |progress| {
            progress.queues.remove(&queue.name);
        });
        Ok(())
    };
    each(queues, opened).await.map(drop)
}

async fn open_containers(target: ImportTarget<'_>, plan: &ImportPlan) -> Result<(), CliError> {
    let tracker = target.tracker;
    let containers: Vec<_> = tracker.read(|all| {
        let is_open = |name: &str| all.containers.get(name).is_some_and(|it| !it.is_complete());
        plan.containers.iter().filter(|container| is_open(&container.name)).collect()
    });
    let opened = async |container: &PlannedContainer| {
        let skipped = target.open_container(container).await?;
        record(target, skipped, |progress| {
            progress.containers.remove(&container.name);
        });
        Ok(())
    };
    each(containers, opened).await.map(drop)
}

/// Records what the server rejected; an item as a whole has no progress then.
fn record(
    target: ImportTarget<'_>,
    skipped: Option<Skipped>,
    remove: impl FnOnce(&mut MigrationProgress),
) {
    let Some(skipped) = skipped else { return };
    target.tracker.change(|progress| {
        if skipped.which.is_empty() {
            remove(progress);
        }
        progress.skip(skipped);
    });
}

/// Applies an operation to each item, several at once; the results in order.
async fn each<I, T>(
    items: impl IntoIterator<Item = I>,
    run: impl AsyncFn(I) -> Result<T, CliError>,
) -> Result<Vec<T>, CliError> {
    let results = items.into_iter().map(|item| run(item));
    futures::stream::iter(results).buffered(AT_ONCE).try_collect().await
}

/// Begins the progress of what has none yet; the names of those that are not empty.
async fn begin(target: ImportTarget<'_>, plan: &ImportPlan) -> Result<Vec<String>, CliError> {
    let (tracker, mut filled) = (target.tracker, Vec::new());
    let is_new = |name: &str| tracker.read(|all| !all.tables.contains_key(&folded(name)));
    let new: Vec<_> = plan.tables.iter().filter(|table| is_new(&table.name)).collect();
    let found = each(&new, async |table| target.is_filled(&table.name).await).await?;
    for (table, is_filled) in new.into_iter().zip(found) {
        filled.extend(is_filled.then(|| tables::whose(&table.name)));
        tracker.change_unsaved(|progress| {
            progress.tables.insert(folded(&table.name), TableProgress::default())
        });
    }
    let is_new = |name: &str| tracker.read(|all| !all.queues.contains_key(name));
    let new: Vec<_> = plan.queues.iter().filter(|queue| is_new(&queue.name)).collect();
    let found = each(&new, async |queue| target.inspect(&queue.name).await).await?;
    for (queue, mut found) in new.into_iter().zip(found) {
        found.window_ms = found.window_ms.or(queue.window_ms);
        filled.extend((found.before > 0).then(|| queues::whose(&queue.name)));
        tracker.change_unsaved(|progress| progress.queues.insert(queue.name.clone(), found));
    }
    let is_new = |name: &str| tracker.read(|all| !all.containers.contains_key(name));
    let new: Vec<_> = plan.containers.iter().filter(|it| is_new(&it.name)).collect();
    let found = each(&new, async |container| target.has_blobs(&container.name).await).await?;
    for (container, is_filled) in new.into_iter().zip(found) {
        filled.extend(is_filled.then(|| containers::whose(&container.name)));
        tracker.change_unsaved(|progress| {
            progress.containers.insert(container.name.clone(), ContainerProgress::default())
        });
    }
    Ok(filled)
}

/// Restores the deduplication windows of queues.
pub(super) async fn restore(target: ImportTarget<'_>) -> Result<(), CliError> {
    let queues: Vec<_> = target.tracker.read(|progress| {
        progress.queues.iter().map(|(name, queue)| (name.clone(), queue.window_ms)).collect()
    });
    each(queues, async |(name, window_ms)| target.restore(&name, window_ms).await).await?;
    Ok(())
}
