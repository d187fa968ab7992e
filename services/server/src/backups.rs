//! What the server does for a backup. The command `backup create` runs beside it and copies; the server gives it the
//! records of one instant, as a checkpoint of hard links, and keeps the objects that they name until the copy ends.
//!
//! Requests and responses are files in a directory of the data directory, see [`spool`]: only who may write the data
//! directory can request a checkpoint.

mod spool;
#[cfg(test)]
mod tests;

use std::{
    error::Error as _,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use opentelemetry::metrics::Meter;
use tracing::info;
use trestle_backup::{CheckpointAnswer, SPOOL};
use trestle_kv::Engine;
use trestle_kv_fjall::Checkpointer;
use trestle_model::time::Clock;
use trestle_objects::ObjectHold;
use trestle_rpc::semconv;
use trestle_runtime::task::Task;
use uuid::Uuid;

use self::spool::{RequestAction, SpooledRequest};
use crate::process_error::with_causes;

/// How often the server looks for requests.
const LOOKS_EVERY: Duration = Duration::from_millis(250);
/// How long it does not look after it failed: the file system is likely to fail again.
const FAILED_FOR: Duration = Duration::from_secs(10);
/// Most checkpoints at a time: each keeps deleted data from being freed.
const KEPT_MAX: u64 = 4;
const TOO_MANY: &str = "too many backups at once: wait until another one has ended";
const SPACE_SHORT: &str =
    "disk space is short: the checkpoint was removed, since it keeps deleted data from being freed";

/// Responds to the requests of backups of a data directory.
pub(crate) struct Backups {
    /// The directory of the requests.
    spool: PathBuf,
    store_id: Uuid,
    engine: Arc<dyn Engine>,
    checkpointer: Checkpointer,
    clock: Arc<dyn Clock>,
    hold: ObjectHold,
    /// How many checkpoints there are.
    kept: Arc<AtomicU64>,
    /// When it looks again after a failure.
    not_before: Mutex<Option<Instant>>,
}

/// The store that is backed up.
pub(crate) struct BackedUpStore<'a> {
    /// Its data directory.
    pub(crate) data_dir: &'a Path,
    /// The id of the data directory.
    pub(crate) store_id: Uuid,
    /// Its engine.
    pub(crate) engine: Arc<dyn Engine>,
    /// Makes checkpoints of the engine.
    pub(crate) checkpointer: Checkpointer,
    /// The clock by which files have their times.
    pub(crate) clock: Arc<dyn Clock>,
}

impl Backups {
    /// Holds the objects that the checkpoints of earlier processes need, before the first delete of this one.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub(crate) fn open(store: BackedUpStore<'_>, hold: ObjectHold) -> io::Result<Self> {
        let BackedUpStore { data_dir, store_id, engine, checkpointer, clock } = store;
        let spool = data_dir.join(SPOOL);
        let (kept, not_before) = (Arc::default(), Mutex::default());
        let backups = Self { spool, store_id, engine, checkpointer, clock, hold, kept, not_before };
        let requests = SpooledRequest::every(&backups.spool, backups.clock.now())?;
        backups.count(requests.iter().map(|request| request.state.action(false)));
        Ok(backups)
    }

    /// Reports how many checkpoints there are.
    pub(crate) fn observe(&self, meter: &Meter) {
        let (metric, kept) = (semconv::BACKUP_HOLDS, Arc::clone(&self.kept));
        let gauge = meter.u64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            observer.observe(kept.load(Ordering::Relaxed), &[]);
        });
        let _ = gauge.build();
    }

    /// Looks for requests, and responds to them.
    pub(crate) fn into_task(self) -> Task {
        let backups = Arc::new(self);
        Task::new("backups", LOOKS_EVERY, move || {
            let backups = Arc::clone(&backups);
            // Files are written and linked, which may take seconds.
            let step = tokio::task::spawn_blocking(move || backups.step_unless_failed());
            async move { Ok(step.await??) }
        })
    }

    fn step_unless_failed(&self) -> io::Result<bool> {
        let mut not_before = self.not_before.lock().unwrap_or_else(PoisonError::into_inner);
        if not_before.is_some_and(|time| Instant::now() < time) {
            return Ok(false);
        }
        let step = self.step();
        *not_before = step.is_err().then(|| Instant::now() + FAILED_FOR);
        step
    }

    /// Looks at every request, and makes at most one checkpoint. Returns whether another request may wait.
    ///
    /// # Errors
    /// The first error. Requests after it were looked at too.
    fn step(&self) -> io::Result<bool> {
        let is_short = self.engine.status().is_space_short();
        let (mut due, mut failed, mut remaining) = (None, Ok(()), Vec::new());
        for request in SpooledRequest::every(&self.spool, self.clock.now())? {
            match self.examine(&request, is_short) {
                Ok(action) => {
                    remaining.push(action);
                    if action == RequestAction::Make && due.is_none() {
                        due = Some(request);
                    }
                }
                Err(error) => {
                    // What could not be removed may be needed.
                    remaining.push(RequestAction::Keep);
                    failed = failed.and(Err(error));
                }
            }
        }
        let kept = self.count(remaining.into_iter());
        failed?;
        match due {
            None => Ok(false),
            Some(request) if kept >= KEPT_MAX => request.fail(TOO_MANY).map(|()| true),
            // Deletes that began before the hold are in progress.
            Some(_) if !self.hold.is_effective() => Ok(false),
            Some(request) => self.make(&request).map(|()| true),
        }
    }

    /// Removes what is not needed of a request. Returns what remains to be done about it.
    fn examine(&self, request: &SpooledRequest, is_short: bool) -> io::Result<RequestAction> {
        if request.state.is_over() && request.remove()? {
            info!(id = request.id, "removed a backup that ended or was abandoned");
            return Ok(RequestAction::Leave);
        }
        match request.state.action(is_short) {
            RequestAction::End => request.fail(SPACE_SHORT).map(|()| RequestAction::Leave),
            RequestAction::Discard => request.discard().map(|()| RequestAction::Leave),
            action => Ok(action),
        }
    }

    /// Counts the checkpoints, and holds objects while there is one, or is to be one.
    fn count(&self, actions: impl Iterator<Item = RequestAction>) -> u64 {
        let (mut kept, mut is_needed) = (0, false);
        for action in actions {
            is_needed |= matches!(action, RequestAction::Keep | RequestAction::Make);
            kept += u64::from(action == RequestAction::Keep);
        }
        self.hold.set(is_needed);
        self.kept.store(kept, Ordering::Relaxed);
        kept
    }

    /// Makes the checkpoint of a request.
    fn make(&self, request: &SpooledRequest) -> io::Result<()> {
        // A process that was killed may have left a part of one.
        request.discard()?;
        let began = Instant::now();
        // All that was acknowledged by now is in it; the newest change may be long ago.
        let now = self.engine.now();
        let made = self.checkpointer.make(&request.checkpoint());
        let made =
            made.map_err(|error| with_causes(error.to_string(), error.source())).and_then(|made| {
                let at = made.at.max(now);
                let answer = CheckpointAnswer::new(at, made.at, self.store_id.to_string());
                let reported = request.succeed(&answer.text());
                reported.map_err(|error| format!("the response cannot be written: {error}"))
            });
        match made {
            Ok(()) => {
                self.kept.fetch_add(1, Ordering::Relaxed);
                let milliseconds = began.elapsed().as_millis();
                info!(id = request.id, milliseconds, "made a checkpoint for a backup");
                Ok(())
            }
            Err(reason) => request.fail(&reason),
        }
    }
}
