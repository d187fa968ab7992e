//! Failing syncs and full disks, through a preloaded library that this test compiles.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use tokio::task::JoinSet;
use trestle_kv::{CommitError, Engine, Version};
use trestle_kv_fjall::{FjallEngine, FjallOptions, SyncPolicy};

use crate::HANG;
use crate::child;
use crate::world::{commit, everything, get, key, open, options, put};

/// The compiled library, or none where there is no C compiler.
fn library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let compiled = LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/fsfault.c");
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Another run may be loading the old one: replace it as a whole.
        let (draft, library) = (
            directory.join(format!("fsfault-{}.so", std::process::id())),
            directory.join("libfsfault.so"),
        );
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-o"]).arg(&draft).arg(&source);
        let Ok(status) = compiler.arg("-ldl").status() else {
            println!("SKIPPED: no C compiler `cc`, so no faults of the file system are tested");
            return None;
        };
        assert!(status.success(), "the fault library does not compile");
        fs::rename(draft, &library).unwrap();
        Some(library)
    });
    compiled.as_deref()
}

/// Runs a role with the library; its directory has room for the engine and the triggers.
/// Returns the events it reported, or nothing if there is no library.
pub(crate) fn run(role: &str, directory: &Path) -> Option<Vec<String>> {
    let triggers = directory.join("triggers");
    fs::create_dir(&triggers).unwrap();
    let output = child::command(role, directory)
        .env("LD_PRELOAD", library()?)
        .env("KVFAULT_DIR", &triggers)
        .env("KVFAULT_SYNC_DELAY_US", "500")
        .output()
        .unwrap();
    let events = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{events}");
    Some(events.lines().map(str::to_owned).collect())
}

fn acknowledged(events: &[String]) -> Vec<&str> {
    events.iter().filter_map(|event| event.strip_prefix("ack ")).collect()
}

async fn commit_and_say(engine: &dyn Engine, name: &str) -> Result<Version, CommitError> {
    let outcome = commit(engine, vec![put(key(name), "value")]).await;
    if outcome.is_ok() {
        child::report(&format!("ack {name}"));
    }
    outcome
}

fn block_on(work: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap().block_on(work);
}

/// Writes 20 rows, makes a fault appear and go, and checks the engine from then on.
fn meet(directory: &Path, fault: &str) {
    let trigger = directory.join("triggers").join(fault);
    block_on(async {
        let engine = open(&directory.join("data"));
        for row in 0..20 {
            commit_and_say(&*engine, &format!("{row:03}")).await.unwrap();
        }

        fs::write(&trigger, "").unwrap();
        let failed = commit_and_say(&*engine, "failed").await;
        fs::remove_file(&trigger).unwrap();

        assert!(matches!(failed, Err(CommitError::Unknown { .. })), "{failed:?}");
        assert_eq!(get(&*engine, &key("failed")).await, None, "never durable, so never read");
        for row in 0..20 {
            let rejected = commit_and_say(&*engine, &format!("after-{row}")).await;
            assert!(matches!(rejected, Err(CommitError::Stopped { .. })), "{rejected:?}");
        }
        assert_eq!(everything(&*engine).await.len(), 20);
        // Clients receive this.
        let output = engine.status().stopped.unwrap();
        let (operation, error) = match fault {
            "sync-fails" => ("sync of a journal failed", "os error 5"),
            _ => ("write to a journal failed", "os error 28"),
        };
        for part in [operation, error, "data/db/0.jnl"] {
            assert!(output.contains(part), "{part}: {output}");
        }
        assert!(
            !output.contains("Error:") && !output.contains("Os {"),
            "Rust debug text: {output}"
        );
    });
}

pub(crate) fn meet_a_failing_sync(directory: &Path) {
    meet(directory, "sync-fails");
}

pub(crate) fn meet_a_full_disk(directory: &Path) {
    meet(directory, "disk-full");
}

/// Reopens without faults: every acknowledged row exists, and what was rejected is not.
async fn check_after(directory: &Path, events: &[String]) {
    assert!(!directory.join("data/CLOSED").exists(), "what the journal holds is not known");
    let engine = open(&directory.join("data"));
    let acknowledged = acknowledged(events);
    assert_eq!(acknowledged.len(), 20);
    for name in acknowledged {
        assert_eq!(get(&*engine, &key(name)).await, Some("value".into()), "{name}");
    }
    let after = everything(&*engine).await;
    assert!(after.iter().all(|entry| !entry.key.starts_with(b"\x01after")));
    commit(&*engine, vec![put(key("again"), "value")]).await.unwrap();
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_acknowledged_and_reads_go_on() {
    let directory = tempfile::tempdir().unwrap();

    let Some(events) = run("meet-a-failing-sync", directory.path()) else {
        return;
    };

    check_after(directory.path(), &events).await;
}

#[tokio::test]
async fn after_a_full_disk_reads_go_on_and_a_restart_shows_what_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();

    let Some(events) = run("meet-a-full-disk", directory.path()) else {
        return;
    };

    check_after(directory.path(), &events).await;
}

/// Commits do not wait for the sync here; the engine must still notice that it failed.
pub(crate) fn meet_a_failing_interval_sync(directory: &Path) {
    let durability = SyncPolicy::Interval(Duration::from_millis(5));
    let options = FjallOptions { durability, ..options(&directory.join("data")) };
    block_on(async {
        let engine = FjallEngine::open(options).unwrap();
        commit_and_say(&engine, "before").await.unwrap();

        fs::write(directory.join("triggers/sync-fails"), "").unwrap();
        while engine.status().stopped.is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }

        let rejected = commit_and_say(&engine, "after").await;
        assert!(matches!(rejected, Err(CommitError::Stopped { .. })), "{rejected:?}");
        assert_eq!(everything(&engine).await.len(), 1);
    });
}

#[tokio::test]
async fn a_failed_sync_between_commits_stops_the_engine_too() {
    let directory = tempfile::tempdir().unwrap();

    let Some(events) = run("meet-a-failing-interval-sync", directory.path()) else {
        return;
    };

    assert_eq!(acknowledged(&events), ["before"]);
    let engine = open(&directory.path().join("data"));
    assert_eq!(get(&*engine, &key("after")).await, None);
}

/// A flush fails in a thread of the database, which returns its error to no caller.
pub(crate) fn meet_a_failing_flush(directory: &Path) {
    block_on(async {
        let engine = open(&directory.join("data"));
        // From here on no table can be written, and nothing is in the way of a journal.
        fs::write(directory.join("triggers/tables-fail"), "").unwrap();
        for row in 0..200_u8 {
            let value = put(key([row]), vec![row; 1_500_000]);
            if commit(&*engine, vec![value]).await.is_err() {
                break;
            }
        }
        let deadline = std::time::Instant::now() + HANG;
        while engine.status().stopped.is_none() && std::time::Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let output = engine.status().stopped.expect("the flush fails");
        for part in ["flush of a memtable failed", "os error 24", "data/db/keyspaces"] {
            assert!(output.contains(part), "{part}: {output}");
        }
        child::report("named");
    });
}

#[tokio::test]
async fn a_failed_flush_is_named_with_its_error() {
    let directory = tempfile::tempdir().unwrap();

    let Some(events) = run("meet-a-failing-flush", directory.path()) else {
        return;
    };

    assert!(events.iter().any(|event| event == "named"), "{events:?}");
}

/// Changes before the sync that fails.
const ACKNOWLEDGED: usize = 64;

/// Many writers at once, and a sync that fails under them.
pub(crate) fn fail_a_sync_under_load(directory: &Path) {
    let trigger = directory.join("triggers/sync-fails");
    block_on(async {
        let engine = open(&directory.join("data"));
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let mut writers = JoinSet::new();
        for writer in 0..32 {
            let (engine, acknowledged) = (Arc::clone(&engine), Arc::clone(&acknowledged));
            writers.spawn(async move {
                let mut outcomes = Vec::new();
                for row in 0..1_000 {
                    let outcome = commit_and_say(&*engine, &format!("{writer}-{row}")).await;
                    acknowledged.fetch_add(usize::from(outcome.is_ok()), Ordering::Relaxed);
                    outcomes.push(outcome);
                    if outcomes.iter().filter(|outcome| outcome.is_err()).count() > 5 {
                        break;
                    }
                }
                outcomes
            });
        }
        let all = async {
            while acknowledged.load(Ordering::Relaxed) < ACKNOWLEDGED {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(HANG, all).await.expect("writes are acknowledged");
        fs::write(&trigger, "").unwrap();
        let outcomes = writers.join_all().await;

        for outcomes in outcomes {
            let first_failure = outcomes.iter().position(Result::is_err).unwrap();
            assert!(outcomes[first_failure..].iter().all(Result::is_err), "acknowledged again");
            for later in &outcomes[first_failure + 1..] {
                assert!(matches!(later, Err(CommitError::Stopped { .. })), "{later:?}");
            }
        }
    });
}

#[tokio::test]
async fn a_sync_that_fails_under_load_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();

    let Some(events) = run("fail-a-sync-under-load", directory.path()) else {
        return;
    };

    let acknowledged = acknowledged(&events);
    assert!(
        acknowledged.len() >= ACKNOWLEDGED,
        "not all events were reported: {}",
        acknowledged.len()
    );
    let engine = open(&directory.path().join("data"));
    for name in acknowledged {
        assert_eq!(get(&*engine, &key(name)).await, Some("value".into()), "{name}");
    }
}
