//! Opens the store and exposes its state as metrics.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use opentelemetry::{KeyValue, metrics::Meter};
use tracing::info;
use trestle_backup::RESTORING;
use trestle_kv::{DiskSpace, Engine, GroupObserver, GroupWrite, Keyspace, MemoryEngine};
use trestle_kv_fjall::{ChangeLog, Checkpointer, FjallEngine, FjallOptions, OpenError, SyncPolicy};
use trestle_model::time::SystemClock;
use trestle_objects::{ObjectStorage, OpenObjectsError};
use trestle_rpc::exemplar::Exemplars;
use trestle_rpc::semconv::{self, Described};
use trestle_rpc::traced::TracedEngine;
use trestle_runtime::task::Task;

use crate::{
    backups::{BackedUpStore, Backups},
    continuous_backups::{ChangeHandover, FollowedStore},
    observed_stats::ObservedStats,
    process_error::ProcessError,
    roles::{self, ROLES},
    settings::{DurabilitySetting, Settings, StorageSettings},
    slow,
    store_copy::marker,
    store_id,
};

/// How long a store may take to open before that is logged.
const SLOW_RECOVERY: Duration = Duration::from_secs(2);
/// Directory of the engine within the data directory.
pub(crate) const ENGINE_DIR: &str = "kv";

/// The store of the records.
pub struct OpenedStore {
    /// Its engine.
    pub engine: Arc<dyn Engine>,
    /// Its disk; none in memory.
    pub disk: Option<DiskSpace>,
    /// Copies it as it is at one instant; none in memory.
    pub checkpointer: Option<Checkpointer>,
    /// The log of its changes; none in memory.
    pub changes: Option<ChangeLog>,
}

/// Opens the store that the settings name, which keeps up to `cached_files` files open. Its log of changes can be
/// followed if `is_followed`. Blocks while a journal is read.
///
/// # Errors
/// [`ProcessError::Storage`], [`ProcessError::Restoring`], [`ProcessError::Copying`].
pub fn open(
    settings: &StorageSettings,
    (cached_files, is_followed): (usize, bool),
    meter: &Meter,
    exemplars: Exemplars,
) -> Result<OpenedStore, ProcessError> {
    let (engine, disk, checkpointer, changes): (Arc<dyn Engine>, _, _, _) = if settings.ephemeral {
        (Arc::new(MemoryEngine::new(keyspaces())), None, None, None)
    } else {
        check_restored(settings)?;
        check_not_lost(settings)?;
        let options = options(settings, (cached_files, is_followed), meter);
        let recover = || FjallEngine::open(options);
        let engine = slow::watch(SLOW_RECOVERY, || log_recovery(settings), recover);
        let engine = Arc::new(engine?);
        // A copy may have begun in a directory that was empty at the first look.
        check_restored(settings)?;
        observe_engine(meter, &engine);
        let (disk, checkpointer) = (engine.disk_space(), engine.checkpointer());
        let changes = engine.change_log();
        (engine, Some(disk), Some(checkpointer), Some(changes))
    };
    let engine = observed(engine, meter, exemplars);
    Ok(OpenedStore { engine, disk, checkpointer, changes })
}

/// The engine with its metrics and traces.
pub(crate) fn observed(
    engine: Arc<dyn Engine>,
    meter: &Meter,
    exemplars: Exemplars,
) -> Arc<dyn Engine> {
    observe_space(meter, &engine);
    Arc::new(TracedEngine::new(engine, meter, exemplars))
}

/// Rejects a data directory into which a restore or a copy did not finish: what is there looks like a store that lost
/// data.
///
/// # Errors
/// [`ProcessError::Restoring`], [`ProcessError::Copying`].
pub fn check_restored(settings: &StorageSettings) -> Result<(), ProcessError> {
    let found = settings.data_dir.join(RESTORING);
    // One that cannot be read is found by what reads it next.
    if matches!(found.try_exists(), Ok(true)) {
        return Err(ProcessError::Restoring { found });
    }
    let copying = settings.data_dir.join(marker::FILE);
    if matches!(copying.try_exists(), Ok(true)) {
        let text = fs::read_to_string(copying).unwrap_or_default();
        return Err(ProcessError::Copying { from: marker::shown(&text) });
    }
    Ok(())
}

/// The task that responds to the requests of backups of a store on disk. It holds the objects of existing backups from
/// now on, so it is made before anything deletes objects.
///
/// # Errors
/// A data directory that cannot be used.
pub fn backups(
    settings: &StorageSettings,
    store: &OpenedStore,
    objects: Option<&ObjectStorage>,
    meter: &Meter,
) -> Result<Option<Task>, OpenError> {
    let Some(checkpointer) = store.checkpointer.clone() else { return Ok(None) };
    let data_dir = &settings.data_dir;
    let store = BackedUpStore {
        data_dir,
        store_id: store_id::of(data_dir)?,
        engine: Arc::clone(&store.engine),
        checkpointer,
        clock: Arc::new(SystemClock),
    };
    // Without the role of blobs no object is deleted.
    let hold = objects.map(|objects| objects.hold.clone()).unwrap_or_default();
    let failed = |source| OpenError::Io { path: data_dir.clone(), source };
    let backups = Backups::open(store, hold).map_err(failed)?;
    backups.observe(meter);
    Ok(Some(backups.into_task()))
}

/// The task that hands the changes of a store on disk over to `backup follow`, if the settings have continuous backups.
pub fn changes(
    settings: &Settings,
    store: &OpenedStore,
    objects: Option<&ObjectStorage>,
    meter: &Meter,
) -> Option<Task> {
    settings.backup.continuous_target()?;
    let store = FollowedStore {
        data_dir: &settings.storage.data_dir,
        engine: Arc::clone(&store.engine),
        log: store.changes.clone()?,
        hold: objects.map(|objects| objects.hold.clone()).unwrap_or_default(),
    };
    Some(ChangeHandover::open(store, settings.backup.spool_bytes, meter).into_task())
}

/// Rejects a data directory that has objects and no records of them: in a new store their numbers would begin again,
/// and new objects would replace those that a copy of the records still needs.
fn check_not_lost(settings: &StorageSettings) -> Result<(), OpenError> {
    let path = engine_dir(settings);
    if FjallEngine::exists(&path)? {
        return Ok(());
    }
    let io_failed = |source| OpenError::Io { path: settings.data_dir.clone(), source };
    match trestle_objects::objects_in(&settings.data_dir).map_err(io_failed)? {
        None => Ok(()),
        Some(objects) => {
            let objects = objects.display();
            let reason = format!(
                "there is no store, but there are objects of one: put the directory back from a copy, or use \
                 another data directory: objects=`{objects}`"
            );
            Err(OpenError::Damaged { path, reason })
        }
    }
}

/// Logs that the store is not open yet: the banner, which names what the server uses, comes after that.
fn log_recovery(settings: &StorageSettings) {
    let data_dir = data_dir(settings);
    let journal_bytes = trestle_kv_fjall::journal_bytes(&engine_dir(settings)).ok();
    info!(data_dir, journal_bytes, "recovering the store");
}

/// The data directory for people.
pub(crate) fn data_dir(settings: &StorageSettings) -> String {
    let directory = &settings.data_dir;
    std::path::absolute(directory).as_ref().unwrap_or(directory).display().to_string()
}

fn options(
    settings: &StorageSettings,
    (cached_files, marks_groups): (usize, bool),
    meter: &Meter,
) -> FjallOptions {
    let path = engine_dir(settings);
    let synced = semconv::SYNC_DURATION.of_fractions(meter).bind(&[]);
    FjallOptions {
        durability: match settings.durability {
            DurabilitySetting::Always => SyncPolicy::Always,
            DurabilitySetting::Interval => {
                SyncPolicy::Interval(Duration::from_millis(settings.sync_every_ms))
            }
            DurabilitySetting::Os => SyncPolicy::Os,
        },
        cache_bytes: settings.cache_bytes,
        cached_files,
        marks_groups,
        min_free_bytes: settings.min_free_bytes,
        write_buffer_bytes: settings.write_buffer_bytes,
        on_group: group_observer(meter),
        on_sync: Arc::new(move |sync: Duration| synced.record(sync.as_secs_f64())),
        ..FjallOptions::new(path, keyspaces())
    }
}

/// Reports groups as metrics.
pub(crate) fn group_observer(meter: &Meter) -> GroupObserver {
    let changes = semconv::GROUP_SIZE.of_counts(meter).bind(&[]);
    let seconds = semconv::GROUP_DURATION.of_fractions(meter).bind(&[]);
    Arc::new(move |group: GroupWrite| {
        changes.record(group.changes);
        seconds.record(group.took.as_secs_f64());
    })
}

/// Opens the object store: at a URL, in files of the data directory, on the `disk` of the store, or in memory.
///
/// # Errors
/// A store that cannot be used.
pub async fn open_objects(
    settings: &StorageSettings,
    disk: Option<DiskSpace>,
) -> Result<ObjectStorage, OpenObjectsError> {
    if settings.ephemeral {
        return Ok(ObjectStorage::in_memory());
    }
    let url = settings.blob_url().transpose().map_err(OpenObjectsError::Store)?;
    ObjectStorage::open(&settings.data_dir, url.as_ref(), disk).await
}

/// The directory of the engine.
#[must_use]
pub fn engine_dir(settings: &StorageSettings) -> PathBuf {
    settings.data_dir.join(ENGINE_DIR)
}

/// The keyspaces of every role of the product.
#[must_use]
pub fn keyspaces() -> Vec<Keyspace> {
    roles::keyspaces(ROLES)
}

/// Reads the engine when metrics are collected. Holds it weakly, so that metrics keep no store
/// open.
fn observe_space(meter: &Meter, engine: &Arc<dyn Engine>) {
    let gauge = |metric: Described, read: fn(&dyn Engine) -> Option<u64>| {
        let engine = Arc::downgrade(engine);
        let _ = meter
            .u64_observable_gauge(metric.name)
            .with_unit(metric.unit)
            .with_description(metric.help)
            .with_callback(move |observer| {
                if let Some(value) = engine.upgrade().and_then(|engine| read(&*engine)) {
                    observer.observe(value, &[]);
                }
            })
            .build();
    };
    gauge(semconv::STORAGE_BYTES, |engine| {
        Some(engine.status().disk.map_or(0, |disk| disk.storage_bytes))
    });
    gauge(semconv::FREE_BYTES, |engine| engine.status().disk.map(|disk| disk.free_bytes));
    gauge(semconv::RESERVE_BYTES, |engine| engine.status().disk.map(|disk| disk.reserve_bytes));
    gauge(semconv::STORAGE_READ_ONLY, |engine| Some(u64::from(engine.status().is_space_short())));
    gauge(semconv::STORAGE_STOPPED, |engine| Some(u64::from(engine.status().stopped.is_some())));
    observe_clock(meter, engine);
}

fn observe_clock(meter: &Meter, engine: &Arc<dyn Engine>) {
    let (metric, engine) = (semconv::CLOCK_OFFSET, Arc::downgrade(engine));
    let gauge = meter.f64_observable_gauge(metric.name).with_unit(metric.unit);
    let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
        if let Some(engine) = engine.upgrade() {
            let seconds = engine.status().clock_offset_ms as f64 / 1000.0;
            observer.observe(seconds, &[]);
        }
    });
    let _ = gauge.build();
}

fn observe_engine(meter: &Meter, engine: &Arc<FjallEngine>) {
    let observed = ObservedStats::new(meter, engine, |engine| engine.stats());
    observed.gauge(semconv::COMMIT_QUEUE, |stats| stats.queue_depth);
    observed.counter(semconv::COMMIT_BYTES, |stats| stats.bytes);
    observed.counter(semconv::COMMIT_SHED, |stats| stats.shed);
    observed.counter(semconv::STALLS, |stats| stats.stalls);
    observed.seconds(semconv::STALL_SECONDS, |stats| stats.stall_time);
    observed.gauge(semconv::CACHE_BYTES, |stats| stats.cache_bytes);
    observed.counters(semconv::CACHE_BLOCKS, |stats| {
        let result = |result: &'static str| vec![KeyValue::new(semconv::CACHE_RESULT, result)];
        vec![(stats.cache_hits, result("hit")), (stats.cache_misses, result("miss"))]
    });
    observed.gauge(semconv::WRITE_BUFFER_BYTES, |stats| stats.write_buffer_bytes);
    observed.gauge(semconv::FLUSHES, |stats| stats.flushes_waiting);
    observed.gauge(semconv::COMPACTIONS, |stats| stats.compactions_active);
    observed.seconds(semconv::COMPACTION_SECONDS, |stats| stats.compaction_time);
    observed.gauge(semconv::JOURNALS, |stats| stats.journals);
}
