//! Opening a directory: what is there is checked, recovered if need be, and given to the database.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fjall::{Database, KeyspaceCreateOptions, config::PartitioningPolicy};

use super::clean_shutdown::{self, MarkerVerdict};
use super::guard::SpaceGuard;
use super::inventory::{self, DATABASE};
use super::manifest::{self, ManifestVerdict};
use super::options::{FjallOptions, MIN_FREE_BYTES_MIN, OpenError};
use super::recovery::{self, JournalSet};
use super::shared::{EngineParts, EngineState, Tree, error_text};
use super::table_files::{self, FileCheck};
use super::{compactions, directory, last_durability, version_floor};
use trestle_kv::Keyspaces;
use trestle_kv::service_clock::ServiceClock;

/// Sealed journals from which on the keyspaces that hold them back are flushed: two of those of 64 MiB
/// that the database seals, so that a busy keyspace has flushed on its own what the oldest holds,
/// and only idle ones are made to. One made the busy one flush half memtables too, which cost
/// batches 12 to 25 % of their rate. A start after a crash reads every item of every journal, at
/// about a microsecond each; rows of a queue are so small that 256 MiB took six seconds.
const JOURNALS_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// What can be done about damaged files.
const REMEDY: &str = "restore a backup, or see what `trestle repair` would lose";

/// Threads that flush and compact. With more than one, fjall keeps the first for flushes, and that one
/// spins on the queue of work for as long as another compacts: half of two cores under sustained
/// writes. Without it batches ran 29 % faster for 36 % less processor time, with the same longest
/// waits; compactions run one at a time either way.
pub(super) const WORKERS: usize = 1;

/// What a directory is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenedFor {
    Writes,
    Reads,
}

/// Opens a store to read and write.
pub(super) fn open(options: &FjallOptions) -> Result<EngineState, OpenError> {
    open_for(options, OpenedFor::Writes)
}

/// Opens a store only to read: one that was closed stays so, and its journals as they are.
pub(super) fn open_to_read(options: &FjallOptions) -> Result<EngineState, OpenError> {
    open_for(options, OpenedFor::Reads)
}

fn open_for(options: &FjallOptions, opened_for: OpenedFor) -> Result<EngineState, OpenError> {
    let keyspaces = Keyspaces::new(options.keyspaces.clone())
        .map_err(|reason| OpenError::Options { reason })?;
    let path = &options.path;
    if (1..MIN_FREE_BYTES_MIN).contains(&options.min_free_bytes) {
        let found = options.min_free_bytes;
        let reason =
            format!("min_free_bytes must be at least {MIN_FREE_BYTES_MIN}: value=`{found}`");
        return Err(OpenError::Options { reason });
    }
    let io_failed = |source| OpenError::Io { path: path.clone(), source };
    fs::create_dir_all(path).map_err(io_failed)?;
    let lock = directory::lock(path)?;
    let verdict = manifest::check(path, &options.keyspaces).map_err(io_failed)?;
    let stored = match &verdict {
        ManifestVerdict::Same => options.keyspaces.iter().map(|keyspace| keyspace.name).collect(),
        ManifestVerdict::Grown(names) => names.clone(),
        ManifestVerdict::Absent => {
            directory::start_creating(path)?;
            Vec::new()
        }
        ManifestVerdict::Unfit(reason) => {
            return Err(OpenError::Manifest { path: path.clone(), reason: reason.clone() });
        }
    };
    if !stored.is_empty() {
        check_parts(path, stored.len(), &keyspaces)?;
    }
    let (database, trees) = open_marked(options, &stored, opened_for)?;
    // Before a manifest that an older program would not support.
    manifest::sign(path).map_err(io_failed)?;
    if verdict != ManifestVerdict::Same {
        // Before the manifest names them.
        let folders = path.join(DATABASE).join(inventory::KEYSPACES);
        directory::sync(&folders).map_err(io_failed)?;
        directory::sync(path).map_err(io_failed)?;
        manifest::write(path, &options.keyspaces).map_err(io_failed)?;
    }
    directory::end_creating(path).map_err(io_failed)?;
    last_durability::store(path, options.durability).map_err(io_failed)?;
    let damaged = |reason| OpenError::Damaged { path: path.clone(), reason };
    let version_floor = version_floor::read(&trees).map_err(damaged)?;
    let checkpoint = version_floor::read_checkpoint(&trees).map_err(damaged)?;
    let clock = ServiceClock::after(version_floor, checkpoint, Arc::clone(&options.clock));
    Ok(EngineState::new(EngineParts {
        keyspaces,
        clock,
        version_floor,
        trees,
        database,
        path: path.clone(),
        durability: options.durability,
        marks_groups: options.marks_groups,
        space: SpaceGuard::new(options.min_free_bytes),
        probe: Arc::clone(&options.space_probe),
        write_buffer_bytes: options.write_buffer_bytes,
        memtable_bytes: options.memtable_bytes,
        on_group: Arc::clone(&options.on_group),
        on_sync: Arc::clone(&options.on_sync),
        on_point: options.on_point.clone(),
        lock,
    }))
}

/// The database, without the clean-shutdown marker once it may be written.
fn open_marked(
    options: &FjallOptions,
    stored: &[&'static str],
    opened_for: OpenedFor,
) -> Result<(Database, Vec<Tree>), OpenError> {
    let path = &options.path;
    let io_failed = |source| OpenError::Io { path: path.clone(), source };
    // A reader may be killed, and must not leave a closed store as one that crashed: damage of its journals would not
    // be noticed any more. No thread flushes meanwhile, since that removes journals.
    let stays_closed =
        opened_for == OpenedFor::Reads && clean_shutdown::exists(path).map_err(io_failed)?;
    let (marker, workers) = match stays_closed {
        true => (None, 0),
        false => (clean_shutdown::take(path).map_err(io_failed)?, WORKERS),
    };
    let opened = open_database(options, stored, workers).map_err(|error| named(error, options));
    if let (Err(_), Some(marker)) = (&opened, marker) {
        // Nothing was written since; the next start is to look again.
        clean_shutdown::put(path, &marker).map_err(io_failed)?;
    }
    opened
}

/// The error of the database with the files that are damaged: it names none.
fn named(error: OpenError, options: &FjallOptions) -> OpenError {
    if !matches!(error, OpenError::Recovery { .. } | OpenError::Io { .. }) {
        return error;
    }
    let database = options.path.join(DATABASE);
    let find = |check| table_files::damaged(&database, &options.keyspaces, check).ok();
    // Every byte is read only where nothing else is found: it takes a while.
    let found = [FileCheck::Ends, FileCheck::Whole].into_iter().filter_map(find);
    let Some(files) = found.into_iter().find(|files| !files.is_empty()) else { return error };
    let files: Vec<_> = files.iter().map(ToString::to_string).collect();
    let reason =
        format!("a file of a keyspace is damaged or missing: {}; {REMEDY}", files.join("; "));
    OpenError::Damaged { path: options.path.clone(), reason }
}

/// Whether the parts of a finished store of so many keyspaces are there, and as a clean
/// shutdown left them. After any other end the journals are recovered.
fn check_parts(path: &Path, count: usize, keyspaces: &Keyspaces) -> Result<(), OpenError> {
    let io_failed = |source| OpenError::Io { path: path.to_owned(), source };
    let damaged = |reason: String| Err(OpenError::Damaged { path: path.to_owned(), reason });
    let database = path.join(DATABASE);
    if let Some(missing) = inventory::missing(&database, count).map_err(io_failed)? {
        return damaged(format!("{missing}; restore a backup"));
    }
    if !inventory::has_journals(&database).map_err(io_failed)? {
        return damaged(format!("every journal is missing: file=`{DATABASE}/*.jnl`; {REMEDY}"));
    }
    match clean_shutdown::check(path, &database).map_err(io_failed)? {
        MarkerVerdict::Intact => return Ok(()),
        MarkerVerdict::Damaged(reason) => return damaged(format!("{reason}; {REMEDY}")),
        MarkerVerdict::Absent => {}
    }
    let journals = JournalSet::read(&database).map_err(io_failed)?;
    let is_in_order = last_durability::was_in_order(path).map_err(io_failed)?;
    let rejected = journals.damaged(is_in_order);
    if let Some(reason) = rejected.and_then(|index| journals.describe(index, keyspaces)) {
        return damaged(format!("{reason}; {REMEDY}"));
    }
    if let [first, ..] = *journals.emptied() {
        return damaged(format!("{}; {REMEDY}", recovery::emptied(first)));
    }
    recovery::remove_drafts(&database).map_err(io_failed)?;
    journals.make_durable(&database).map_err(io_failed)?;
    recovery::sync_directories(&database).map_err(io_failed)
}

/// `stored` are the keyspaces that were made before. Without workers nothing is flushed or compacted.
pub(super) fn open_database(
    options: &FjallOptions,
    stored: &[&'static str],
    workers: usize,
) -> Result<(Database, Vec<Tree>), OpenError> {
    let failed = |error: fjall::Error| match error {
        fjall::Error::Locked => OpenError::Locked { path: options.path.clone() },
        fjall::Error::Io(source) => OpenError::Io { path: options.path.clone(), source },
        other => OpenError::Recovery { path: options.path.clone(), reason: error_text(&other) },
    };
    let database = Database::builder(options.path.join(DATABASE))
        .cache_size(options.cache_bytes)
        .max_cached_files(Some(options.cached_files))
        .max_journaling_size(JOURNALS_BYTES_MAX)
        .worker_threads_unchecked(workers)
        // The journal syncs on what our batches say, never on its own.
        .manual_journal_persist(true)
        .open()
        .map_err(failed)?;
    // It would be made anew.
    if let Some(name) = stored.iter().find(|name| !database.keyspace_exists(name)) {
        let reason = format!("a keyspace is missing: keyspace=`{name}`; restore a backup");
        return Err(OpenError::Damaged { path: options.path.clone(), reason });
    }
    let file_bytes = compactions::file_bytes(options.min_free_bytes);
    let mut trees = Vec::with_capacity(options.keyspaces.len());
    for keyspace in &options.keyspaces {
        let create = || create_options(options.memtable_bytes, file_bytes);
        let handle = database.keyspace(keyspace.name, create).map_err(failed)?;
        // What a recovery brought back may be deletes.
        trees.push(Tree { handle, deletes: 1.into(), file_bytes });
    }
    Ok((database, trees))
}

/// Stored when a keyspace is created and ignored from then on. LZ4 below the first two levels,
/// where most data is: it halves the disk and costs reads from cache nothing. Blocks of 4 KiB and
/// bloom filters on every level are the defaults: point reads, and inserts that must find nothing.
fn create_options(memtable_bytes: u64, file_bytes: u64) -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(memtable_bytes)
        .manual_journal_persist(true)
        .compaction_strategy(Arc::new(compactions::strategy(file_bytes)))
        // A writer of a file holds the last key of each block until it writes the index, and with a key the block that
        // it was read from: with large values all that the file contains, uncompressed. An index in parts is written
        // part by part.
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
}
