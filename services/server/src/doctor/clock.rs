//! Whether the clock of the machine can be right.

use std::{fs, path::Path, time::Duration};

use trestle_model::time::{Clock, Ticks};

use super::finding::DoctorFinding;
use crate::data_files;

const CHECK: &str = "clock";
/// The year of this build's first release, since 1970: a clock before it was never set.
const EARLIEST_SECONDS: i64 = 1_767_225_600;
/// How far ahead of the clock a file of the data directory may be: the resolution of file systems.
const AHEAD_MAX: Duration = Duration::from_secs(2);
/// Where systemd-timesyncd records that it has the time.
const TIMESYNC: &str = "/run/systemd/timesync";

/// What the machine records about time.
#[derive(Debug, Clone, Copy)]
struct ObservedTime {
    now: Ticks,
    /// When the newest file of the data directory was written.
    newest: Option<Ticks>,
    /// Whether the time was synchronised; none where nothing records that.
    is_synchronised: Option<bool>,
}

/// Compares the clock with the data directory and with the record of time synchronisation. Blocks.
pub(super) fn check(clock: &dyn Clock, data_dir: &Path) -> DoctorFinding {
    let timesync = Path::new(TIMESYNC);
    judge(ObservedTime {
        now: clock.now(),
        newest: newest(&data_dir.join("kv")),
        is_synchronised: timesync.is_dir().then(|| timesync.join("synchronized").exists()),
    })
}

fn newest(directory: &Path) -> Option<Ticks> {
    let modified = |entry: fs::DirEntry| data_files::modified(&entry.metadata().ok()?).ok();
    fs::read_dir(directory).ok()?.flatten().filter_map(modified).max()
}

fn judge(ObservedTime { now, newest, is_synchronised }: ObservedTime) -> DoctorFinding {
    let seconds = now.to_unix().0;
    if seconds < EARLIEST_SECONDS {
        let remedy = "set the clock and enable time synchronisation before a server starts: signatures \
                      expire by it, and the store keeps its time";
        return DoctorFinding::failure(
            CHECK,
            format!("was never set: unix_seconds=`{seconds}`"),
            remedy,
        );
    }
    let behind = newest.map_or(Duration::ZERO, |newest| newest.since(now));
    if behind > AHEAD_MAX {
        let found = format!("is behind the data directory: seconds=`{}`", behind.as_secs());
        let remedy = "wait for time synchronisation (After=time-sync.target) and check again";
        return DoctorFinding::warning(CHECK, found, remedy);
    }
    match is_synchronised {
        Some(false) => DoctorFinding::warning(
            CHECK,
            "not synchronised yet",
            "check `timedatectl`: the machine has reached no time server",
        ),
        Some(true) => DoctorFinding::ok(CHECK, "synchronised"),
        None => {
            DoctorFinding::ok(CHECK, "plausible; this machine does not record time synchronisation")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    fn at(seconds: i64) -> Ticks {
        Ticks::from_unix(seconds, 0).expect("a time")
    }

    fn judged(now: i64, newest: Option<i64>, is_synchronised: Option<bool>) -> DoctorFinding {
        judge(ObservedTime { now: at(now), newest: newest.map(at), is_synchronised })
    }

    #[test]
    fn a_clock_that_was_never_set_is_a_failure() {
        assert_eq!(judged(0, None, Some(true)).severity, Severity::Failure);
    }

    #[test]
    fn a_clock_behind_the_data_is_a_warning_with_the_difference() {
        let now = EARLIEST_SECONDS + 1000;
        let finding = judged(now, Some(now + 60), Some(true));
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.found.ends_with("seconds=`60`"), "{finding:?}");
        assert_eq!(judged(now, Some(now + 2), Some(true)).severity, Severity::Ok);
        assert_eq!(judged(now, Some(now - 60), Some(true)).severity, Severity::Ok);
    }

    #[test]
    fn a_machine_that_has_no_time_server_is_a_warning() {
        assert_eq!(judged(EARLIEST_SECONDS, None, Some(false)).severity, Severity::Warning);
        assert_eq!(judged(EARLIEST_SECONDS, None, None).severity, Severity::Ok);
    }
}
