//! The targets that a data directory was backed up to. One of them that has no backups any more is not made anew: what
//! was mounted there may not be, and a new one would fill another disk and split what was sent in two.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use trestle_kv::replace_file;

/// The file of a data directory that has them, one a line.
const FILE: &str = "backup-targets";
/// More than it has.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The targets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownTargets(BTreeSet<String>);

impl KnownTargets {
    /// Those of a data directory.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn of(data_dir: &Path) -> io::Result<Self> {
        let mut text = String::new();
        match File::open(data_dir.join(FILE)) {
            Ok(file) => file.take(FILE_BYTES_MAX).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        Ok(Self(text.lines().map(str::to_owned).collect()))
    }

    /// Whether a target is one of them.
    pub(crate) fn has(&self, target: &str) -> io::Result<bool> {
        Ok(self.0.contains(&absolute(target)?))
    }

    /// Adds one, durably.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn note(mut self, data_dir: &Path, target: &str) -> io::Result<()> {
        let target = absolute(target)?;
        // A name with a line break would be two.
        if target.contains('\n') || !self.0.insert(target) {
            return Ok(());
        }
        let lines: String = self.0.iter().map(|target| format!("{target}\n")).collect();
        replace_file(data_dir, FILE, lines.as_bytes())
    }

    /// The error of a target that has no backups any more.
    pub(crate) fn problem(data_dir: &Path, target: &str) -> String {
        format!(
            "the backups that were made at the target are not there, is it mounted? target=`{target}`; to begin anew \
             there, remove its line from `{}`",
            data_dir.join(FILE).display()
        )
    }
}

/// A directory by its whole path, whatever the current directory is.
fn absolute(target: &str) -> io::Result<String> {
    match target.contains("://") {
        true => Ok(target.to_owned()),
        false => Ok(std::path::absolute(target)?.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_known_once_it_was_noted_however_it_is_written() {
        let data_dir = tempfile::tempdir().unwrap();
        let path = data_dir.path();
        let known = || KnownTargets::of(path).unwrap();
        assert!(!known().has("s3://a/b").unwrap());
        for target in ["s3://a/b", "./c", "./c", "two\nlines"] {
            known().note(path, target).unwrap();
        }
        let here = std::env::current_dir().unwrap().join("c");
        for target in ["s3://a/b", "c", here.to_str().unwrap()] {
            assert!(known().has(target).unwrap(), "{target}");
        }
        for target in ["s3://a", "d", "two", "lines"] {
            assert!(!known().has(target).unwrap(), "{target}");
        }
        std::fs::write(path.join(FILE), [0xff]).unwrap();
        assert!(KnownTargets::of(path).is_err());
    }
}
