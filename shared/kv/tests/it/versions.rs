//! Versions across restarts of the engine on disk.

use std::sync::Arc;
use std::time::Duration;

use trestle_kv::{Clock as _, FjallEngine, FjallOptions, ManualClock, Ticks};

use crate::world::{commit, key, options, put};

const SECOND: u64 = 10_000_000;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Ticks::new(1_000 * SECOND).unwrap()))
}

fn open(directory: &std::path::Path, clock: &Arc<ManualClock>) -> FjallEngine {
    let clock = Arc::clone(clock);
    FjallEngine::open(FjallOptions { clock, ..options(directory) }).unwrap()
}

#[tokio::test]
async fn versions_go_on_without_a_gap_after_a_clean_close() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), clock());
    let engine = open(directory.path(), &clock);
    let before = commit(&engine, vec![put(key("a"), "")]).await.unwrap();
    drop(engine);
    clock.set(Ticks::MIN);

    let engine = open(directory.path(), &clock);
    let after = commit(&engine, vec![put(key("a"), "")]).await.unwrap();

    // The write of the change itself takes one.
    assert_eq!(after, before.nth(2));
}

#[tokio::test]
async fn versions_start_at_most_a_second_ahead_after_a_crash() {
    let (directory, copy, clock) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), clock());
    let engine = open(directory.path(), &clock);
    let mut before = commit(&engine, vec![put(key("a"), "")]).await.unwrap();
    for _ in 0..50 {
        clock.advance(Duration::from_millis(70));
        before = commit(&engine, vec![put(key("a"), "")]).await.unwrap();
    }
    // As a crash leaves it: the engine is still open.
    copy_files(directory.path(), copy.path());
    let crashed_at = clock.now();
    clock.set(Ticks::MIN);

    let engine = open(copy.path(), &clock);
    let after = commit(&engine, vec![put(key("a"), "")]).await.unwrap();

    assert!(after > before, "{after:?} after {before:?}");
    let ahead = after.ticks().since(crashed_at);
    assert!(ahead <= Duration::from_millis(1_001), "{ahead:?} ahead");
    clock.set(crashed_at.after(Duration::from_secs(5)));
    let caught_up = commit(&engine, vec![put(key("a"), "")]).await.unwrap();
    assert_eq!(caught_up.ticks(), clock.now());
}

fn copy_files(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_files(&entry.path(), &target);
        } else if entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
