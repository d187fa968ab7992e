//! The command `compact`: gives back the disk space of deleted data while no server runs.

use std::{fmt::Write as _, path::PathBuf};

use serde_json::json;
use trestle_kv_fjall::{CompactedKeyspace, FjallOptions};

use crate::{process_error::ProcessError, settings::StorageSettings, storage};

/// The result of a compaction.
#[derive(Debug)]
pub struct Compacted {
    path: PathBuf,
    keyspaces: Vec<CompactedKeyspace>,
}

/// Compacts the store of these settings, which keeps up to `cached_files` files open.
///
/// # Errors
/// The store is in use, does not exist, cannot be opened as it is, cannot be compacted, or is being restored.
pub fn compact(settings: &StorageSettings, cached_files: usize) -> Result<Compacted, ProcessError> {
    storage::check_restored(settings)?;
    let path = storage::engine_dir(settings);
    let options = FjallOptions {
        cached_files,
        min_free_bytes: settings.min_free_bytes,
        ..FjallOptions::new(path.clone(), storage::keyspaces())
    };
    let keyspaces = trestle_kv_fjall::compact(&options)?;
    Ok(Compacted { path, keyspaces })
}

impl Compacted {
    /// For people: a line for each keyspace, and the total.
    #[must_use]
    pub fn report(&self) -> String {
        let mut report = format!("compacted: path=`{}`\n", self.path.display());
        for CompactedKeyspace { keyspace, bytes_before, bytes_after, is_complete } in
            &self.keyspaces
        {
            let _ = write!(
                report,
                "keyspace=`{keyspace}`, bytes_before=`{bytes_before}`, bytes_after=`{bytes_after}`"
            );
            report.push_str(if *is_complete {
                "\n"
            } else {
                "; not finished: the next step needs more free disk space\n"
            });
        }
        let (before, after) = self.total();
        let _ = writeln!(report, "total: bytes_before=`{before}`, bytes_after=`{after}`");
        report
    }

    /// For programs: the same, on one line.
    #[must_use]
    pub fn json(&self) -> String {
        let keyspaces = self.keyspaces.iter().map(|done| {
            json!({
                "keyspace": done.keyspace,
                "bytes_before": done.bytes_before,
                "bytes_after": done.bytes_after,
                "complete": done.is_complete,
            })
        });
        let keyspaces: Vec<_> = keyspaces.collect();
        let (before, after) = self.total();
        let path = self.path.display().to_string();
        let report = json!({
            "path": path,
            "keyspaces": keyspaces,
            "bytes_before": before,
            "bytes_after": after,
        });
        format!("{report}\n")
    }

    fn total(&self) -> (u64, u64) {
        let sums = (0_u64, 0_u64);
        self.keyspaces.iter().fold(sums, |(before, after), done| {
            (before.saturating_add(done.bytes_before), after.saturating_add(done.bytes_after))
        })
    }
}
