//! What an operator and a service choose when they open an engine, and how opening fails.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trestle_kv::point::PointHook;
use trestle_kv::{GroupObserver, Keyspace};
use trestle_model::time::{Clock, SystemClock};

/// Bytes of a memtable. A few are in memory under load, for each keyspace that is written. Bigger ones flush and
/// compact less often, at the same rate.
pub(super) const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;

/// Smallest useful reserve of free space, in bytes: what deletes leave is a memtable, and they need room above that.
pub const MIN_FREE_BYTES_MIN: u64 = 4 * MEMTABLE_BYTES;

/// When a commit is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// After its group is on stable storage.
    Always,
    /// After it was handed to the operating system, which a sync follows at this interval. A crash
    /// of the machine loses at most what was answered within about one interval.
    Interval(Duration),
    /// After it was handed to the operating system. A crash of the machine loses what the
    /// operating system had not written on its own; a crash of the process loses nothing.
    Os,
}

/// Measures how many bytes are free for data under a path.
pub type SpaceProbe = Arc<dyn Fn(&Path) -> io::Result<u64> + Send + Sync>;

/// Receives the duration of each sync of the journal. Called on the commit thread, so it must be quick.
pub type SyncObserver = Arc<dyn Fn(Duration) + Send + Sync>;

/// How to open a [`crate::FjallEngine`].
///
/// Everything here may differ from one start to the next. What fjall stores with a keyspace when
/// it is created (block size, compression) and later ignores silently is therefore no option but a
/// constant; the memtable size is an option for tests alone.
#[derive(Clone)]
pub struct FjallOptions {
    /// Directory of the engine; created if it is not there. Nothing else may live in it.
    pub path: PathBuf,
    /// Every keyspace. New ones may be added later, none may be left out or change its kinds.
    pub keyspaces: Vec<Keyspace>,
    /// When a commit is answered. Default: always after a sync.
    pub durability: SyncPolicy,
    /// Memory for blocks read from disk, in bytes, shared by the keyspaces. Default: 128 MiB.
    pub cache_bytes: u64,
    /// Most files of data that are kept open; scans and compactions open more for as long as they run.
    /// Default: 900.
    pub cached_files: usize,
    /// Free space below which only changes that remove keys are accepted, in bytes, at least [`MIN_FREE_BYTES_MIN`]; 0
    /// disables the check. Compaction needs room while it works, so a disk filled to the last byte is hard to free.
    /// Default: 512 MiB.
    pub min_free_bytes: u64,
    /// Bytes of a memtable from which on it is flushed. Default: 16 MiB. Small ones make tests flush and compact
    /// often.
    pub memtable_bytes: u64,
    /// Most bytes in the memtables of all keyspaces; changes wait where a keyspace has more than its part, and are
    /// rejected after ten seconds. In memory they take up to twice that. Default: 64 MiB.
    pub write_buffer_bytes: u64,
    /// Whether each group records its version, and each discard its span, in a row of the engine's own, so that
    /// [`crate::ChangeReader`] can read the journals. Default: false.
    pub marks_groups: bool,
    /// How often the engine looks after itself: heartbeats, free space. Default: one second.
    pub tick: Duration,
    /// Where versions and time come from. Default: the clock of the machine.
    pub clock: Arc<dyn Clock>,
    /// Measures free space. Default: the file system.
    pub space_probe: SpaceProbe,
    /// Observes groups. Default: nothing.
    pub on_group: GroupObserver,
    /// Observes syncs. Default: nothing.
    pub on_sync: SyncObserver,
    /// Steps in at points of a commit, for tests. Default: none.
    pub on_point: Option<PointHook>,
}

impl FjallOptions {
    /// The defaults for a directory.
    pub fn new(path: impl Into<PathBuf>, keyspaces: Vec<Keyspace>) -> Self {
        Self {
            path: path.into(),
            keyspaces,
            durability: SyncPolicy::Always,
            cache_bytes: 128 * 1024 * 1024,
            cached_files: 900,
            min_free_bytes: 512 * 1024 * 1024,
            memtable_bytes: MEMTABLE_BYTES,
            write_buffer_bytes: 64 * 1024 * 1024,
            marks_groups: false,
            tick: Duration::from_secs(1),
            clock: Arc::new(SystemClock),
            space_probe: Arc::new(file_system_space),
            on_group: Arc::new(|_| {}),
            on_sync: Arc::new(|_| {}),
            on_point: None,
        }
    }
}

/// Free space as the file system reports it to users without privileges.
fn file_system_space(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// An engine that could not be opened. What is rejected is not changed on disk, unless the directory was new.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another engine, in this process or another, has the directory open.
    #[error("storage is open elsewhere: path=`{}`; stop the server that uses it", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The options contradict themselves.
    #[error("storage options are wrong: {reason}")]
    Options {
        /// Which, and how.
        reason: String,
    },
    /// The directory holds something else, or data of another version or layout.
    #[error("storage cannot be used: path=`{}`, {reason}", path.display())]
    Manifest {
        /// The directory.
        path: PathBuf,
        /// What was found and what was expected.
        reason: String,
    },
    /// Something is missing of what was there, or is not as it was left.
    #[error("storage is damaged: path=`{}`, {reason}", path.display())]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// What, and what can be done.
        reason: String,
    },
    /// The file system rejected.
    #[error("storage cannot be accessed: path=`{}`", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The database under the engine could not be opened or recovered.
    #[error(
        "storage cannot be recovered: path=`{}`, a file of a keyspace is damaged or missing: {reason}; \
         restore a backup",
        path.display()
    )]
    Recovery {
        /// The directory.
        path: PathBuf,
        /// The error of the database.
        reason: String,
    },
    /// The store was opened, and a compaction of it failed; what it holds is unchanged.
    #[error("storage cannot be compacted: path=`{}`, keyspace=`{keyspace}`", path.display())]
    Compaction {
        /// The directory.
        path: PathBuf,
        /// The keyspace that was compacted.
        keyspace: &'static str,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
