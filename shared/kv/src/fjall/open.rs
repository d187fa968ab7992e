//! Opening a directory.
//!
//! Layout: `LOCK` (held while open), `MANIFEST`, `CREATING` (only while it is made), `CLOSED` (only
//! while it is closed, after a clean shutdown), `db` (fjall).
//! A directory is made in an order that distinguishes a crash at any instant from a loss of files:
//! `CREATING` first, then the database, then the manifest, then `CREATING` is removed. A
//! database without a manifest is removed if there is `CREATING`, as nothing in it was ever
//! acknowledged, and refused otherwise.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use fjall::{Database, KeyspaceCreateOptions};

use super::clean_shutdown;
use super::guard::SpaceGuard;
use super::inventory::{self, DATABASE};
use super::journals;
use super::manifest::{self, ManifestVerdict};
use super::options::{FjallOptions, OpenError};
use super::shared::{EngineParts, EngineState, Tree};
use super::version_floor;
use crate::Keyspaces;

const LOCK: &str = "LOCK";
const CREATING: &str = "CREATING";

/// Sealed journals from which on the keyspaces that hold them back are flushed: two of those of 64 MiB
/// that the database seals, so that a busy keyspace has flushed on its own what the oldest holds,
/// and only idle ones are made to. One made the busy one flush half memtables too, which cost
/// batches 12 to 25 % of their rate. A start after a crash reads every item of every journal, at
/// about a microsecond each; rows of a queue are so small that 256 MiB took six seconds.
const JOURNALS_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Writes of a keyspace that are gathered before they are sorted to disk. Several are in memory under
/// load, so this is most of what the engine takes beside the cache: 64 MiB took it past 300 MiB on
/// a table of 1 GiB. Smaller ones flush and compact more often, without better latencies.
const MEMTABLE_BYTES_MAX: u64 = 48 * 1024 * 1024;

/// Threads that flush and compact. With more than one, fjall keeps the first for flushes, and that one
/// spins on the queue of work for as long as another compacts: half of two cores under sustained
/// writes. Without it batches ran 29 % faster for 36 % less processor time, with the same longest
/// waits; compactions run one at a time either way.
const WORKERS: usize = 1;

pub(super) fn open(options: &FjallOptions) -> Result<EngineState, OpenError> {
    let keyspaces = Keyspaces::new(options.keyspaces.clone())
        .map_err(|reason| OpenError::Options { reason })?;
    let path = &options.path;
    let io_failed = |source| OpenError::Io { path: path.clone(), source };
    fs::create_dir_all(path).map_err(io_failed)?;
    let lock = lock(path)?;
    let verdict = manifest::check(path, &options.keyspaces).map_err(io_failed)?;
    let stored = match &verdict {
        ManifestVerdict::Same => options.keyspaces.iter().map(|keyspace| keyspace.name).collect(),
        ManifestVerdict::Grown(names) => names.clone(),
        ManifestVerdict::Absent => {
            start_creating(path)?;
            Vec::new()
        }
        ManifestVerdict::Unfit(reason) => {
            return Err(OpenError::Manifest { path: path.clone(), reason: reason.clone() });
        }
    };
    let unclear = if stored.is_empty() { Vec::new() } else { check_parts(path, stored.len())? };
    let marker = clean_shutdown::take(path).map_err(io_failed)?;
    let opened = open_database(options, &stored);
    if let (Err(_), Some(marker)) = (&opened, marker) {
        // Nothing was written since; the next start is to look again.
        clean_shutdown::put(path, &marker).map_err(io_failed)?;
    }
    let (database, trees) = opened?;
    report_dropped(&unclear);
    if verdict != ManifestVerdict::Same {
        // Before the manifest names them.
        let folders = path.join(DATABASE).join(inventory::KEYSPACES);
        File::open(folders).and_then(|folders| folders.sync_all()).map_err(io_failed)?;
        manifest::write(path, &options.keyspaces).map_err(io_failed)?;
    }
    remove_if_there(&path.join(CREATING)).map_err(io_failed)?;
    let version_floor = version_floor::read(&trees)
        .map_err(|reason| OpenError::Damaged { path: path.clone(), reason })?;
    Ok(EngineState::new(EngineParts {
        keyspaces,
        clock: std::sync::Arc::clone(&options.clock),
        version_floor,
        trees,
        database,
        path: path.clone(),
        durability: options.durability,
        space: SpaceGuard::new(options.min_free_bytes),
        on_group: std::sync::Arc::clone(&options.on_group),
        on_sync: std::sync::Arc::clone(&options.on_sync),
        on_point: options.on_point.clone(),
        lock,
    }))
}

/// A journal that may have a torn end, and how far it was written.
struct Unclear {
    path: PathBuf,
    written: u64,
}

/// Whether the parts of a finished store of so many keyspaces are there, and as a clean
/// shutdown left them. After any other end: the journals, whose last write may be torn.
fn check_parts(path: &Path, keyspaces: usize) -> Result<Vec<Unclear>, OpenError> {
    let io_failed = |source| OpenError::Io { path: path.to_owned(), source };
    let damaged = |reason: String| Err(OpenError::Damaged { path: path.to_owned(), reason });
    let database = path.join(DATABASE);
    if let Some(missing) = inventory::missing(&database, keyspaces).map_err(io_failed)? {
        return damaged(format!("{missing}; restore a backup"));
    }
    match clean_shutdown::check(path, &database).map_err(io_failed)? {
        clean_shutdown::MarkerVerdict::Intact => return Ok(Vec::new()),
        clean_shutdown::MarkerVerdict::Damaged(reason) => {
            let marker = path.join(clean_shutdown::FILE);
            let marker = marker.display();
            return damaged(format!(
                "{reason}; restore a backup, or remove `{marker}` to open what can be read up to \
                 there, if that is enough"
            ));
        }
        clean_shutdown::MarkerVerdict::Absent => {}
    }
    let unclear = |number| {
        let path = database.join(journals::file_name(number));
        let written = journals::written(&File::open(&path)?)?;
        Ok(Unclear { path, written })
    };
    let numbers = journals::list(&database).map_err(io_failed)?;
    numbers.into_iter().map(unclear).collect::<io::Result<_>>().map_err(io_failed)
}

/// The database cuts a journal behind the last batch that it can read whole.
fn report_dropped(journals: &[Unclear]) {
    for Unclear { path, written } in journals {
        // One that was not needed any more may have been removed.
        let kept = fs::metadata(path).map_or(*written, |file| file.len());
        if kept < *written {
            let (path, dropped) = (path.display(), *written - kept);
            tracing::warn!(%path, dropped, kept, "end of a journal cannot be read and was dropped");
        }
    }
}

/// Our own lock, as the one of the database does not cover the manifest, and waits before it
/// gives up.
fn lock(path: &Path) -> Result<File, OpenError> {
    let io_failed = |source| OpenError::Io { path: path.to_owned(), source };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK))
        .map_err(io_failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(io_failed(source)),
    }
}

fn start_creating(path: &Path) -> Result<(), OpenError> {
    let io_failed = |source| OpenError::Io { path: path.to_owned(), source };
    let mark = path.join(CREATING);
    if mark.try_exists().map_err(io_failed)? {
        match fs::remove_dir_all(path.join(DATABASE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_failed(error)),
            _ => return clean_shutdown::take(path).map(drop).map_err(io_failed),
        }
    }
    for entry in fs::read_dir(path).map_err(io_failed)? {
        let name = entry.map_err(io_failed)?.file_name();
        if name != LOCK {
            let found = name.display();
            let reason = format!("the directory holds something, but no manifest: found=`{found}`");
            return Err(OpenError::Manifest { path: path.to_owned(), reason });
        }
    }
    let synced = File::create(mark).and_then(|file| file.sync_all());
    synced.and_then(|()| File::open(path)?.sync_all()).map_err(io_failed)
}

/// `stored` are the keyspaces that were made before.
fn open_database(
    options: &FjallOptions,
    stored: &[&'static str],
) -> Result<(Database, Vec<Tree>), OpenError> {
    let failed = |error: fjall::Error| match error {
        fjall::Error::Locked => OpenError::Locked { path: options.path.clone() },
        fjall::Error::Io(source) => OpenError::Io { path: options.path.clone(), source },
        other => OpenError::Recovery { path: options.path.clone(), source: Box::new(other) },
    };
    let database = Database::builder(options.path.join(DATABASE))
        .cache_size(options.cache_bytes)
        .max_journaling_size(JOURNALS_BYTES_MAX)
        .worker_threads(WORKERS)
        // The journal syncs on what our batches say, never on its own.
        .manual_journal_persist(true)
        .open()
        .map_err(failed)?;
    // It would be made anew.
    if let Some(name) = stored.iter().find(|name| !database.keyspace_exists(name)) {
        let reason = format!("a keyspace is missing: keyspace=`{name}`; restore a backup");
        return Err(OpenError::Damaged { path: options.path.clone(), reason });
    }
    let mut trees = Vec::with_capacity(options.keyspaces.len());
    for keyspace in &options.keyspaces {
        let handle = database.keyspace(keyspace.name, create_options).map_err(failed)?;
        trees.push(Tree { handle });
    }
    Ok((database, trees))
}

/// Stored when a keyspace is created and ignored from then on. LZ4 below the first two levels,
/// where most data is: it halves the disk and costs reads from cache nothing. Blocks of 4 KiB and
/// bloom filters on every level are the defaults: point reads, and inserts that must find nothing.
fn create_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES_MAX)
        .manual_journal_persist(true)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
