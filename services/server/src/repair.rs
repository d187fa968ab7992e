//! The command `repair`: shows what a store that does not open would lose, and removes it if that is accepted.

use std::fmt::Write as _;

use trestle_kv::Entry;
use trestle_kv::domain::Readable;
use trestle_kv_fjall::{
    DamagedFile, JournalLoss, RepairPlan, RepairRules, SalvagedKeyspace, UnreadableRange,
};
use trestle_model::time::{Clock as _, SystemClock, Ticks};

use crate::{process_error::ProcessError, settings::StorageSettings, storage};

/// The report on a store without detectable damage.
const NOTHING: &str =
    "nothing to repair: every journal is whole up to its end, and every table as it was written\n";

/// What a repair of tables leaves to do.
const AFTER_SALVAGE: &str = "rows that a lost table deleted or replaced may be back as they were before: compare with \
a backup\n";

/// The result of a repair.
#[derive(Debug)]
pub struct Repaired {
    /// For people.
    pub report: String,
    /// Whether the store cannot be opened as it is.
    pub is_rejected: bool,
}

/// Examines the store of these settings; with `accept_loss`, removes the damaged parts.
///
/// # Errors
/// The store is in use, does not exist, lacks what cannot be repaired, or is being restored.
pub fn repair(settings: &StorageSettings, accept_loss: bool) -> Result<Repaired, ProcessError> {
    storage::check_restored(settings)?;
    let path = storage::engine_dir(settings);
    let plan = RepairPlan::examine(&path, &storage::keyspaces())?;
    let mut report = format!("examined: path=`{}`\n", path.display());
    if let Some(reason) = plan.reason() {
        let _ = writeln!(report, "{reason}");
    }
    for loss in plan.losses() {
        describe(loss, &mut report);
    }
    for file in plan.damaged_files() {
        let _ = writeln!(report, "damaged table, kept as far as it can be read: {file}");
    }
    if !plan.is_needed() {
        if accept_loss {
            plan.remove_drafts()?;
        }
        report.push_str(NOTHING);
        return Ok(Repaired { report, is_rejected: false });
    }
    if accept_loss {
        let damaged = plan.damaged_files().to_vec();
        let done = plan.accept_loss(&rules(settings, SystemClock.now()))?;
        for keyspace in &done.salvaged {
            describe_salvaged(keyspace, &damaged, &mut report);
        }
        if !done.salvaged.is_empty() {
            report.push_str(AFTER_SALVAGE);
        }
        let _ = writeln!(report, "repaired; the originals are in `{}`", done.originals.display());
        return Ok(Repaired { report, is_rejected: false });
    }
    let data_dir = settings.data_dir.display();
    let _ = writeln!(
        report,
        "nothing was changed; to lose this and keep the rest: `trestle repair --data-dir \
         {data_dir} --accept-loss`; or restore a backup"
    );
    Ok(Repaired { report, is_rejected: true })
}

/// What the services change where rows were lost. Times are greater than all numbers that were given one by one.
fn rules(settings: &StorageSettings, now: Ticks) -> RepairRules {
    let is_local = !trestle_objects::is_remote(&settings.data_dir);
    let tables = trestle_table::repair::raised(now.get());
    let queues = trestle_queue::repair::raised(now.get());
    // In a cloud each start has ids of its own.
    let blobs = trestle_blob::repair::raised(now.get(), is_local);
    let repaired = |row: Entry| {
        trestle_blob::repair::is_kept(&row).then(|| trestle_queue::repair::repaired(row))
    };
    RepairRules { repaired, raised: [tables, queues, blobs].concat() }
}

fn describe_salvaged(salvaged: &SalvagedKeyspace, damaged: &[DamagedFile], report: &mut String) {
    let SalvagedKeyspace { keyspace, rows, unreadable, lost_tables } = salvaged;
    let (ranges, lost) = (unreadable.count, lost_tables.len());
    let _ = writeln!(
        report,
        "keyspace=`{keyspace}`, rows=`{rows}`, unreadable_ranges=`{ranges}`, lost_tables=`{lost}`"
    );
    for file in lost_tables {
        let _ = writeln!(report, "  lost, nothing of it can be read: file=`{file}`");
    }
    for UnreadableRange { after, before } in &unreadable.first {
        let key = |key: Option<&[u8]>, none| match key {
            Some(key) => format!("`{}`", Readable(key)),
            None => format!("the {none} of a table"),
        };
        let after = key(after.as_deref(), "beginning");
        let before = key(before.as_deref(), "end");
        let _ = writeln!(report, "  lost, between keys: after={after}, before={before}");
    }
    let of_keyspace = damaged.iter().filter(|file| file.keyspace == Some(*keyspace));
    for DamagedFile { file, .. } in of_keyspace.filter(|it| !lost_tables.contains(&it.file)) {
        if ranges == 0 {
            let _ = writeln!(
                report,
                "  read without an error, but not as it was written: file=`{file}`"
            );
        }
    }
    let more = ranges.saturating_sub(u64::try_from(unreadable.first.len()).unwrap_or(u64::MAX));
    if more > 0 {
        let _ = writeln!(report, "  lost, more ranges of keys: {more}");
    }
}

fn describe(loss: &JournalLoss, report: &mut String) {
    let what = if loss.is_torn_end {
        "torn end, never acknowledged, dropped by the next start"
    } else {
        "damaged, would be lost"
    };
    let JournalLoss { file, offset, bytes, groups_before, groups_after, rows, .. } = loss;
    let _ = write!(report, "{what}: file=`{file}`, offset=`{offset}`, bytes=`{bytes}`");
    if let Some(groups) = loss.groups_lost_max {
        let _ = write!(report, ", groups_at_most=`{groups}`");
    }
    let _ = writeln!(
        report,
        ", recognised_rows=`{rows}`; kept: groups_before=`{groups_before}`, \
         groups_after=`{groups_after}`"
    );
}
