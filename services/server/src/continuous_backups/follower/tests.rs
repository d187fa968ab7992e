use std::{fs, path::PathBuf};

use serde_json::json;
use trestle_model::time::{ManualClock, SystemClock};

use super::*;
use crate::scheduled_backups::tests::Program;

/// The task with a program in place of the command, under a clock that a test moves.
struct World {
    program: Program,
    clock: Arc<ManualClock>,
    task: FollowTask,
}

impl World {
    fn new(script: &str) -> Self {
        let program = Program::new(script);
        let clock = Arc::new(ManualClock::new(SystemClock.now()));
        let (child, stop) = (program.child(), CancellationToken::new());
        let args = child.data_args(None);
        let task =
            FollowTask { child, args, clock: Arc::<ManualClock>::clone(&clock), failures: 0, stop };
        Self { program, clock, task }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.program.path().join(format!("program.{name}"))
    }
}

#[tokio::test]
async fn pauses_double_after_failures_up_to_a_minute() {
    let mut world = World::new("echo no target >&2; exit 5");
    let mut pauses = Vec::new();
    for _ in 0..9 {
        pauses.push(world.task.run().await.as_secs());
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    world.task.failures = u32::MAX;
    assert_eq!(world.task.run().await, PAUSE_MAX, "numbers have bounds");
}

#[tokio::test]
async fn a_command_that_ran_for_long_is_begun_again_soon() {
    // It ends once the test has moved the clock.
    let script = "touch \"$0.runs\"; while [ ! -e \"$0.over\" ]; do sleep 0.01; done; exit 1";
    let mut world = World::new(script);
    world.task.failures = 5;
    let (clock, runs, over) = (Arc::clone(&world.clock), world.file("runs"), world.file("over"));
    let ran = async {
        while !runs.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        clock.advance(RAN_WELL);
        fs::write(over, "").unwrap();
    };
    let (pause, ()) = tokio::join!(world.task.run(), ran);
    assert_eq!(pause, PAUSE_MIN);
    assert_eq!(world.task.run().await, 2 * PAUSE_MIN, "and then as before");
}

#[tokio::test]
async fn it_has_the_data_directory_the_keys_and_the_server() {
    let mut world = World::new("echo \"$*\" > \"$0.args\"");
    world.task.args = world.task.child.data_args(Some(std::path::Path::new("/keys")));
    assert_eq!(world.task.run().await, PAUSE_MIN, "an end is one to begin again after");
    let args = fs::read_to_string(world.file("args")).unwrap();
    let (folder, target) = (world.program.path(), std::path::absolute("backups").unwrap());
    let expected = format!(
        "backup follow {} --data-dir {} --config /dev/null --server-pid {} --encrypt /keys -o jsonl\n",
        target.display(),
        folder.display(),
        std::process::id()
    );
    assert_eq!(args, expected);
}

#[tokio::test]
async fn a_shutdown_ends_the_command_and_begins_no_other() {
    let script = "touch \"$0.runs\"; while :; do sleep 0.01; done";
    let mut world = World::new(script);
    let (runs, stop) = (world.file("runs"), world.task.stop.clone());
    let stopped = async {
        while !runs.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let (pause, ()) = tokio::join!(world.task.run(), stopped);
    assert_eq!(pause, Duration::ZERO);
    fs::remove_file(world.file("runs")).unwrap();
    assert_eq!(world.task.run().await, Duration::ZERO);
    assert!(!world.file("runs").exists());
}

#[test]
fn every_record_of_the_command_is_logged_and_others_are_not() {
    let reported = |record: &Value| {
        let events = Arc::new(std::sync::Mutex::new(Vec::new()));
        let subscriber = Events(Arc::clone(&events));
        tracing::subscriber::with_default(subscriber, || report(record));
        Arc::try_unwrap(events).unwrap().into_inner().unwrap()
    };
    let begun = json!({ "line": "a", "begun": "2026-01-31T08:00:00Z" });
    let ended = json!({ "line": "a", "ended": "2026-01-31T08:00:00Z", "reason": "given up" });
    let missing = json!({ "object": "blob/a", "reason": "it is missing" });
    assert_eq!(reported(&begun), [tracing::Level::INFO]);
    for warned in [ended, missing] {
        assert_eq!(reported(&warned), [tracing::Level::WARN], "{warned}");
    }
    for other in [json!({}), json!([]), json!({ "begun": 7 }), json!({ "line": "a" })] {
        assert!(reported(&other).is_empty(), "{other}");
    }
}

/// The levels of events.
struct Events(Arc<std::sync::Mutex<Vec<tracing::Level>>>);

impl tracing::Subscriber for Events {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        self.0.lock().unwrap().push(*event.metadata().level());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
