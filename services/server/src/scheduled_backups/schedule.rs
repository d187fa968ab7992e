//! When the next backup is due. All times are by [`Clock::elapsed`](trestle_model::time::Clock::elapsed), which
//! never steps; the wall clock only decides how old the newest backup is at the start.

use std::time::Duration;

/// Wait after the first failure, and shortest wait after a backup that took longer than the time between two.
const PAUSE_MIN: Duration = Duration::from_secs(60);
/// Longest wait after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(60 * 60);

/// When backups are due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackupSchedule {
    every: Duration,
    due: Duration,
    failures: u32,
}

impl BackupSchedule {
    /// The schedule at a start, with the age of the newest backup, if there is one. One of the future has no age.
    pub(super) fn begin(every: Duration, now: Duration, age: Option<Duration>) -> Self {
        let wait = age.map_or(Duration::ZERO, |age| every.saturating_sub(age));
        Self { every, due: now + wait, failures: 0 }
    }

    /// Whether a backup is due.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        now >= self.due
    }

    /// Nothing is due for a time.
    pub(super) fn pause(&mut self, now: Duration, time: Duration) {
        self.due = self.due.max(now + time);
    }

    /// A backup is due now, unless the last one failed.
    pub(super) fn due_at_once(&mut self, now: Duration) {
        if self.failures == 0 {
            self.due = self.due.min(now);
        }
    }

    /// A backup was made.
    pub(super) fn made(&mut self, began: Duration, now: Duration) {
        self.failures = 0;
        self.due = (began + self.every).max(now + PAUSE_MIN);
    }

    /// No backup was made: the wait doubles with each failure, up to the time between two backups.
    pub(super) fn failed(&mut self, now: Duration) {
        let longest = self.every.min(PAUSE_MAX);
        let wait = PAUSE_MIN.saturating_mul(2_u32.saturating_pow(self.failures));
        self.failures = self.failures.saturating_add(1);
        self.due = now + wait.min(longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(60 * 60);
    const NOW: Duration = Duration::from_secs(5_000_000);

    /// How long after `NOW` the next one is due.
    fn wait(schedule: &BackupSchedule) -> Duration {
        assert!(schedule.is_due(schedule.due));
        assert!(!schedule.is_due(schedule.due.saturating_sub(Duration::from_nanos(1))));
        schedule.due - NOW
    }

    #[test]
    fn the_first_backup_is_due_at_once_or_after_the_rest_of_the_time_since_the_newest() {
        for (age, expected) in [
            (None, Duration::ZERO),
            (Some(Duration::ZERO), HOUR),
            (Some(10 * MINUTE), 50 * MINUTE),
            (Some(HOUR), Duration::ZERO),
            (Some(Duration::from_secs(u64::MAX)), Duration::ZERO),
        ] {
            assert_eq!(wait(&BackupSchedule::begin(HOUR, NOW, age)), expected, "{age:?}");
        }
    }

    #[test]
    fn the_next_backup_is_due_after_the_begin_of_the_last_and_never_without_a_pause() {
        let mut schedule = BackupSchedule::begin(HOUR, NOW, None);
        for (took, expected) in
            [(MINUTE, 59 * MINUTE), (59 * MINUTE, MINUTE), (HOUR, MINUTE), (3 * HOUR, MINUTE)]
        {
            schedule.made(NOW - took, NOW);
            assert_eq!(wait(&schedule), expected, "{took:?}");
        }
    }

    #[test]
    fn failures_wait_twice_as_long_each_time_up_to_the_time_between_backups() {
        let waits = |every: Duration| {
            let mut schedule = BackupSchedule::begin(every, NOW, None);
            let mut waits = || {
                schedule.failed(NOW);
                wait(&schedule)
            };
            (0..40).map(|_| waits()).collect::<Vec<_>>()
        };
        let daily = waits(24 * HOUR);
        assert_eq!(daily[..7], [1, 2, 4, 8, 16, 32, 60].map(|minutes| minutes * MINUTE));
        assert!(daily[7..].iter().all(|wait| *wait == HOUR), "{daily:?}");
        assert!(waits(MINUTE).iter().all(|wait| *wait == MINUTE));
        assert_eq!(waits(3 * MINUTE)[..3], [1, 2, 3].map(|minutes| minutes * MINUTE));
    }

    #[test]
    fn nothing_is_due_in_a_pause() {
        let mut schedule = BackupSchedule::begin(HOUR, NOW, None);
        schedule.pause(NOW, MINUTE);
        assert_eq!(wait(&schedule), MINUTE);
        schedule.pause(NOW, Duration::ZERO);
        assert_eq!(wait(&schedule), MINUTE, "a shorter one changes nothing");
    }

    #[test]
    fn a_backup_may_be_due_before_its_time_but_not_after_a_failure() {
        let mut schedule = BackupSchedule::begin(HOUR, NOW, Some(Duration::ZERO));
        schedule.due_at_once(NOW + MINUTE);
        assert_eq!(wait(&schedule), MINUTE);
        schedule.due_at_once(NOW + 2 * MINUTE);
        assert_eq!(wait(&schedule), MINUTE, "it was due before");
        schedule.failed(NOW + MINUTE);
        schedule.due_at_once(NOW + MINUTE);
        assert_eq!(wait(&schedule), 2 * MINUTE);
    }

    #[test]
    fn a_backup_ends_the_waits_of_failures() {
        let mut schedule = BackupSchedule::begin(HOUR, NOW, None);
        schedule.failed(NOW);
        schedule.failed(NOW);
        schedule.made(NOW, NOW);
        assert_eq!(wait(&schedule), HOUR);
        schedule.failed(NOW);
        assert_eq!(wait(&schedule), MINUTE);
    }
}
