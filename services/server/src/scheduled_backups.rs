//! Backups that the server makes by itself, as `backup.target` and `backup.every` set. It runs the commands `backup
//! create` and, with a rule of what is kept, `backup prune`, one at a time; `schedule` decides when, `child` runs
//! them. The store is read, compressed and sent in the process of the command, as if a person had run it.

mod child;
mod reported;
mod schedule;
#[cfg(test)]
pub(crate) mod tests;

use std::{ffi::OsString, io, path::PathBuf, sync::Arc, time::Duration};

use opentelemetry::metrics::Meter;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use trestle_backup::ShippedChanges;
use trestle_model::etag::parse_time;
use trestle_model::time::{Clock, Ticks};
use trestle_runtime::task::Task;

pub(crate) use self::child::{BackupChild, ChildEnd};
use self::{
    reported::{BackupResult, ReportedBackups},
    schedule::BackupSchedule,
};
use crate::{
    compose::Node,
    roles::ROLES,
    settings::{BackupSettings, Settings},
};

/// How often it looks whether a backup is due.
const LOOKS_EVERY: Duration = Duration::from_secs(5);
/// How long a first backup waits for the line that it is to be in.
const LINE_WITHIN: Duration = Duration::from_secs(20);

/// Adds to a node the backups that the settings schedule: none without a target, or without a store on disk.
///
/// # Errors
/// An executable or a working directory that the system does not name.
pub fn add_to(node: &mut Node, settings: &Settings, clock: Arc<dyn Clock>) -> io::Result<()> {
    if let Some(backups) = ScheduledBackups::of(settings, clock, &node.meter)? {
        // A command that runs is ended when the server shuts down.
        let stop = backups.stop.clone();
        node.drains.push(Box::new(move || stop.cancel()));
        node.tasks.push(backups.into_task());
    }
    Ok(())
}

/// See the module.
struct ScheduledBackups {
    child: BackupChild,
    every: Duration,
    max_rate: u64,
    /// The file of the keys that backups are encrypted for.
    encrypt: Option<PathBuf>,
    /// Where the line of continuous backups is noted, if there are some.
    line_dir: Option<PathBuf>,
    /// The line that the newest backup is in: from there on any instant can be restored.
    line: Option<String>,
    /// The arguments of `backup prune`; empty where nothing is pruned.
    keep: Vec<OsString>,
    clock: Arc<dyn Clock>,
    reported: ReportedBackups,
    /// None until it has looked for the newest backup.
    schedule: Option<BackupSchedule>,
    stop: CancellationToken,
}

impl ScheduledBackups {
    fn of(settings: &Settings, clock: Arc<dyn Clock>, meter: &Meter) -> io::Result<Option<Self>> {
        let BackupSettings { max_rate, .. } = settings.backup;
        let Some(target) = settings.backup.target() else { return Ok(None) };
        if !settings.owns_data(ROLES) || settings.storage.ephemeral {
            return Ok(None);
        }
        let every = settings.backup.every().map_err(io::Error::other)?;
        let child = BackupChild::new(&settings.storage.data_dir, target)?;
        let keep = keep_args(&settings.backup);
        let reported = ReportedBackups::new(every, Arc::clone(&clock), meter);
        let (schedule, stop) = (None, CancellationToken::new());
        let data_dir = settings.storage.data_dir.clone();
        let line_dir = settings.backup.continuous_target().map(|_| data_dir);
        let encrypt = settings.backup.encrypt.as_ref().map(std::path::absolute).transpose()?;
        Ok(Some(Self {
            child,
            every,
            max_rate,
            encrypt,
            line_dir,
            line: None,
            keep,
            clock,
            reported,
            schedule,
            stop,
        }))
    }

    fn into_task(self) -> Task {
        let backups = Arc::new(Mutex::new(self));
        Task::new("scheduled-backups", LOOKS_EVERY, move || {
            let backups = Arc::clone(&backups);
            async move {
                backups.lock().await.step().await;
                Ok(false)
            }
        })
    }

    /// Makes a backup if one is due.
    async fn step(&mut self) {
        let mut schedule = match self.schedule.take() {
            Some(schedule) => schedule,
            None => self.begin().await,
        };
        if self.open_line().is_some_and(|line| self.line.as_ref() != Some(&line)) {
            schedule.due_at_once(self.clock.elapsed());
        }
        let is_due = schedule.is_due(self.clock.elapsed());
        let schedule = if is_due { self.back_up(schedule).await } else { schedule };
        self.schedule = Some(schedule);
    }

    /// The line of continuous backups that is open.
    fn open_line(&self) -> Option<String> {
        Some(ShippedChanges::read(self.line_dir.as_ref()?)?.line)
    }

    /// Notes the line that was open when a backup began.
    fn based_on(&mut self, line: Option<String>) {
        if let (Some(data_dir), Some(line)) = (&self.line_dir, &line)
            && let Err(error) = trestle_backup::note_based_line(data_dir, line)
        {
            // The next start makes one backup more.
            warn!(%error, "the line of a backup cannot be noted");
        }
        self.line = line;
    }

    /// Looks for the newest backup at the target. Where it cannot, the first backup reports why.
    async fn begin(&mut self) -> BackupSchedule {
        let (mut newest, mut complete) = (None, None);
        let found = |record: Value| {
            let instant = instant_of(&record);
            newest = newest.max(instant);
            if record.get("state").is_some_and(|state| state == "complete") {
                complete = complete.max(instant);
            }
        };
        let end = self.child.run("list", &[], &self.stop, found).await;
        if let ChildEnd::Failed(reason) = end {
            debug!(reason, "no backups were found");
        }
        if let Some(instant) = complete {
            self.reported.newest(instant);
        }
        self.line = self.line_dir.as_deref().and_then(trestle_backup::based_line);
        let age = newest.map(|newest| self.clock.now().since(newest));
        let mut schedule = BackupSchedule::begin(self.every, self.clock.elapsed(), age);
        if self.line_dir.is_some() && self.line.is_none() {
            // The line of this process, which needs a backup of its own, is about to begin.
            schedule.pause(self.clock.elapsed(), LINE_WITHIN);
        }
        let age_seconds = age.map(|age| age.as_secs());
        info!(newest_age_seconds = age_seconds, every = ?self.every, "backups are scheduled");
        schedule
    }

    async fn back_up(&mut self, mut schedule: BackupSchedule) -> BackupSchedule {
        let (began, mut made, line) = (self.clock.elapsed(), None, self.open_line());
        let args = self.child.create_args(self.max_rate, self.encrypt.as_deref());
        let end = self.child.run("create", &args, &self.stop, |record| made = Some(record)).await;
        let now = self.clock.elapsed();
        let result = match (end, made) {
            (ChildEnd::Stopped, _) => return schedule,
            (ChildEnd::Failed(reason), None) => {
                warn!(reason, "no backup was made");
                BackupResult::Failed
            }
            (ChildEnd::Succeeded, None) => {
                warn!(reason = "the command printed no result", "no backup was made");
                BackupResult::Failed
            }
            // One with damage is a backup of the rest, and the next one is not sooner for it.
            (ChildEnd::Succeeded | ChildEnd::Failed(_), Some(made)) => self.made(&made),
        };
        if result != BackupResult::Failed {
            self.based_on(line);
        }
        self.reported.ended(result, now.saturating_sub(began));
        match result {
            BackupResult::Failed => schedule.failed(now),
            BackupResult::Damaged => schedule.made(began, now),
            BackupResult::Complete => {
                self.prune().await;
                schedule.made(began, self.clock.elapsed());
            }
        }
        schedule
    }

    /// Reports a backup that was made.
    fn made(&self, made: &Value) -> BackupResult {
        let id = made.get("id").and_then(Value::as_str).unwrap_or_default();
        let (rows, objects) = (number_of(made, "rows"), number_of(made, "objects"));
        let (sent_bytes, seconds) =
            (number_of(made, "sent_bytes"), made.get("seconds").and_then(Value::as_f64));
        self.reported.sent(sent_bytes);
        let damaged = count_of(made, "damage");
        if damaged > 0 {
            warn!(
                id,
                rows,
                objects,
                sent_bytes,
                seconds,
                damaged,
                "a backup was made without what could not be read: `trestle backup show` names it"
            );
            return BackupResult::Damaged;
        }
        info!(id, rows, objects, sent_bytes, seconds, "a backup was made");
        if let Some(instant) = instant_of(made) {
            self.reported.newest(instant);
        }
        BackupResult::Complete
    }

    /// Deletes what no rule keeps, if there is a rule.
    async fn prune(&mut self) {
        if self.keep.is_empty() {
            return;
        }
        let mut pruned = None;
        let each = |record| pruned = Some(record);
        match self.child.run("prune", &self.keep, &self.stop, each).await {
            ChildEnd::Stopped => {}
            ChildEnd::Failed(reason) => {
                self.reported.prune_failed();
                warn!(reason, "old backups were not deleted");
            }
            ChildEnd::Succeeded => {
                let pruned: Value = pruned.unwrap_or_default();
                let backups = count_of(&pruned, "backups");
                if backups > 0 {
                    info!(backups, bytes = number_of(&pruned, "bytes"), "old backups were deleted");
                }
            }
        }
    }
}

/// The arguments of the rules of what is kept; empty without a rule.
fn keep_args(settings: &BackupSettings) -> Vec<OsString> {
    let last = settings.keep_last.map(|last| ["--keep-last".to_owned(), last.to_string()]);
    let time = settings.keep_for.clone().map(|time| ["--keep-for".to_owned(), time]);
    last.into_iter().chain(time).flatten().map(OsString::from).collect()
}

/// The instant of a backup; none of one whose manifest cannot be read.
fn instant_of(record: &Value) -> Option<Ticks> {
    parse_time(record.get("instant")?.as_str()?)
}

/// A number of a record; 0 where it has none.
fn number_of(record: &Value, name: &str) -> u64 {
    record.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// How many elements a list of a record has.
fn count_of(record: &Value, name: &str) -> usize {
    record.get(name).and_then(Value::as_array).map_or(0, Vec::len)
}
