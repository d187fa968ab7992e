//! Files that are read again while the process runs: settings, and keys and certificates that rotate.
//!
//! Every such file has a task that reads it every few seconds and applies what has changed; SIGHUP
//! wakes all of them at once. A file that cannot be read changes nothing.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Meter},
};
use tokio::sync::Notify;
use tracing::{error, info, warn};
use trestle_command::errors::without_number;
use trestle_rpc::semconv;
use trestle_runtime::task::Task;

use crate::{process_error::ProcessError, settings::Settings};

/// How often files are checked without SIGHUP.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Results of a reload, as the metric has them.
const RESULTS: [&str; 3] = [APPLIED, NEEDS_RESTART, FAILED];
const APPLIED: &str = "applied";
const NEEDS_RESTART: &str = "needs_restart";
const FAILED: &str = "failed";

/// Wakes the tasks that check files.
#[derive(Debug, Clone, Default)]
pub struct Reload {
    wakers: Vec<Arc<Notify>>,
}

impl Reload {
    /// Also wakes `task`.
    pub fn add(&mut self, task: &Task) {
        self.wakers.push(task.waker());
    }

    /// Wakes every task.
    pub fn now(&self) {
        self.wakers.iter().for_each(|waker| waker.notify_one());
    }
}

/// Reads the settings of the process again. Clones share what was read: only a file that changed is
/// parsed anew, since the other sources of settings cannot change while a process runs.
#[derive(Clone)]
pub struct SettingsSource {
    file: Option<PathBuf>,
    load: Arc<dyn Fn() -> Result<Settings, ProcessError> + Send + Sync>,
    mistakes: Arc<dyn Fn() -> Vec<String> + Send + Sync>,
    last: Arc<Mutex<Option<(Stamp, Settings)>>>,
}

impl SettingsSource {
    /// Settings that `load` reads, from `file` among others.
    #[must_use]
    pub fn new(
        file: Option<PathBuf>,
        load: impl Fn() -> Result<Settings, ProcessError> + Send + Sync + 'static,
    ) -> Self {
        let mistakes = Arc::new(Vec::new);
        Self { file, load: Arc::new(load), mistakes, last: Arc::default() }
    }

    /// Also reports mistakes with their places: those that `mistakes` finds, as `config check` does.
    #[must_use]
    pub fn with_mistakes(
        mut self,
        mistakes: impl Fn() -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.mistakes = Arc::new(mistakes);
        self
    }

    /// The file of the settings.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The current settings. Blocks.
    ///
    /// # Errors
    /// Settings that cannot be used, as a text.
    pub fn read(&self) -> Result<Settings, String> {
        self.current().or_else(|_| {
            let mistakes = (self.mistakes)();
            if !mistakes.is_empty() {
                return Err(mistakes.join("; "));
            }
            // Without a mistake: the file was replaced in between.
            self.current().map_err(|error| error.chain())
        })
    }

    fn current(&self) -> Result<Settings, ProcessError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the file is read, so that a change meanwhile is detected the next time.
        let stamp = self.stamp();
        if let Some((_, settings)) = last.as_ref().filter(|(read, _)| *read == stamp) {
            return Ok(settings.clone());
        }
        let settings = (self.load)()?;
        *last = Some((stamp, settings.clone()));
        Ok(settings)
    }

    /// The current settings; while they cannot be used, the last ones that could, if any were read. For all tasks but
    /// the one that reports settings that cannot be used. Blocks.
    #[must_use]
    pub fn usable(&self) -> Option<Settings> {
        self.current().ok().or_else(|| {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.as_ref().map(|(_, settings)| settings.clone())
        })
    }

    fn stamp(&self) -> Stamp {
        let metadata = fs::metadata(self.file.as_ref()?).ok()?;
        Some((metadata.ino(), metadata.len(), metadata.modified().ok()?))
    }
}

/// What differs between versions of a file: inode, length and time. None without a file.
type Stamp = Option<(u64, u64, SystemTime)>;

/// What a reload changed, for the log.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReloadedKeys {
    /// What applies from now on, such as the names of accounts. Never a secret.
    pub applied: Vec<String>,
    /// What applies at the next start.
    pub needs_restart: Vec<String>,
}

impl ReloadedKeys {
    /// Changes that all apply from now on.
    #[must_use]
    pub fn applied(applied: Vec<String>) -> Self {
        Self { applied, needs_restart: Vec::new() }
    }

    fn result(&self) -> &'static str {
        if self.needs_restart.is_empty() { APPLIED } else { NEEDS_RESTART }
    }
}

/// Makes the tasks that reload files, and counts the results.
#[derive(Clone)]
pub struct Reloads {
    counter: Counter<u64>,
    source: Option<SettingsSource>,
}

impl Reloads {
    /// Counts on this meter.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        Self { counter: semconv::reloads(meter), source: None }
    }

    /// Also names the places, in these settings, of files that cannot be read.
    #[must_use]
    pub fn located_in(mut self, source: SettingsSource) -> Self {
        self.source = Some(source);
        self
    }

    fn located(&self, problem: &str) -> String {
        let mistakes = self.source.as_ref().map(|source| (source.mistakes)());
        located(problem, &mistakes.unwrap_or_default())
    }

    /// A task that reloads a value from its files: calls `read`, and passes the last value, at first `current`, and
    /// one that differs from it to `apply`, which returns what changed.
    ///
    /// `read` may block. The text of its failure is logged once, so it must hold no secret; until it
    /// succeeds again the last value remains in use.
    pub fn task<T>(
        &self,
        name: &'static str,
        current: T,
        read: impl FnMut() -> Result<T, String> + Send + 'static,
        apply: impl FnMut(&T, &T) -> ReloadedKeys + Send + 'static,
    ) -> Task
    where
        T: PartialEq + Send + 'static,
    {
        let reloads = self.clone();
        reloads.declare(name);
        every(CHECK_EVERY, Watched { name, reloads, current, problem: None, read, apply })
    }

    /// Begins the counts of a subject at zero: the first increase is visible too.
    pub(crate) fn declare(&self, subject: &'static str) {
        for result in RESULTS {
            self.add(subject, result, 0);
        }
    }

    /// Counts a change that applies from now on.
    pub(crate) fn applied(&self, subject: &'static str) {
        self.count(subject, APPLIED);
    }

    /// Counts an attempt that changed nothing, since it failed.
    pub(crate) fn failed(&self, subject: &'static str) {
        self.count(subject, FAILED);
    }

    fn count(&self, subject: &'static str, result: &'static str) {
        self.add(subject, result, 1);
    }

    fn add(&self, subject: &'static str, result: &'static str, count: u64) {
        let subject = KeyValue::new(semconv::RELOAD_SUBJECT, subject);
        self.counter.add(count, &[subject, KeyValue::new(semconv::RELOAD_RESULT, result)]);
    }
}

fn every<T, R, U>(pause: Duration, watched: Watched<T, R, U>) -> Task
where
    T: PartialEq + Send + 'static,
    R: FnMut() -> Result<T, String> + Send + 'static,
    U: FnMut(&T, &T) -> ReloadedKeys + Send + 'static,
{
    let name = watched.name;
    let watched = Arc::new(Mutex::new(watched));
    Task::new(name, pause, move || {
        let watched = Arc::clone(&watched);
        async move {
            let check = move || watched.lock().unwrap_or_else(PoisonError::into_inner).check();
            tokio::task::spawn_blocking(check).await?;
            Ok(false)
        }
    })
}

struct Watched<T, R, U> {
    name: &'static str,
    reloads: Reloads,
    current: T,
    problem: Option<String>,
    read: R,
    apply: U,
}

impl<T, R, U> Watched<T, R, U>
where
    T: PartialEq,
    R: FnMut() -> Result<T, String>,
    U: FnMut(&T, &T) -> ReloadedKeys,
{
    fn check(&mut self) {
        let name = self.name;
        match (self.read)() {
            Ok(new) => {
                let was_broken = self.problem.take().is_some();
                if new != self.current {
                    let keys = (self.apply)(&self.current, &new);
                    self.current = new;
                    self.reloads.count(name, keys.result());
                    log_reloaded(name, &keys);
                } else if was_broken {
                    info!(what = name, "readable again; nothing changed");
                }
            }
            Err(problem) => {
                let problem = without_number(problem);
                if self.problem.as_ref() != Some(&problem) {
                    self.reloads.count(name, FAILED);
                    let located = self.reloads.located(&problem);
                    error!(what = name, problem = %located, "reload failed; nothing changed");
                    self.problem = Some(problem);
                }
            }
        }
    }
}

/// A problem with the place and the key that the mistakes about the same have, each as `place: key: rule`. A problem
/// has the key too, or is the rule of one.
fn located(problem: &str, mistakes: &[String]) -> String {
    let mut text = problem.to_owned();
    for mistake in mistakes {
        let Some((_, unplaced)) = mistake.split_once(": ") else { continue };
        let rule = unplaced.split_once(": ").map(|(_, rule)| rule);
        if rule == Some(problem) {
            return mistake.clone();
        }
        text = text.replace(unplaced, mistake);
    }
    text
}

fn log_reloaded(what: &str, keys: &ReloadedKeys) {
    let listed = |keys: &[String]| (!keys.is_empty()).then(|| keys.join(", "));
    let changed = listed(&keys.applied);
    match listed(&keys.needs_restart) {
        None => info!(what, changed, "reloaded"),
        Some(needs_restart) => {
            warn!(what, changed, needs_restart, "changed; applies at the next start");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn reloads() -> Reloads {
        Reloads::new(&NoopMeterProvider::new().meter("test"))
    }

    const SOON: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn applies_each_change_once_and_ignores_broken_files() {
        let state = Arc::new(Mutex::new(Ok(1)));
        let (sender, applied) = mpsc::channel();
        let source = Arc::clone(&state);
        let read = move || source.lock().unwrap().clone();
        let mut watched = Watched {
            name: "test",
            current: 1,
            problem: None,
            read,
            reloads: reloads(),
            apply: move |_: &i32, new: &i32| {
                sender.send(*new).unwrap();
                ReloadedKeys::default()
            },
        };

        watched.check();
        for next in [Ok(2), Ok(2), Err("broken".to_owned()), Ok(2), Ok(3)] {
            *state.lock().unwrap() = next;
            watched.check();
        }

        assert_eq!(applied.try_iter().collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn parses_settings_again_only_when_their_file_changed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let loads = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&loads);
        let source = SettingsSource::new(Some(file.path().to_owned()), move || {
            *counted.lock().unwrap() += 1;
            Ok(Settings::default())
        });

        for text in ["", "", "[server]", "[server]", "[limits]\n"] {
            if fs::read_to_string(file.path()).unwrap() != text {
                fs::write(file.path(), text).unwrap();
            }
            source.clone().read().unwrap();
        }

        assert_eq!(*loads.lock().unwrap(), 3);
    }

    #[test]
    fn settings_that_cannot_be_used_are_reported_as_mistakes_and_the_last_ones_remain() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_owned();
        let source =
            SettingsSource::new(Some(path.clone()), move || match fs::metadata(&path)?.len() {
                0 => Ok(Settings::default()),
                _ => Err(ProcessError::Hung),
            });
        let with_mistakes =
            source.clone().with_mistakes(|| vec!["f:1: a: b".into(), "f:2: c".into()]);
        assert_eq!(source.usable(), Some(Settings::default()));

        fs::write(file.path(), "wrong").unwrap();

        assert_eq!(source.read().unwrap_err(), "shutdown timed out");
        assert_eq!(with_mistakes.read().unwrap_err(), "f:1: a: b; f:2: c");
        assert_eq!(with_mistakes.usable(), Some(Settings::default()));
    }

    #[test]
    fn a_problem_has_the_place_of_the_mistake_about_the_same() {
        let mistakes =
            ["f:2: a.key_file: missing: file=`k`", "f:5: tls.key_file: no key: file=`t`"];
        let mistakes = mistakes.map(str::to_owned);
        for (problem, text) in [
            ("a.key_file: missing: file=`k`", "f:2: a.key_file: missing: file=`k`"),
            ("a.key_file: missing: file=`k`; b: x", "f:2: a.key_file: missing: file=`k`; b: x"),
            ("no key: file=`t`", "f:5: tls.key_file: no key: file=`t`"),
            ("another", "another"),
        ] {
            assert_eq!(located(problem, &mistakes), text);
        }
        assert_eq!(located("another", &[]), "another");
    }

    #[tokio::test]
    async fn a_reload_wakes_every_task_at_once() {
        let (sender, checked) = mpsc::channel();
        let read = move || {
            sender.send(()).unwrap();
            Ok(0)
        };
        let watched = Watched {
            name: "test",
            reloads: reloads(),
            current: 0,
            problem: None,
            read,
            apply: |_: &i32, _: &i32| ReloadedKeys::default(),
        };
        let task = every(Duration::from_secs(3600), watched);
        let stop = CancellationToken::new();
        let mut reload = Reload::default();
        reload.add(&task);
        tokio::spawn(task.run(stop.clone(), || 0.5));
        let wait = move |checked: mpsc::Receiver<()>| {
            tokio::task::spawn_blocking(move || (checked.recv_timeout(SOON), checked))
        };
        let (first, checked) = wait(checked).await.unwrap();

        reload.now();
        let (second, _) = wait(checked).await.unwrap();

        assert_eq!((first, second), (Ok(()), Ok(())));
        stop.cancel();
    }
}
