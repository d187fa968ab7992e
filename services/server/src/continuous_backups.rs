//! Continuous backups, as `backup.continuous` sets. The server links the journals of its store into a directory, and
//! notes how far everything is committed; `trestle backup follow`, which it runs (`follower`), sends what they have.
//! Nothing is done on the path of a change but that its group has its version.
//!
//! Links keep the space of journals until their changes are at the target. Where they have more than
//! `backup.spool_bytes`, or space is short, they are given up: then there is a gap, and never a store that stops.
//! Objects are deleted only while what names them has arrived, unless changes were given up.

mod follower;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use opentelemetry::metrics::{Counter, Meter};
use tracing::warn;
use trestle_backup::{CHANGES, ChangesEnd, ShippedChanges};
use trestle_kv::Engine;
use trestle_kv_fjall::{ChangeLog, LogPosition, drop_links, linked_bytes};
use trestle_model::time::Ticks;
use trestle_objects::ObjectHold;
use trestle_rpc::semconv::{self, Described};
use trestle_runtime::task::Task;

pub use self::follower::add_to;

/// How often the end of what is committed is noted.
const NOTES_EVERY: Duration = Duration::from_millis(500);
/// How late changes may arrive before objects are held: less than the shortest time for which deleted objects are kept.
const HOLDS_AFTER: Duration = Duration::from_secs(30);

/// Hands the changes of a store over.
pub(crate) struct ChangeHandover {
    data_dir: PathBuf,
    log: ChangeLog,
    engine: Arc<dyn Engine>,
    hold: ObjectHold,
    spool_bytes: u64,
    /// Another number after journals were given up.
    epoch: Mutex<u64>,
    /// The time of the engine at the start.
    began: Ticks,
    reported: ReportedChanges,
}

/// The store whose changes are handed over.
pub(crate) struct FollowedStore<'a> {
    /// Its data directory.
    pub(crate) data_dir: &'a Path,
    /// Its engine.
    pub(crate) engine: Arc<dyn Engine>,
    /// The log of its changes.
    pub(crate) log: ChangeLog,
    /// Keeps its objects.
    pub(crate) hold: ObjectHold,
}

impl ChangeHandover {
    /// Goes on with the epoch of the process before. Objects are held until the changes before the start have arrived.
    pub(crate) fn open(store: FollowedStore<'_>, spool_bytes: u64, meter: &Meter) -> Self {
        let FollowedStore { data_dir, engine, log, hold } = store;
        let epoch = ChangesEnd::read(data_dir).map_or(0, |end| end.epoch);
        let (began, reported) = (engine.now(), ReportedChanges::new(meter));
        if ShippedChanges::read(data_dir).is_some_and(|shipped| shipped.epoch == epoch) {
            hold.set_deadline(Some(Instant::now()));
        }
        let (data_dir, epoch) = (data_dir.to_owned(), Mutex::new(epoch));
        let handover = Self { data_dir, log, engine, hold, spool_bytes, epoch, began, reported };
        // Before the first write: a recovery writes journals anew, in place of those that are linked.
        if let Err(error) = handover.step() {
            warn!(%error, "changes are not handed over");
        }
        handover
    }

    /// Notes what was committed, again and again.
    pub(crate) fn into_task(self) -> Task {
        let handover = Arc::new(self);
        Task::new("changes", NOTES_EVERY, move || {
            let handover = Arc::clone(&handover);
            // Files are linked and written.
            let step = tokio::task::spawn_blocking(move || handover.step());
            async move {
                step.await??;
                Ok(false)
            }
        })
    }

    fn step(&self) -> io::Result<()> {
        let status = self.engine.status();
        if status.stopped.is_some() {
            return Ok(());
        }
        let links = self.data_dir.join(CHANGES);
        let end = self.log.link(&links).map_err(io::Error::other)?;
        let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shipped = ShippedChanges::read(&self.data_dir).filter(|it| it.epoch == *epoch);
        if let Some(position) = shipped.as_ref().and_then(|shipped| shipped.next.position()) {
            drop_links(&links, position)?;
        }
        let at = shipped.as_ref().and_then(|shipped| Ticks::new(shipped.at(&self.data_dir)));
        let lag = end.now.since(at.unwrap_or(self.began));
        let bytes = linked_bytes(&links)?;
        let is_late = bytes > 0 || (at.is_some() && lag > HOLDS_AFTER);
        if bytes > self.spool_bytes || (status.is_space_short() && is_late) {
            self.give_up(&links, end.position, bytes)?;
            *epoch += 1;
            shipped = None;
        }
        let committed = ChangesEnd {
            position: end.position.to_string(),
            newest: end.newest.get(),
            now: end.now.get(),
            epoch: *epoch,
        };
        committed.write(&self.data_dir)?;
        self.hold.set_deadline(shipped.map(|_| Instant::now() + HOLDS_AFTER.saturating_sub(lag)));
        self.reported.set(lag, bytes);
        Ok(())
    }

    /// Frees the journals that only the links keep.
    fn give_up(&self, links: &Path, end: LogPosition, bytes: u64) -> io::Result<()> {
        warn!(
            bytes,
            most = self.spool_bytes,
            "changes that were not sent to the backup target were given up: instants from then on cannot be restored \
             until the next backup"
        );
        self.reported.gaps.add(1, &[]);
        drop_links(links, end)
    }
}

/// The metrics.
struct ReportedChanges {
    gaps: Counter<u64>,
    lag_ms: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl ReportedChanges {
    fn new(meter: &Meter) -> Self {
        let gaps = semconv::backup_gaps(meter);
        gaps.add(0, &[]);
        let (lag_ms, bytes) = (Arc::default(), Arc::default());
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of a process")]
        observe(meter, semconv::BACKUP_LAG, &lag_ms, |lag_ms| lag_ms as f64 / 1000.0);
        #[expect(clippy::cast_precision_loss, reason = "bytes of a disk")]
        observe(meter, semconv::BACKUP_SPOOL, &bytes, |bytes| bytes as f64);
        Self { gaps, lag_ms, bytes }
    }

    fn set(&self, lag: Duration, bytes: u64) {
        self.lag_ms.store(u64::try_from(lag.as_millis()).unwrap_or(u64::MAX), Relaxed);
        self.bytes.store(bytes, Relaxed);
    }
}

fn observe(meter: &Meter, metric: Described, value: &Arc<AtomicU64>, read: fn(u64) -> f64) {
    let value = Arc::clone(value);
    let gauge = meter.f64_observable_gauge(metric.name).with_unit(metric.unit);
    let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
        observer.observe(read(value.load(Relaxed)), &[]);
    });
    let _ = gauge.build();
}
