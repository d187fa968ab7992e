//! Versions across restarts of the engine on disk.

use std::sync::Arc;
use std::time::Duration;

use trestle_kv::Engine as _;
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_model::time::{Clock as _, ManualClock, Ticks};

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
    clock.reboot();
    clock.set(Ticks::MIN);

    let engine = open(copy.path(), &clock);
    let after = commit(&engine, vec![put(key("a"), "")]).await.unwrap();

    assert!(after > before, "{after:?} after {before:?}");
    let ahead = after.ticks().since(crashed_at);
    assert!(ahead <= Duration::from_millis(1_001), "{ahead:?} ahead");
    clock.set(crashed_at);
    clock.advance(Duration::from_secs(21));
    let caught_up = commit(&engine, vec![put(key("a"), "")]).await.unwrap();
    assert_eq!(caught_up.ticks(), clock.now());
}

#[tokio::test]
async fn versions_of_a_process_that_crashes_again_and_again_run_no_further_ahead() {
    let (mut directory, clock) = (tempfile::tempdir().unwrap(), clock());
    for _ in 0..12 {
        let engine = open(directory.path(), &clock);
        let version = commit(&engine, vec![put(key("a"), "")]).await.unwrap();
        let ahead = version.ticks().since(clock.now());
        assert!(ahead <= Duration::from_millis(1_050), "{ahead:?} ahead");
        let copy = tempfile::tempdir().unwrap();
        copy_files(directory.path(), copy.path());
        drop(engine);
        directory = copy;
        clock.advance(Duration::from_millis(50));
    }
}

#[tokio::test]
async fn time_continues_after_a_crash_by_what_elapsed_and_not_by_the_wall_clock() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), clock());
    let engine = open(directory.path(), &clock);
    commit(&engine, vec![put(key("a"), "")]).await.unwrap();
    clock.advance(Duration::from_secs(600));
    commit(&engine, vec![put(key("a"), "")]).await.unwrap();
    let crashed_at = engine.now();

    for wall in [Ticks::MIN, crashed_at.after(Duration::from_secs(86_400))] {
        let copy = tempfile::tempdir().unwrap();
        copy_files(directory.path(), copy.path());
        clock.set(wall);
        let before = engine.now();
        let restored = open(copy.path(), &clock).now();
        // The open engine slews meanwhile, which is in no checkpoint.
        let slewed = Duration::from_secs(60) / 20 + Duration::from_nanos(100);
        assert!(restored >= before && restored.since(before) <= slewed, "{restored:?}, {before:?}");
        clock.advance(Duration::from_secs(60));
        // Read before the next step of the wall clock, or these 60 s count as slewed towards that one.
        engine.now();
    }
    // Another boot: only the wall clock shows how long it took.
    let copy = tempfile::tempdir().unwrap();
    copy_files(directory.path(), copy.path());
    clock.reboot();
    clock.set(crashed_at.after(Duration::from_secs(86_400)));
    assert_eq!(open(copy.path(), &clock).now(), clock.now());
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
