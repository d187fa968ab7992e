//! The command `repair`: shows what a store that does not open would lose, and removes it if that is accepted.

use std::fmt::Write as _;

use trestle_kv_fjall::{JournalLoss, RepairPlan, SalvagedKeyspace};

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
        report.push_str(NOTHING);
        return Ok(Repaired { report, is_rejected: false });
    }
    if accept_loss {
        let done = plan.accept_loss()?;
        for SalvagedKeyspace { keyspace, rows, gaps } in &done.salvaged {
            let _ = writeln!(
                report,
                "keyspace=`{keyspace}`, rows=`{rows}`, unreadable_ranges=`{gaps}`"
            );
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
