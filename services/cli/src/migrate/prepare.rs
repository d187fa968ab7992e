//! Tables and queues made ready for what is copied into them, and queues set right afterwards.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _};

use super::{
    args::CopyArgs,
    notes::{Ledger, QueueNotes, TableNotes},
    plan::Plan,
    queues::{self, Queues},
    tables,
};
use crate::{client::Session, errors::CliError};

/// Most tables or queues that are looked at or made at once.
const AT_ONCE: usize = 16;
/// Most names of a refusal.
const NAMES_MAX: usize = 10;

/// Makes every table and queue of the plan ready; those that the server refuses are left.
///
/// What is there is looked at before anything is changed, and the notes are on disk before it is.
pub(super) async fn prepare(
    session: &Session,
    ledger: &Arc<Ledger>,
    plan: &Plan,
    args: &CopyArgs,
) -> Result<(), CliError> {
    let mut filled = look_at_tables(session, ledger, plan, args.into_existing).await?;
    filled.extend(look_at_queues(session, ledger, plan, args.into_existing).await?);
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
    ledger.change(|notes| plan.left.iter().for_each(|left| notes.leave(left.clone())));
    ledger.save()?;
    open_tables(session, ledger, plan).await?;
    open_queues(session, ledger, plan).await?;
    ledger.save()
}

/// Begins the notes of tables that have none; those that hold something unasked.
async fn look_at_tables(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    into_existing: bool,
) -> Result<Vec<String>, CliError> {
    let is_known = |name: &str| ledger.read(|notes| notes.tables.contains_key(name));
    let new = plan.tables.iter().filter(|table| !is_known(&tables::folded(&table.name)));
    let looks = new.map(|table| async move {
        let filled = !into_existing && tables::is_filled(session, &table.name).await?;
        Ok::<_, CliError>((table.name.clone(), filled))
    });
    let looked: Vec<_> = futures::stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
    let mut filled = Vec::new();
    for (name, is_filled) in looked {
        if is_filled {
            filled.push(tables::whose(&name));
        }
        ledger.change_quietly(|notes| {
            notes.tables.insert(tables::folded(&name), TableNotes::default());
        });
    }
    Ok(filled)
}

/// Begins the notes of queues that have none; those that hold something unasked.
async fn look_at_queues(
    session: &Session,
    ledger: &Ledger,
    plan: &Plan,
    into_existing: bool,
) -> Result<Vec<String>, CliError> {
    let is_known = |name: &str| ledger.read(|notes| notes.queues.contains_key(name));
    let new = plan.queues.iter().filter(|queue| !is_known(&queue.name));
    let looks = new.map(|queue| async move {
        let found = Queues::new(session).get(&queue.name).await?;
        Ok::<_, CliError>((queue.name.clone(), found))
    });
    let looked: Vec<_> = futures::stream::iter(looks).buffered(AT_ONCE).try_collect().await?;
    let mut filled = Vec::new();
    for (name, found) in looked {
        let (queue, before) = found.unwrap_or_default();
        if before > 0 && !into_existing {
            filled.push(queues::whose(&name));
        }
        let window_ms = queue.deduplication_window.and_then(millis);
        let notes = QueueNotes { before, window_ms, ..QueueNotes::default() };
        ledger.change_quietly(|all| all.queues.insert(name, notes));
    }
    Ok(filled)
}

fn millis(window: prost_types::Duration) -> Option<u64> {
    Duration::try_from(window).ok().and_then(|window| u64::try_from(window.as_millis()).ok())
}

async fn open_tables(session: &Session, ledger: &Arc<Ledger>, plan: &Plan) -> Result<(), CliError> {
    let is_open = |name: &str| {
        let folded = tables::folded(name);
        ledger.read(|notes| notes.tables.get(&folded).is_some_and(|table| !table.complete))
    };
    let opens = plan.tables.iter().filter(|table| is_open(&table.name)).map(|table| async move {
        let left = tables::open(session, table).await?;
        ledger.change(|notes| {
            let Some(left) = left else { return };
            if left.which.is_empty() {
                notes.tables.remove(&tables::folded(&table.name));
            }
            notes.leave(left);
        });
        Ok::<_, CliError>(())
    });
    futures::stream::iter(opens).buffer_unordered(AT_ONCE).try_collect().await
}

async fn open_queues(session: &Session, ledger: &Arc<Ledger>, plan: &Plan) -> Result<(), CliError> {
    let is_open = |name: &str| {
        ledger.read(|notes| notes.queues.get(name).is_some_and(|queue| !queue.complete))
    };
    let opens = plan.queues.iter().filter(|queue| is_open(&queue.name)).map(|queue| async move {
        let left = Queues::new(session).open(queue).await?;
        ledger.change(|notes| {
            let Some(left) = left else { return };
            if left.which.is_empty() {
                notes.queues.remove(&queue.name);
            }
            notes.leave(left);
        });
        Ok::<_, CliError>(())
    });
    futures::stream::iter(opens).buffer_unordered(AT_ONCE).try_collect().await
}

/// Lets queues forget the ids of the messages that were copied into them.
pub(super) async fn settle(session: &Session, ledger: &Ledger) -> Result<(), CliError> {
    let queues: Vec<_> = ledger.read(|notes| {
        notes.queues.iter().map(|(name, queue)| (name.clone(), queue.window_ms)).collect()
    });
    let settles = queues.into_iter().map(|(name, window_ms)| async move {
        Queues::new(session).settle(&name, window_ms).await
    });
    futures::stream::iter(settles).buffer_unordered(AT_ONCE).try_collect().await
}
