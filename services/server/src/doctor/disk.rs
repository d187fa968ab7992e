//! The disk of the data directory: whether it can be written, how fast it syncs, and how much is free.

use std::{
    fs::File,
    io::{self, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use super::finding::DoctorFinding;
use crate::settings::StorageSettings;

const SYNC: &str = "disk.sync";
const SPACE: &str = "disk.space";
/// The file that is written; an earlier run that was interrupted may have left it.
const PROBE: &str = ".trestle-doctor";
/// Syncs that are measured: enough for a median and a slow one, within a second on a slow disk.
const SYNCS: usize = 50;
/// Bytes before each sync: a small group of changes.
const PROBE_BYTES: usize = 4096;
/// The longest measurement; a disk that takes longer has fewer samples.
const MEASURED_WITHIN: Duration = Duration::from_secs(5);
/// Beyond it, with the slowest of ten, writes of one caller take longer than most clients expect.
const SLOW: Duration = Duration::from_millis(20);
/// A quicker median is not a disk: nothing is durable in memory.
const TOO_FAST: Duration = Duration::from_micros(5);

/// Checks the directory, which must exist. Blocks.
pub(super) fn check(settings: &StorageSettings) -> Vec<DoctorFinding> {
    let directory = &settings.data_dir;
    let found = |error: &io::Error| format!("path=`{}`, {error}", directory.display());
    if !directory.exists() {
        let found =
            format!("the data directory does not exist yet: path=`{}`", directory.display());
        let remedy = "the server creates it; create it with its owner and mode 0700 to have its disk checked";
        return vec![DoctorFinding::warning(SYNC, found, remedy)];
    }
    let sync = match measure(directory) {
        Ok(samples) => judge_syncs(samples),
        Err(error) => DoctorFinding::failure(
            SYNC,
            format!("the data directory cannot be written: {}", found(&error)),
            "give it to the user of the server, with mode 0700, on a file system that is mounted for writes",
        ),
    };
    let space = match rustix::fs::statvfs(directory.as_path()) {
        Ok(stat) => {
            judge_space(stat.f_bavail.saturating_mul(stat.f_frsize), settings.min_free_bytes)
        }
        Err(error) => DoctorFinding::failure(
            SPACE,
            format!("free space cannot be read: {}", found(&error.into())),
            "check the mount of the data directory",
        ),
    };
    vec![sync, space]
}

fn measure(directory: &Path) -> io::Result<Vec<Duration>> {
    let path = directory.join(PROBE);
    let measured = File::create(&path).and_then(|file| syncs(&file));
    let removed = std::fs::remove_file(&path);
    measured.and_then(|samples| removed.map(|()| samples))
}

fn syncs(mut file: &File) -> io::Result<Vec<Duration>> {
    let began = Instant::now();
    let mut samples = Vec::with_capacity(SYNCS);
    while samples.len() < SYNCS && began.elapsed() < MEASURED_WITHIN {
        file.write_all(&[0x5a; PROBE_BYTES])?;
        let started = Instant::now();
        file.sync_data()?;
        samples.push(started.elapsed());
    }
    Ok(samples)
}

fn judge_syncs(mut samples: Vec<Duration>) -> DoctorFinding {
    samples.sort_unstable();
    let at = |index: usize| samples.get(index).copied().unwrap_or_default();
    let (median, slow) = (at(samples.len() / 2), at(samples.len() * 9 / 10));
    let found = format!(
        "syncs=`{}`, median_us=`{}`, slowest_of_ten_us=`{}`",
        samples.len(),
        median.as_micros(),
        slow.as_micros(),
    );
    if slow > SLOW {
        let remedy = "use a local disk, best with power-loss protection: every write waits for a sync; see \
                      whether others write to this one";
        DoctorFinding::warning(SYNC, found, remedy)
    } else if median < TOO_FAST {
        let remedy =
            "the file system is in memory, or does not sync: data would not survive a power loss";
        DoctorFinding::warning(SYNC, found, remedy)
    } else {
        DoctorFinding::ok(SYNC, found)
    }
}

fn judge_space(free: u64, reserve: u64) -> DoctorFinding {
    let found = format!("free_bytes=`{free}`, storage.min_free_bytes=`{reserve}`");
    if free <= reserve {
        DoctorFinding::failure(
            SPACE,
            found,
            "free space or grow the volume: only reads and deletes would be accepted",
        )
    } else if free / 4 < reserve {
        DoctorFinding::warning(
            SPACE,
            found,
            "grow the volume: compaction needs room, and writes end at the reserve",
        )
    } else {
        DoctorFinding::ok(SPACE, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    fn judged(micros: &[u64]) -> Severity {
        judge_syncs(micros.iter().copied().map(Duration::from_micros).collect()).severity
    }

    #[test]
    fn one_slow_sync_of_ten_is_a_warning_and_one_of_twenty_is_none() {
        let mut samples = [100; 20];
        samples[0] = 50_000;
        assert_eq!(judged(&samples), Severity::Ok);
        samples[1] = 50_000;
        assert_eq!(judged(&samples), Severity::Warning);
    }

    #[test]
    fn a_disk_that_does_not_sync_is_a_warning() {
        assert_eq!(judged(&[1; 20]), Severity::Warning);
        assert_eq!(judged(&[5; 20]), Severity::Ok);
    }

    #[test]
    fn space_at_the_reserve_is_a_failure_and_little_above_it_a_warning() {
        for (free, severity) in [
            (10, Severity::Failure),
            (11, Severity::Warning),
            (39, Severity::Warning),
            (40, Severity::Ok),
        ] {
            assert_eq!(judge_space(free, 10).severity, severity, "{free}");
        }
    }

    #[test]
    fn a_measurement_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let samples = measure(directory.path()).expect("a measurement");
        assert!(!samples.is_empty());
        assert_eq!(directory.path().read_dir().expect("a directory").count(), 0);
    }
}
