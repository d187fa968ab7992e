//! The engine on disk, over the database of the crate `fjall`.
//!
//! Reads go to snapshots on any thread; writes go through a bounded queue to one commit thread,
//! which writes and syncs them in groups; a housekeeping thread measures space once a tick.
//! Opening is in `open`, the commit thread in `committer` and `group`, the gates before a write
//! in `guard`. A copy of an open store is made in `checkpoint`; `reader` reads a store without these threads, and
//! `writer` fills a new one. `change_log` links the journals into another directory, where `change_reader` reads what
//! was committed.
//!
//! What this engine does not do: it never repairs on its own. After a failed write or sync it takes no more
//! writes in this process, and goes on reading; the operator or the supervisor starts it anew.

mod archive;
mod backpressure;
mod change_log;
mod change_reader;
mod checkpoint;
mod clean_shutdown;
mod commit_queue;
mod committer;
mod compact;
mod compactions;
mod delayed;
mod directory;
mod discard;
mod disk_space;
mod failure;
mod fill_error;
mod group;
mod group_clock;
mod guard;
mod hot_rows;
mod housekeeping;
mod inventory;
mod journal;
mod keyspace_rows;
mod last_durability;
mod links;
mod log_position;
mod logged_change;
mod manifest;
mod marks;
mod obsoletes;
mod open;
mod open_views;
mod options;
mod per_thread;
mod read_cache;
mod read_epochs;
mod readable_rows;
mod reader;
mod reclaim;
mod reclaim_run;
mod recovery;
mod repair;
mod replay;
mod salvage;
mod shared;
mod snapshot;
mod stats;
mod step_output;
mod table_files;
mod tombstones;
mod version_floor;
mod writer;
mod written;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use tokio::sync::oneshot;

pub use self::change_log::{ChangeLog, ChangeLogError, LogEnd};
pub use self::change_reader::{ChangeGroup, ChangeReader};
pub use self::checkpoint::{CheckpointError, CheckpointMade, Checkpointer};
pub use self::compact::{CompactedKeyspace, compact};
pub use self::fill_error::FillError;
pub use self::inventory::journal_bytes;
#[cfg(feature = "testing")]
pub use self::journal::{encode_group, read_journal};
pub use self::links::{drop_links, linked_bytes};
pub use self::log_position::{LogPosition, LogPositionError};
pub use self::logged_change::LoggedChange;
pub use self::options::{
    FjallOptions, MIN_FREE_BYTES_MIN, OpenError, SpaceProbe, SyncObserver, SyncPolicy,
};
pub use self::readable_rows::{UnreadableRange, UnreadableRanges};
pub use self::reader::StoreReader;
pub use self::repair::{JournalLoss, RepairDone, RepairPlan};
pub use self::salvage::{RepairRules, SalvagedKeyspace};
pub use self::stats::EngineStats;
pub use self::table_files::{DamagedFile, FileProblem};
pub use self::writer::StoreWriter;

use self::commit_queue::{CommitSender, commit_queue};
use self::committer::Committer;
use self::disk_space::StoreDisk;
use self::group::PendingChange;
use self::housekeeping::Housekeeper;
use self::read_cache::CachedReads;
use self::reclaim::Reclaimer;
use self::shared::EngineState;
use self::snapshot::FjallSnapshot;
use trestle_kv::limits::Limits;
use trestle_kv::turns::Owner;
use trestle_kv::{
    Change, CommitError, DiskSpace, DiskStatus, Durability, Engine, EngineError, EngineStatus,
    Snapshot, Span, Version,
};
use trestle_model::time::Ticks;

/// The engine on disk. Dropping it ends its threads, after what is queued was committed, and
/// unlocks the directory once the last snapshot was dropped too.
pub struct FjallEngine {
    shared: Arc<EngineState>,
    /// `None` only while it is dropped, as are those of the other threads.
    jobs: Option<CommitSender>,
    housekeeping: Option<std::sync::mpsc::Sender<()>>,
    reclaim: Option<std::sync::mpsc::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl FjallEngine {
    /// Opens a directory, making it if needed. Reads the journals after a crash, about a million
    /// items a second; call it where a thread may block.
    ///
    /// # Errors
    /// Every kind of [`OpenError`].
    pub fn open(options: FjallOptions) -> Result<Self, OpenError> {
        failure::listen();
        let shared = Arc::new(open::open(&options)?);
        let FjallOptions { path, tick, .. } = options;
        let mut housekeeper = Housekeeper { shared: Arc::clone(&shared), tick, drain: None };
        housekeeper.begin();
        let (jobs, queue) = commit_queue();
        let (housekeeping, stop) = std::sync::mpsc::channel();
        let (reclaim, stop_reclaim) = std::sync::mpsc::channel();
        let mut engine = Self {
            jobs: Some(jobs),
            housekeeping: Some(housekeeping),
            reclaim: Some(reclaim),
            threads: Vec::with_capacity(3),
            shared: Arc::clone(&shared),
        };
        let io_failed = |source| OpenError::Io { path: path.clone(), source };
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(io_failed)
        };
        let reclaimer = Reclaimer::new(Arc::clone(&shared), tick);
        let committer = Committer::new(shared);
        let commits = spawn("kv-commit", Box::new(move || committer.run(queue)))?;
        engine.threads.push(commits);
        let ticks = spawn("kv-housekeeping", Box::new(move || housekeeper.run(&stop)))?;
        engine.threads.push(ticks);
        let reclaims = spawn("kv-reclaim", Box::new(move || reclaimer.run(&stop_reclaim)))?;
        engine.threads.push(reclaims);
        Ok(engine)
    }

    /// Whether a directory has a store: [`FjallEngine::open`] makes one where it has none.
    ///
    /// # Errors
    /// [`OpenError::Io`] for a directory that cannot be read.
    pub fn exists(directory: &Path) -> Result<bool, OpenError> {
        let io_failed = |source| OpenError::Io { path: directory.to_owned(), source };
        manifest::exists(directory).map_err(io_failed)
    }

    /// The disk, for files that are written beside the database.
    #[must_use]
    pub fn disk_space(&self) -> DiskSpace {
        Arc::new(StoreDisk(Arc::downgrade(&self.shared)))
    }

    /// Copies of the store while the engine goes on.
    #[must_use]
    pub fn checkpointer(&self) -> Checkpointer {
        Checkpointer(Arc::downgrade(&self.shared))
    }

    /// Links to the journals of the store, for a reader of its changes. Open it with [`FjallOptions::marks_groups`].
    #[must_use]
    pub fn change_log(&self) -> ChangeLog {
        ChangeLog(Arc::downgrade(&self.shared))
    }

    /// What the engine did so far, and what it has to do.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        let to_u64 = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let waiting = self.jobs.as_ref().map_or(0, CommitSender::waiting);
        let database = &self.shared.database;
        let (mut hits, mut misses) = (0, 0);
        for tree in &self.shared.trees {
            let blocks = tree.handle.metrics();
            hits += blocks.block_load_cached_count();
            misses += blocks.block_load_io_count();
        }
        EngineStats {
            queue_depth: to_u64(waiting),
            cache_bytes: database.cache_size(),
            cache_hits: to_u64(hits),
            cache_misses: to_u64(misses),
            write_buffer_bytes: self.shared.measure_buffered(),
            flushes_waiting: to_u64(database.outstanding_flushes()),
            compactions_active: to_u64(database.active_compactions()),
            compaction_time: database.time_compacting(),
            journals: to_u64(database.journal_count()),
            ..self.shared.counters.read()
        }
    }
}

#[async_trait]
impl Engine for FjallEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        Ok(Box::new(FjallSnapshot::new(Arc::clone(&self.shared))))
    }

    async fn commit(&self, mut change: Change) -> Result<Version, CommitError> {
        self.shared.check_running()?;
        change.spec.check(&self.shared.keyspaces, &self.shared.limits)?;
        // Here, so that the one commit thread need not wait for the disk.
        let cached = CachedReads::read(change.spec.reads.keys(), &self.shared);
        let (answer, outcome) = oneshot::channel();
        let jobs = self.jobs.as_ref().expect("the queue is open until the engine is dropped");
        let pending = PendingChange { change, cached, now: self.now(), answer };
        jobs.send(Owner::current(), pending).inspect_err(|rejected| {
            if matches!(rejected, CommitError::Busy { .. }) {
                self.shared.counters.shed();
            }
        })?;
        outcome.await.unwrap_or_else(|_| {
            Err(CommitError::Unknown { reason: "the commit thread ended".into() })
        })
    }

    async fn discard(&self, span: &Span) -> Result<(), EngineError> {
        if span.is_empty() {
            return Ok(());
        }
        let index = self.shared.keyspaces.index_of_span(span)?;
        let (shared, span) = (Arc::clone(&self.shared), span.clone());
        // It waits for compactions under way.
        let discarded = tokio::task::spawn_blocking(move || match shared.trees.get(index) {
            Some(tree) => discard::discard(&shared, tree, &span),
            None => Ok(()),
        });
        let discarded = discarded.await.map_err(|_| EngineError::Unavailable {
            reason: "the removal of files was cut short".into(),
        })?;
        discarded.map_err(|error| shared::read_failed(&error))
    }

    fn limits(&self) -> Limits {
        self.shared.limits
    }

    fn now(&self) -> Ticks {
        self.shared.clock.now()
    }

    fn status(&self) -> EngineStatus {
        EngineStatus {
            name: "fjall",
            durability: match self.shared.durability {
                SyncPolicy::Always => Durability::Always,
                SyncPolicy::Interval(_) => Durability::Interval,
                SyncPolicy::Os => Durability::Os,
            },
            stopped: self.shared.stopped(),
            disk: Some(DiskStatus {
                storage_bytes: self.shared.space.used_bytes(),
                free_bytes: self.shared.space.free_bytes(),
                reserve_bytes: self.shared.space.reserve_bytes(),
                is_space_short: self.shared.space.is_short(),
            }),
            is_read_only: false,
            clock_offset_ms: self.shared.clock.offset_ms(),
        }
    }
}

impl Drop for FjallEngine {
    fn drop(&mut self) {
        drop(self.jobs.take());
        drop(self.housekeeping.take());
        drop(self.reclaim.take());
        for thread in self.threads.drain(..) {
            // The last owner may be a decision that just ran on the commit thread itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}
