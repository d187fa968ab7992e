//! The metrics of backups.

use opentelemetry::metrics::{Counter, Meter};

use super::Described;

/// Checkpoints that are kept for backups.
pub const BACKUP_HOLDS: Described = Described::new(
    "trestle.backup.holds",
    "{checkpoint}",
    "Checkpoints that are kept for backups: what is deleted meanwhile keeps its space",
);
/// How late changes arrive at the target of continuous backups.
pub const BACKUP_LAG: Described = Described::new(
    "trestle.backup.lag",
    "s",
    "Time since the instant up to which every change is at the backup target",
);
/// The changes that wait for the target of continuous backups.
pub const BACKUP_SPOOL: Described = Described::new(
    "trestle.backup.spool",
    "By",
    "Bytes of journals that are kept only because their changes are not at the backup target",
);
/// The age of the newest scheduled backup.
pub const BACKUP_AGE: Described = Described::new(
    "trestle.backup.age",
    "s",
    "Time since the instant of the newest backup without damage, or since the start where none is found",
);
/// The time between scheduled backups.
pub const BACKUP_INTERVAL: Described =
    Described::new("trestle.backup.interval", "s", "Time between scheduled backups, as it is set");
/// How long the last scheduled backup took.
pub const BACKUP_DURATION: Described = Described::new(
    "trestle.backup.duration",
    "s",
    "Time that the last scheduled backup took, whatever its result",
);
/// Scheduled backups and prunes, by [`super::BACKUP_RESULT`].
#[must_use]
pub fn backup_runs(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.backup.runs")
        .with_unit("{run}")
        .with_description("Scheduled backups by their result, and prunes that failed")
        .build()
}
/// What scheduled backups sent.
#[must_use]
pub fn backup_sent(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.backup.sent")
        .with_unit("By")
        .with_description("Bytes that scheduled backups sent to their target")
        .build()
}
/// Changes that were given up before they were at the target of continuous backups.
#[must_use]
pub fn backup_gaps(meter: &Meter) -> Counter<u64> {
    meter
        .u64_counter("trestle.backup.gaps")
        .with_unit("{gap}")
        .with_description("Times that changes were given up before they were at the backup target")
        .build()
}
