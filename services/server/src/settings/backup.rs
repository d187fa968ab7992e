//! Backups that the server makes by itself.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use trestle_command::values::time_between;
use trestle_objects::ObjectsUrl;
use trestle_runtime::config::shown;

use super::{NumberRule, StorageSettings, outside};

/// Shortest and longest setting for the time between backups.
const EVERY: [&str; 2] = ["1m", "30d"];
/// Shortest and longest setting for the age up to which backups are kept: 20 years at most.
const KEEP_FOR: [&str; 2] = ["1m", "7300d"];
/// The numbers of backups that may be kept.
const KEEP_LAST: RangeInclusive<u64> = 1..=1_000_000;
/// Highest setting for the rate, in bytes a second: 1 TiB.
const RATE_MAX: u64 = 1 << 40;
/// The bytes of changes that may wait: a few journals at least, which are kept as a whole.
const SPOOL_BYTES: RangeInclusive<u64> = 256 * 1024 * 1024..=RATE_MAX;
const ELSEWHERE: &str = "must be outside of the data directory and of the objects of the store";

/// The section `backup`: backups that a process with a store makes by itself, as `trestle backup create` does. The
/// credentials of a bucket are in the environment of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupSettings {
    /// Where the backups go: a directory, `s3://BUCKET/PATH`, `gs://BUCKET/PATH` or `az://CONTAINER/PATH`. Default:
    /// none, and no backup is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Time between backups, 1m to 30d: a whole number and `s`, `m`, `h` or `d`. Default: `1h`.
    pub every: String,
    /// Keep this number of the newest backups without damage, 1 to 1000000. Without it and `keep_for`, nothing is
    /// deleted. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_last: Option<u64>,
    /// Keep the backups that are not older than this, such as `30d`, 1m to 7300d. With both rules, one of them is
    /// enough. No default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_for: Option<String>,
    /// Encrypt what is backed up for the public keys of age in this file, `age1…`, a line each, as `trestle backup
    /// keygen` prints one. Default: none, and nothing is encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<PathBuf>,
    /// Send every change to the target as it is made, so that any instant can be restored, beside the backups that
    /// `every` makes. Default: false.
    pub continuous: bool,
    /// Most bytes of changes that wait in the data directory for the target, 256 MiB to 1 TiB; then they are given up,
    /// and there is a gap until the next backup. Default: 1 GiB.
    pub spool_bytes: u64,
    /// Most bytes of the store that a backup reads in a second, up to 1 TiB; 0 is no bound. Default: 32 MiB.
    pub max_rate: u64,
}

impl Default for BackupSettings {
    fn default() -> Self {
        Self {
            target: None,
            every: "1h".to_owned(),
            keep_last: None,
            keep_for: None,
            encrypt: None,
            continuous: false,
            spool_bytes: 1024 * 1024 * 1024,
            max_rate: 32 * 1024 * 1024,
        }
    }
}

impl BackupSettings {
    /// The numbers of the section.
    pub(super) fn numbers(&self) -> [NumberRule; 3] {
        [
            ("keep_last", self.keep_last.unwrap_or(1), KEEP_LAST),
            ("max_rate", self.max_rate, 0..=RATE_MAX),
            ("spool_bytes", self.spool_bytes, SPOOL_BYTES),
        ]
    }

    /// The target; none where no backups are made.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref().filter(|target| !target.is_empty())
    }

    /// The target of every change; none where they are not sent.
    #[must_use]
    pub fn continuous_target(&self) -> Option<&str> {
        self.target().filter(|_| self.continuous)
    }

    /// The problem of the file of keys, if there is one. Blocks.
    pub(crate) fn file_problem(&self) -> Option<String> {
        let problem = trestle_backup::keys_problem(self.encrypt.as_deref()?)?;
        Some(format!("backup.encrypt: {problem}"))
    }

    /// The time between backups, or the rule that it violates.
    ///
    /// # Errors
    /// The rule.
    pub fn every(&self) -> Result<Duration, String> {
        let [min, max] = EVERY;
        time_between(min, max)(&self.every)
    }

    /// The age up to which backups are kept, if there is such a rule.
    fn keep_for(&self) -> Option<Result<Duration, String>> {
        let [min, max] = KEEP_FOR;
        self.keep_for.as_deref().map(time_between(min, max))
    }

    /// The problems of the section, each with its key.
    pub(super) fn problems(&self, storage: &StorageSettings) -> Vec<String> {
        let problem = |key: &str, text: &str, rule: String| {
            let key = format!("backup.{key}");
            let value = shown(&key, text);
            format!("{key}: {rule}{value}")
        };
        let every = self.every().err().map(|rule| problem("every", &self.every, rule));
        let keep_for = self.keep_for().and_then(Result::err);
        let text = self.keep_for.as_deref().unwrap_or_default();
        let keep_for = keep_for.map(|rule| problem("keep_for", text, rule));
        let target = self.target().and_then(|target| target_problem(target, storage));
        let target = target.map(|rule| format!("backup.target: {rule}"));
        let continuous = (self.continuous && self.target().is_none())
            .then(|| "backup.continuous: needs backup.target".to_owned());
        let mut problems = outside("backup", self.numbers());
        problems.extend([target, every, keep_for, continuous].into_iter().flatten());
        problems
    }
}

/// The rule that a target violates. A target that is a symbolic link into the data directory is found by each backup.
fn target_problem(target: &str, storage: &StorageSettings) -> Option<String> {
    if storage.ephemeral {
        return Some("cannot be used with storage.ephemeral".to_owned());
    }
    if let Some((scheme, _)) = target.split_once("://") {
        return match target.parse::<ObjectsUrl>() {
            Ok(url) => {
                let objects = storage.blob_url().and_then(Result::ok);
                objects.is_some_and(|objects| objects.overlaps(&url)).then(|| ELSEWHERE.to_owned())
            }
            // The rest may be a secret.
            Err(rule) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                Some(format!("{rule}: scheme=`{scheme}`"))
            }
            Err(rule) => Some(rule),
        };
    }
    let is_inside = is_inside(Path::new(target), &storage.data_dir);
    is_inside.then(|| {
        format!("{ELSEWHERE}: target=`{target}`, data_dir=`{}`", storage.data_dir.display())
    })
}

/// Whether a path is a directory or is in it, by their names.
fn is_inside(path: &Path, directory: &Path) -> bool {
    match (std::path::absolute(path), std::path::absolute(directory)) {
        (Ok(path), Ok(directory)) => path.starts_with(directory),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backup(target: &str) -> BackupSettings {
        BackupSettings { target: Some(target.to_owned()), ..BackupSettings::default() }
    }

    #[test]
    fn a_target_is_outside_of_the_store() {
        let storage = StorageSettings {
            data_dir: "/srv/data".into(),
            blob_url: Some("s3://pictures/live".to_owned()),
            ..StorageSettings::default()
        };
        let problems = |target: &str| backup(target).problems(&storage);
        for right in ["", "/srv/backups", "/srv/data-2", "backups", "s3://pictures/old", "az://b/c"]
        {
            assert_eq!(problems(right), [""; 0], "{right}");
        }
        for wrong in ["/srv/data", "/srv/data/backups", "s3://pictures/live/b", "s3://pictures"] {
            let found = problems(wrong);
            assert!(found[0].starts_with(&format!("backup.target: {ELSEWHERE}")), "{found:?}");
        }
        let relative = StorageSettings { data_dir: "./data".into(), ..StorageSettings::default() };
        assert_eq!(backup("data/backups").problems(&relative).len(), 1);
        let memory = StorageSettings { ephemeral: true, ..StorageSettings::default() };
        assert_eq!(
            backup("/srv/backups").problems(&memory),
            ["backup.target: cannot be used with storage.ephemeral"]
        );
    }

    #[test]
    fn a_malformed_url_is_named_without_what_may_be_a_secret() {
        let found = backup("ftp://user:hunter2@x").problems(&StorageSettings::default());
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("backup.target: must be s3://BUCKET"), "{found:?}");
        assert!(found[0].ends_with(": scheme=`ftp`") && !found[0].contains("hunter2"), "{found:?}");
    }

    #[test]
    fn times_and_numbers_have_ranges() {
        let problems = |settings: BackupSettings| settings.problems(&StorageSettings::default());
        let every = |text: &str| BackupSettings { every: text.to_owned(), ..Default::default() };
        for (text, seconds) in [("1m", 60), ("60", 60), ("6h", 21_600), ("30d", 2_592_000)] {
            assert_eq!(every(text).every(), Ok(Duration::from_secs(seconds)), "{text}");
            assert_eq!(problems(every(text)), [""; 0], "{text}");
        }
        for text in ["59s", "31d", "hourly", "1.5h"] {
            let found = problems(every(text));
            let expected = "backup.every: must be 1m to 30d: a whole number and ";
            assert!(found[0].starts_with(expected) && found[0].contains(text), "{found:?}");
        }
        let keep = |last, time: &str| {
            let keep_for = Some(time.to_owned());
            BackupSettings { keep_last: Some(last), keep_for, ..BackupSettings::default() }
        };
        assert_eq!(problems(keep(1, "1m")), [""; 0]);
        assert_eq!(problems(keep(1_000_000, "7300d")), [""; 0]);
        let found = problems(keep(0, "59s"));
        assert_eq!(found[0], "backup.keep_last: must be 1 to 1000000: value=`0`");
        assert!(found[1].starts_with("backup.keep_for: must be 1m to 7300d: "), "{found:?}");
        let fast = BackupSettings { max_rate: RATE_MAX + 1, ..BackupSettings::default() };
        assert_eq!(problems(fast).len(), 1);
    }
}
