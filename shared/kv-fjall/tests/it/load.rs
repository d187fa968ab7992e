//! Many callers at once: groups form, and no caller waits without end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use trestle_kv::conformance::{covering, reading};
use trestle_kv::{Change, CommitError, Engine, EngineError, Reads, Span, Writes};
use trestle_kv_fjall::{FjallEngine, FjallOptions, SyncPolicy};

use crate::world::{NO_LIMIT, commit, everything, key, noise, open, options, put};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_wait_together_are_written_together() {
    const TASKS: u64 = 256;
    const TIMES: u64 = 10;
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());

    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let engine = Arc::clone(&engine);
        tasks.spawn(async move {
            for time in 0..TIMES {
                let row = format!("{task}-{time}");
                commit(&*engine, vec![put(key(row), "value")]).await.unwrap();
            }
        });
    }
    tasks.join_all().await;

    let stats = engine.stats();
    assert_eq!(stats.changes, TASKS * TIMES);
    assert!(stats.groups * 2 < stats.changes, "no groups formed: {stats:?}");
    assert!(stats.group_changes_max <= 1_024);
    assert!(stats.write_time >= stats.write_time_max && !stats.write_time_max.is_zero());
    assert_eq!((stats.shed, stats.queue_depth), (0, 0));
    assert_eq!(everything(&*engine).await.len(), 2_560);
}

#[tokio::test]
async fn every_sync_is_observed_and_none_where_commits_do_not_sync() {
    for (durability, syncs) in [(SyncPolicy::Always, 3), (SyncPolicy::Os, 0)] {
        let directory = tempfile::tempdir().unwrap();
        let reported: Arc<Mutex<Vec<(&str, Duration)>>> = Arc::default();
        let (groups, times) = (Arc::clone(&reported), Arc::clone(&reported));
        let options = FjallOptions {
            durability,
            on_group: Arc::new(move |group| groups.lock().unwrap().push(("group", group.took))),
            on_sync: Arc::new(move |time| times.lock().unwrap().push(("sync", time))),
            ..options(directory.path())
        };
        let engine = FjallEngine::open(options).unwrap();

        for row in ["a", "b", "c"] {
            commit(&engine, vec![put(key(row), "value")]).await.unwrap();
        }

        let reported = reported.lock().unwrap();
        let of =
            |what| reported.iter().filter(move |(kind, _)| *kind == what).map(|(_, time)| *time);
        assert_eq!((of("group").count(), of("sync").count()), (3, syncs), "{reported:?}");
        assert!(of("sync").zip(of("group")).all(|(sync, group)| sync < group), "{reported:?}");
        assert!(of("sync").all(|sync| !sync.is_zero()), "{reported:?}");
    }
}

#[tokio::test]
async fn a_full_queue_rejects_changes_without_writing_them() {
    const QUEUE: usize = 4_096;
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let (entered, started) = std::sync::mpsc::channel::<()>();

    // The commit thread is held inside a decision, so that the queue behind it fills up.
    let blocked = Arc::clone(&engine);
    let blocker = tokio::spawn(async move {
        let waits = move |_: &Reads<'_>, _| {
            entered.send(()).unwrap();
            gate.recv().unwrap();
            Writes::new()
        };
        blocked.commit(Change::new(covering([]), waits)).await
    });
    while started.try_recv().is_err() {
        tokio::task::yield_now().await;
    }
    let mut waiting = JoinSet::new();
    for row in 0..QUEUE {
        let engine = Arc::clone(&engine);
        waiting.spawn(async move { commit(&*engine, vec![put(key(row.to_string()), "")]).await });
    }
    while engine.stats().queue_depth < 4_096 {
        tokio::task::yield_now().await;
    }
    let rejected = commit(&*engine, vec![put(key("one too many"), "")]).await;
    release.send(()).unwrap();

    assert!(matches!(rejected, Err(CommitError::Busy { .. })), "{rejected:?}");
    assert!(blocker.await.unwrap().is_ok());
    assert!(waiting.join_all().await.iter().all(Result::is_ok));
    assert_eq!(everything(&*engine).await.len(), QUEUE);
    assert_eq!(engine.stats().shed, 1);
}

#[tokio::test]
async fn kinds_without_a_keyspace_and_spans_across_keyspaces_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let view = engine.snapshot().await.unwrap();

    let written = commit(&*engine, vec![put(vec![0x20, 1], "")]).await;
    let read = engine.commit(Change::new(reading(&[vec![0].into()]), |_, _| Writes::new())).await;
    for outcome in [written, read] {
        assert!(matches!(outcome, Err(CommitError::Rejected { .. })), "{outcome:?}");
    }
    for key in [&[0_u8][..], &[2], &[]] {
        assert!(matches!(view.get(key).await, Err(EngineError::Rejected { .. })));
    }
    for span in [
        Span::new(vec![0], vec![2]),
        Span::new(vec![1], vec![0x41]),
        Span::new(vec![1], vec![2, 0]),
        Span::new(vec![0x20], vec![0x21]),
    ] {
        let outcome = view.scan(&span, NO_LIMIT).await;
        assert!(matches!(outcome, Err(EngineError::Rejected { .. })), "{span:?}");
    }
    assert!(view.scan(&Span::prefix(&[0xFF]), NO_LIMIT).await.is_ok());
}

#[tokio::test]
async fn writes_go_on_beside_a_snapshot_that_stays_open() {
    const VALUES: u64 = 48;
    let directory = tempfile::tempdir().unwrap();
    let options = FjallOptions { write_buffer_bytes: 8 * 1024 * 1024, ..options(directory.path()) };
    let engine = FjallEngine::open(options).unwrap();
    commit(&engine, vec![put(key("before"), "value")]).await.unwrap();
    let held = engine.snapshot().await.unwrap();
    assert_eq!(held.get(&key("before")).await.unwrap(), Some("value".into()));

    for number in 0..VALUES {
        let value = noise(number, 1024 * 1024);
        commit(&engine, vec![put(key(format!("{number}")), value)]).await.unwrap();
    }

    let ended = [
        held.get(&key("before")).await.map(|_| ()),
        held.scan(&Span::prefix(&[1]), NO_LIMIT).await.map(|_| ()),
    ];
    for ended in ended {
        assert!(matches!(ended, Err(EngineError::SnapshotEnded { .. })), "{ended:?}");
    }
    let view = engine.snapshot().await.unwrap();
    assert_eq!(view.get(&key("before")).await.unwrap(), Some("value".into()));
    assert_eq!(engine.stats().shed, 0);
}
