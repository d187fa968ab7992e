//! The metrics of scheduled backups.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter},
};
use trestle_model::time::{Clock, Ticks};
use trestle_rpc::semconv::{self, Described};

/// What a run of `backup create` made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackupResult {
    /// A backup of everything.
    Complete,
    /// A backup without what could not be read.
    Damaged,
    /// None.
    Failed,
}

impl BackupResult {
    fn label(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Damaged => "damaged",
            Self::Failed => "failed",
        }
    }
}

/// The result of a prune that failed.
const PRUNE_FAILED: &str = "prune_failed";

/// See the module.
pub(super) struct ReportedBackups {
    runs: Counter<u64>,
    sent: Counter<u64>,
    clock: Arc<dyn Clock>,
    last: Arc<Mutex<LastBackup>>,
}

struct LastBackup {
    /// When, by [`Clock::elapsed`], the newest complete backup had the age 0; at first, the start.
    fresh_at: Duration,
    /// The age that it had at the start.
    age: Duration,
    took: Option<Duration>,
}

impl ReportedBackups {
    /// Reports on this meter. Until a backup is found or made, the age is that of the process.
    pub(super) fn new(every: Duration, clock: Arc<dyn Clock>, meter: &Meter) -> Self {
        let (runs, sent) = (semconv::backup_runs(meter), semconv::backup_sent(meter));
        for result in [BackupResult::Complete, BackupResult::Damaged, BackupResult::Failed] {
            runs.add(0, &[label(result.label())]);
        }
        runs.add(0, &[label(PRUNE_FAILED)]);
        sent.add(0, &[]);
        let last = LastBackup { fresh_at: clock.elapsed(), age: Duration::ZERO, took: None };
        let reported = Self { runs, sent, clock, last: Arc::new(Mutex::new(last)) };
        reported.observe(meter, semconv::BACKUP_AGE, LastBackup::age_seconds);
        reported.observe(meter, semconv::BACKUP_DURATION, |last, _| {
            last.took.map(|took| took.as_secs_f64())
        });
        reported.observe(meter, semconv::BACKUP_INTERVAL, move |_, _| Some(every.as_secs_f64()));
        reported
    }

    fn observe(
        &self,
        meter: &Meter,
        metric: Described,
        read: impl Fn(&LastBackup, Duration) -> Option<f64> + Send + Sync + 'static,
    ) {
        let (last, clock) = (Arc::clone(&self.last), Arc::clone(&self.clock));
        let gauge = meter.f64_observable_gauge(metric.name).with_unit(metric.unit);
        let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
            let last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(value) = read(&last, clock.elapsed()) {
                observer.observe(value, &[]);
            }
        });
        let _ = gauge.build();
    }

    /// The newest complete backup is of this instant. One of the future has the age 0.
    pub(super) fn newest(&self, instant: Ticks) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.age = self.clock.now().since(instant);
        last.fresh_at = self.clock.elapsed();
    }

    /// A backup sent this number of bytes.
    pub(super) fn sent(&self, bytes: u64) {
        self.sent.add(bytes, &[]);
    }

    /// A backup ended.
    pub(super) fn ended(&self, result: BackupResult, took: Duration) {
        self.runs.add(1, &[label(result.label())]);
        self.last.lock().unwrap_or_else(PoisonError::into_inner).took = Some(took);
    }

    /// A prune failed.
    pub(super) fn prune_failed(&self) {
        self.runs.add(1, &[label(PRUNE_FAILED)]);
    }

    /// The age of the newest complete backup, in seconds.
    #[cfg(test)]
    pub(super) fn age(&self) -> Option<f64> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.age_seconds(self.clock.elapsed())
    }
}

impl LastBackup {
    /// The age in seconds: by the clock that does not step since it was last found.
    fn age_seconds(&self, now: Duration) -> Option<f64> {
        Some((self.age + now.saturating_sub(self.fresh_at)).as_secs_f64())
    }
}

fn label(result: &'static str) -> KeyValue {
    KeyValue::new(semconv::BACKUP_RESULT, result)
}
