//! Compaction of a store that no server uses: gives back the space of everything that was deleted.

use std::io;

use super::compactions::StoredRows;
use super::manifest::{self, ManifestVerdict};
use super::options::{FjallOptions, OpenError};
use super::reclaim_run::{Run, SNAPSHOTS_WITHIN, flush};
use super::shared::{EngineState, Tree};
use super::{failure, open};

/// What the compaction of one keyspace did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactedKeyspace {
    /// The name of the keyspace.
    pub keyspace: &'static str,
    /// Bytes of its files before, once what was in memory had been flushed.
    pub bytes_before: u64,
    /// Bytes of its files after.
    pub bytes_after: u64,
    /// Whether nothing is left to do; otherwise free disk space was too small for the next step.
    pub is_complete: bool,
}

/// Opens a store, compacts every keyspace, and closes it. The directory is locked meanwhile. A keyspace that fits
/// into free disk space is compacted as a whole, a bigger one step by step. Blocks for as long as it takes to read and
/// write all data.
///
/// # Errors
/// Every kind of [`OpenError`]; where there is no store, none is made.
pub fn compact(options: &FjallOptions) -> Result<Vec<CompactedKeyspace>, OpenError> {
    let path = &options.path;
    let unfit = |reason: &str| OpenError::Manifest { path: path.clone(), reason: reason.into() };
    if !path.is_dir() {
        return Err(unfit("there is no such directory"));
    }
    let verdict = manifest::check(path, &options.keyspaces);
    let verdict = verdict.map_err(|source| OpenError::Io { path: path.clone(), source })?;
    if verdict == ManifestVerdict::Absent {
        return Err(unfit("there is no store: no manifest"));
    }
    failure::listen();
    let shared = open::open(options)?;
    let mut compacted = Vec::with_capacity(shared.trees.len());
    for (keyspace, tree) in options.keyspaces.iter().zip(&shared.trees) {
        let name = keyspace.name;
        let done = compact_keyspace(&shared, name, tree);
        compacted.push(done.map_err(|error| OpenError::Compaction {
            path: path.clone(),
            keyspace: name,
            source: Box::new(error),
        })?);
    }
    Ok(compacted)
}

fn compact_keyspace(
    shared: &EngineState,
    keyspace: &'static str,
    tree: &Tree,
) -> Result<CompactedKeyspace, fjall::Error> {
    flush(tree)?;
    if tree.handle.sealed_memtable_count() > 0 {
        return Err(io::Error::other("a memtable could not be flushed").into());
    }
    let stored = StoredRows::of(tree);
    let Some(watermark) = shared.watermark(SNAPSHOTS_WITHIN) else {
        return Err(io::Error::other("a snapshot is open").into());
    };
    // As if space were short: small steps, and no waste.
    let run = Run { shared, tree, watermark, is_short: true };
    let is_complete = run.compact_whole(stored.bytes)? || run.compact(&stored)?;
    shared.release_files(SNAPSHOTS_WITHIN);
    let bytes_after = StoredRows::of(tree).bytes;
    Ok(CompactedKeyspace { keyspace, bytes_before: stored.bytes, bytes_after, is_complete })
}
