//! What happens at the named points of a commit: delays, failures, and an end of the process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use trestle_kv::conformance::{KEYSPACES, covering};
use trestle_kv::faulty::{FaultRates, FaultyEngine};
use trestle_kv::pressure::{CommitPoint, Effect, EffectRates, PressurePoints};
use trestle_kv::{CommitError, Engine, EngineError, MemoryEngine, Writes, transact};
use trestle_kv_fjall::{FjallEngine, FjallOptions, SyncPolicy};

use crate::child;
use crate::world::{commit, everything, get, key, options, put};

const TIMES: u64 = 5;

fn open(directory: &Path, points: &Arc<PressurePoints>) -> FjallEngine {
    let on_point = Some(points.hook());
    FjallEngine::open(FjallOptions { on_point, ..options(directory) }).unwrap()
}

/// Commits one row after the other, and aborts when the point is reached for the fifth time.
pub(crate) fn abort_at(point: &str, directory: &Path) {
    let points = PressurePoints::new();
    points.arm(CommitPoint::from_name(point).unwrap(), TIMES, Effect::Abort);
    let engine = open(directory, &points);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for row in 0..100 {
            commit(&engine, vec![put(key(format!("{row:03}")), "")]).await.unwrap();
            child::report(&format!("ack {row}"));
        }
    });
}

#[tokio::test]
async fn an_abort_at_any_point_keeps_what_was_acknowledged_and_nothing_by_halves() {
    for (point, unanswered) in [
        (CommitPoint::BeforeJournal, 0),
        (CommitPoint::AfterSync, 1),
        (CommitPoint::BeforeAnswer, 1),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let role = format!("abort-at-{}", point.name());
        let mut process = child::command(&role, directory.path()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let lines = output.lines().map_while(Result::ok);
        let acknowledged = lines.filter(|line| line.starts_with("ack ")).count();
        assert!(!process.wait().unwrap().success(), "{point:?}: it went on");

        let engine = FjallEngine::open(options(directory.path())).unwrap();

        assert_eq!(acknowledged, 4, "{point:?}");
        assert_eq!(everything(&engine).await.len(), acknowledged + unanswered, "{point:?}");
    }
}

#[tokio::test]
async fn a_failure_around_the_journal_is_unknown_and_stops_the_engine() {
    for (point, is_stored) in [(CommitPoint::BeforeJournal, false), (CommitPoint::AfterSync, true)]
    {
        let directory = tempfile::tempdir().unwrap();
        let points = PressurePoints::new();
        points.arm(point, 2, Effect::Fail);
        let engine = open(directory.path(), &points);
        commit(&engine, vec![put(key("first"), "")]).await.unwrap();

        let failed = commit(&engine, vec![put(key("second"), "")]).await;
        let next = commit(&engine, vec![put(key("third"), "")]).await;

        assert!(
            matches!(&failed, Err(CommitError::Unknown { reason })
            if reason.contains(point.name())),
            "{failed:?}"
        );
        assert!(matches!(next, Err(CommitError::Stopped { .. })), "{next:?}");
        drop(engine);
        let engine = FjallEngine::open(options(directory.path())).unwrap();
        assert_eq!(get(&engine, &key("second")).await.is_some(), is_stored, "{point:?}");
        assert!(get(&engine, &key("first")).await.is_some());
    }
}

/// Inserts a row once, however often it is tried: what a service does with a request id.
async fn insert_once(engine: &dyn Engine) -> Result<Result<(), &'static str>, CommitError> {
    let row = key("once");
    let mut spec = covering([&row]);
    let id = spec.read(row);
    let inserted = transact(engine, spec, move |reads, _| {
        if reads.get(id).is_some() {
            return Err("already there");
        }
        let mut writes = Writes::new();
        writes.put(reads.key(id).clone(), "");
        Ok((writes, ()))
    });
    inserted.await
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_a_retry_meets_its_own_commit() {
    let directory = tempfile::tempdir().unwrap();
    let points = PressurePoints::new();
    points.arm(CommitPoint::BeforeAnswer, 1, Effect::Fail);
    let fjall = open(directory.path(), &points);
    let faulty =
        FaultyEngine::new(Arc::new(MemoryEngine::new(KEYSPACES)), 1, FaultRates::default());
    faulty.points().arm(CommitPoint::BeforeAnswer, 1, Effect::Fail);

    for engine in [&fjall as &dyn Engine, &faulty] {
        let lost = insert_once(engine).await;
        assert!(matches!(lost, Err(CommitError::Unknown { .. })), "{lost:?}");

        let retried = insert_once(engine).await;

        assert_eq!(retried.unwrap(), Err("already there"));
        assert!(engine.status().stopped.is_none());
    }
}

#[tokio::test]
async fn a_failed_flush_at_the_interval_stops_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let points = PressurePoints::new();
    points.arm(CommitPoint::BeforeFlush, 3, Effect::Fail);
    let engine = FjallEngine::open(FjallOptions {
        durability: SyncPolicy::Interval(Duration::from_millis(5)),
        on_point: Some(points.hook()),
        ..options(directory.path())
    });
    let engine = engine.unwrap();

    while points.reached(CommitPoint::BeforeFlush) < 3 || engine.status().stopped.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    let rejected = commit(&engine, vec![put(key("a"), "")]).await;
    assert!(matches!(rejected, Err(CommitError::Stopped { .. })), "{rejected:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drawn_delays_at_every_point_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let delay_max = Duration::from_millis(3);
    let rates = EffectRates { delay: 0.5, delay_max, ..EffectRates::default() };
    let engine = Arc::new(open(directory.path(), &PressurePoints::seeded(7, rates)));

    let mut tasks = tokio::task::JoinSet::new();
    for row in 0..64_u8 {
        let engine = Arc::clone(&engine);
        tasks.spawn(async move { commit(&*engine, vec![put(key([row]), "")]).await.unwrap() });
    }
    let mut versions = tasks.join_all().await;

    versions.sort();
    versions.dedup();
    assert_eq!(versions.len(), 64, "each change has a version of its own");
    assert_eq!(everything(&*engine).await.len(), 64);
}

#[tokio::test]
async fn a_snapshot_ends_after_its_reads_and_a_new_one_goes_on() {
    let rates = FaultRates { snapshot_reads_max: Some(2), ..FaultRates::default() };
    let engine = FaultyEngine::new(Arc::new(MemoryEngine::new(KEYSPACES)), 1, rates);
    let view = engine.snapshot().await.unwrap();

    for _ in 0..2 {
        assert!(view.get(&key("a")).await.is_ok());
    }

    let ended = view.get(&key("a")).await;
    assert!(matches!(ended, Err(EngineError::SnapshotEnded { .. })), "{ended:?}");
    assert!(engine.snapshot().await.unwrap().get(&key("a")).await.is_ok());
}
