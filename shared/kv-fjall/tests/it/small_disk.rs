//! A file system of a given size, for tests of a full disk. Mounting needs root.

use std::path::Path;
use std::process::{Command, Stdio};

/// A mounted file system in memory; unmounted when dropped.
pub(crate) struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// With so many MiB; none, and why on standard error, where this machine does not let us mount.
    pub(crate) fn of(mebibytes: u64) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let size = format!("size={mebibytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "trestle-test"])
            .arg(directory.path())
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self { directory });
        }
        eprintln!("SKIPPED: a file system cannot be mounted here, which needs root");
        None
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn free_bytes(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.path()).unwrap();
        stat.f_bavail * stat.f_frsize
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: an engine that a failed test left may still hold files.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
