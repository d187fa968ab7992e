mod lines;

use std::{
    fs,
    path::{Path, PathBuf},
};

use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use serde_json::json;
use trestle_model::etag::format_time;
use trestle_model::time::{ManualClock, SystemClock};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// A program in place of the commands of backups.
pub(crate) struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    pub(crate) fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Written by another process: a file that one of this process has open, as by a fork of another test, cannot
        // be run.
        let mut write = std::process::Command::new("sh");
        write.args(["-c", "printf '#!/bin/sh\n%s\n' \"$1\" > \"$0\" && chmod 700 \"$0\""]);
        let written = write.arg(folder.path().join("program")).arg(script).status().unwrap();
        assert!(written.success());
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs it for a data directory.
    pub(crate) fn child(&self) -> BackupChild {
        let child = BackupChild::new(self.path(), "backups").unwrap();
        child.with_executable(&self.path().join("program"))
    }
}

/// Scheduled backups whose commands print what a test sets, under a clock that it moves.
struct World {
    program: Program,
    clock: Arc<ManualClock>,
    backups: ScheduledBackups,
}

impl World {
    fn new(change: impl FnOnce(&mut BackupSettings)) -> Self {
        // The name of each command goes to a file; its output is that of another file, without which it fails.
        let program = Program::new("echo \"$2 $*\" >> \"$0.calls\"; cat \"$0.$2\"");
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let backups = scheduled(&program, &clock, change);
        Self { program, clock, backups }
    }

    /// What a command prints from now on; none: it fails.
    fn prints(&self, command: &str, record: Option<Value>) {
        let path = self.file(command);
        match record {
            Some(record) => fs::write(path, format!("{record}\n")).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.program.path().join(format!("program.{name}"))
    }

    /// The commands of a step that begins after some time.
    async fn step_after(&mut self, time: Duration) -> Vec<String> {
        self.clock.advance(time);
        let _ = fs::remove_file(self.file("calls"));
        self.backups.step().await;
        let calls = fs::read_to_string(self.file("calls")).unwrap_or_default();
        calls.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
    }

    /// The record of a backup of this age.
    fn backup(&self, age: Duration) -> Value {
        let instant = format_time(self.clock.now().before(age));
        json!({ "id": "a", "instant": instant, "state": "complete", "sent_bytes": 5, "damage": [] })
    }

    fn age(&self) -> Duration {
        Duration::from_secs_f64(self.backups.reported.age().unwrap().round())
    }
}

/// Those of a process that starts.
fn scheduled(
    program: &Program,
    clock: &Arc<ManualClock>,
    change: impl FnOnce(&mut BackupSettings),
) -> ScheduledBackups {
    let mut settings = Settings::default();
    settings.backup.target = Some("backups".to_owned());
    change(&mut settings.backup);
    let meter = NoopMeterProvider::new().meter("test");
    let clock = Arc::<ManualClock>::clone(clock);
    let backups = ScheduledBackups::of(&settings, clock, &meter).unwrap().unwrap();
    ScheduledBackups { child: program.child(), ..backups }
}

#[tokio::test]
async fn without_a_backup_one_is_made_at_once_and_the_next_when_it_is_due() {
    let mut world = World::new(|_| {});
    world.prints("create", Some(world.backup(Duration::ZERO)));

    assert_eq!(world.step_after(Duration::ZERO).await, ["list", "create"]);
    assert!(world.step_after(59 * MINUTE).await.is_empty());
    assert_eq!(world.age(), 59 * MINUTE);
    world.prints("create", Some(world.backup(Duration::ZERO)));
    assert_eq!(world.step_after(MINUTE).await, ["create"]);
    assert_eq!(world.age(), MINUTE, "the record is a minute old");
}

#[tokio::test]
async fn a_start_finds_the_newest_backup_and_waits_for_the_rest_of_the_time() {
    let mut world = World::new(|_| {});
    let (older, newest) = (world.backup(90 * MINUTE), world.backup(20 * MINUTE));
    let unreadable = json!({ "id": "b", "state": "it is missing" });
    let list = format!("{newest}\n{older}\n{unreadable}\n");
    fs::write(world.file("list"), list).unwrap();
    world.prints("create", Some(world.backup(Duration::ZERO)));

    assert_eq!(world.step_after(Duration::ZERO).await, ["list"]);
    assert_eq!(world.age(), 20 * MINUTE);
    assert!(world.step_after(39 * MINUTE).await.is_empty());
    assert_eq!(world.step_after(MINUTE).await, ["create"]);
}

#[tokio::test]
async fn a_clock_that_steps_makes_no_backup_sooner_or_later() {
    let mut world = World::new(|_| {});
    // The clock was a year ahead when it was made.
    let future = world.clock.now().after(365 * 24 * 60 * MINUTE);
    world.prints("list", Some(json!({ "instant": format_time(future), "state": "complete" })));
    world.prints("create", Some(world.backup(Duration::ZERO)));

    assert_eq!(world.step_after(Duration::ZERO).await, ["list"]);
    assert!(world.step_after(59 * MINUTE).await.is_empty());
    assert_eq!(world.step_after(MINUTE).await, ["create"]);
    world.clock.set(future);
    assert!(world.step_after(59 * MINUTE).await.is_empty());
    world.clock.set(world.clock.now().before(3 * 365 * 24 * 60 * MINUTE));
    assert_eq!(world.step_after(MINUTE).await, ["create"]);
}

#[tokio::test]
async fn failures_are_repeated_with_growing_waits_and_leave_the_age() {
    let mut world = World::new(|_| {});

    assert_eq!(world.step_after(Duration::ZERO).await, ["list", "create"]);
    for minutes in [1, 2, 4] {
        assert!(world.step_after(minutes * MINUTE - Duration::from_secs(1)).await.is_empty());
        assert_eq!(world.step_after(Duration::from_secs(1)).await, ["create"]);
    }
    assert_eq!(world.age(), 7 * MINUTE, "since the start");
    world.prints("create", Some(world.backup(Duration::ZERO)));
    assert_eq!(world.step_after(8 * MINUTE).await, ["create"]);
    assert!(world.step_after(59 * MINUTE).await.is_empty());
    world.prints("create", None);
    assert_eq!(world.step_after(MINUTE).await, ["create"]);
    assert!(world.step_after(59 * Duration::from_secs(1)).await.is_empty());
    assert_eq!(world.step_after(Duration::from_secs(1)).await, ["create"], "a minute again");
}

#[tokio::test]
async fn old_backups_are_deleted_after_one_without_damage_by_the_rules_that_are_set() {
    let mut world = World::new(|backup| {
        backup.keep_last = Some(3);
        backup.keep_for = Some("30d".to_owned());
    });
    let mut damaged = world.backup(Duration::ZERO);
    damaged["damage"] = json!([{ "object": "blob/a", "reason": "it is missing" }]);
    world.prints("create", Some(damaged));
    assert_eq!(world.step_after(5 * MINUTE).await, ["list", "create"]);
    assert_eq!(world.age(), 5 * MINUTE, "one with damage is not counted");

    world.prints("create", Some(world.backup(Duration::ZERO)));
    assert!(world.step_after(59 * MINUTE).await.is_empty());
    assert_eq!(world.step_after(MINUTE).await, ["create", "prune"], "which failed");
    assert!(world.step_after(59 * MINUTE).await.is_empty());
    let calls = world.step_after(MINUTE).await;
    assert_eq!(calls, ["create", "prune"]);
    let lines = fs::read_to_string(world.file("calls")).unwrap();
    assert!(lines.contains("--keep-last 3 --keep-for 30d -o jsonl"), "{lines}");
}

#[tokio::test]
async fn the_newest_backup_of_a_start_may_have_damage_and_is_not_repeated_for_it() {
    let mut world = World::new(|_| {});
    let mut damaged = world.backup(10 * MINUTE);
    damaged["state"] = json!("with damage");
    let whole = world.backup(3 * 60 * MINUTE);
    fs::write(world.file("list"), format!("{whole}\n{damaged}\n")).unwrap();
    world.prints("create", Some(world.backup(Duration::ZERO)));

    assert_eq!(world.step_after(Duration::ZERO).await, ["list"]);
    assert_eq!(world.age(), 3 * 60 * MINUTE, "that of the newest one without damage");
    assert!(world.step_after(49 * MINUTE).await.is_empty());
    assert_eq!(world.step_after(MINUTE).await, ["create"]);
}

#[tokio::test]
async fn a_command_without_a_result_is_a_failure_and_malformed_fields_are_absent() {
    let mut world = World::new(|backup| backup.keep_last = Some(1));
    fs::write(world.file("list"), "7\n[]\n{\"instant\":7,\"state\":[]}\n{\"instant\":\"soon\"}\n")
        .unwrap();
    fs::write(world.file("create"), "no record\n").unwrap();

    assert_eq!(world.step_after(Duration::ZERO).await, ["list", "create"]);
    assert!(world.step_after(Duration::from_secs(59)).await.is_empty());
    world.prints("create", Some(json!([])));
    world.prints("prune", Some(json!({ "backups": 7, "bytes": "many" })));
    assert_eq!(world.step_after(Duration::from_secs(1)).await, ["create", "prune"]);
    assert_eq!(world.age(), MINUTE, "without its instant, the age is that of the process");
    assert!(world.step_after(59 * MINUTE).await.is_empty());
}

#[test]
fn the_rules_of_what_is_kept_are_passed_as_they_are_set() {
    let args = |last, time: Option<&str>| {
        let keep_for = time.map(str::to_owned);
        let settings = BackupSettings { keep_last: last, keep_for, ..BackupSettings::default() };
        let args = keep_args(&settings).into_iter().map(|arg| arg.into_string().unwrap());
        args.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(args(None, None), "");
    assert_eq!(args(Some(24), None), "--keep-last 24");
    assert_eq!(args(None, Some("30d")), "--keep-for 30d");
    assert_eq!(args(Some(1), Some("1m")), "--keep-last 1 --keep-for 1m");
}

#[tokio::test]
async fn a_shutdown_begins_no_command_and_is_no_failure() {
    let mut world = World::new(|_| {});
    let missing = world.program.child().with_executable(Path::new("/does/not/exist"));
    let stopped = CancellationToken::new();
    stopped.cancel();
    assert_eq!(missing.run("list", &[], &stopped, drop).await, ChildEnd::Stopped);

    // Whatever is due then remains due.
    world.backups.stop = stopped;
    assert!(world.step_after(Duration::ZERO).await.is_empty());
    world.backups.stop = CancellationToken::new();
    assert_eq!(world.step_after(Duration::ZERO).await, ["create"]);
}

#[test]
fn only_a_store_on_disk_with_a_target_is_backed_up() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(SystemClock.now()));
    let meter = NoopMeterProvider::new().meter("test");
    let is_scheduled = |change: fn(&mut Settings)| {
        let mut settings = Settings::default();
        settings.backup.target = Some("backups".to_owned());
        change(&mut settings);
        ScheduledBackups::of(&settings, Arc::clone(&clock), &meter).unwrap().is_some()
    };
    assert!(is_scheduled(|_| {}));
    assert!(!is_scheduled(|settings| settings.backup.target = None));
    assert!(!is_scheduled(|settings| settings.backup.target = Some(String::new())));
    assert!(!is_scheduled(|settings| settings.storage.ephemeral = true));
    assert!(!is_scheduled(|settings| settings.server.roles = "gateway".parse().unwrap()));
}
