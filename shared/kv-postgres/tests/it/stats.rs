//! What the engine counts, and what it has open.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use std::time::{Duration, Instant};

use trestle_kv::conformance::KEYSPACES;
use trestle_kv::conformance::rows::{commit, key, put};
use trestle_kv::{CommitError, Engine};
use trestle_kv_postgres::testing::PostgresServer;
use trestle_kv_postgres::{PostgresEngine, PostgresOptions, PostgresStats, RetryReason};

use crate::world::open;

/// Waits until the statistics of an engine are as they must be.
async fn becomes(engine: &PostgresEngine, is_expected: impl Fn(&PostgresStats) -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_expected(&engine.stats()) {
        assert!(Instant::now() < until, "{:?}", engine.stats());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn place(reason: RetryReason) -> usize {
    RetryReason::ALL.iter().position(|it| *it == reason).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_are_reported_with_the_changes_that_wrote_something_and_their_bytes() {
    const CHANGES: u64 = 40;
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let (groups, changes) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (counted, written) = (Arc::clone(&groups), Arc::clone(&changes));
    let options = PostgresOptions::new(server.address(&server.database().await), KEYSPACES);
    let on_group = Arc::new(move |group: trestle_kv::GroupWrite| {
        counted.fetch_add(u64::from(!group.took.is_zero()), Relaxed);
        written.fetch_add(group.changes, Relaxed);
    });
    let engine = PostgresEngine::open(PostgresOptions { on_group, ..options }).await.unwrap();

    let writing = (0..CHANGES).map(|number| {
        let writes = vec![put(key(format!("r{number:02}")), "value")];
        commit(&engine, writes)
    });
    for written in futures::future::join_all(writing).await {
        written.unwrap();
    }
    commit(&engine, Vec::new()).await.unwrap();

    let groups = groups.load(Relaxed);
    assert!((1..=CHANGES).contains(&groups), "{groups}");
    assert_eq!(changes.load(Relaxed), CHANGES, "one of them wrote nothing");
    let stats = engine.stats();
    let of_one = key("r00").len() + "value".len();
    assert_eq!(stats.bytes, CHANGES * of_one as u64);
    assert_eq!((stats.queue_depth, stats.shed, stats.unknown), (0, 0, 0));
    assert_eq!(stats.retries, [0; RetryReason::ALL.len()]);
}

/// The server fails every second statement with an error that one could meet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_tried_again_is_counted_by_its_reason() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    let planted = async |state: &str| {
        let sql = format!(
            "CREATE SEQUENCE IF NOT EXISTS tries; ALTER SEQUENCE tries RESTART; \
             CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('tries') % 2 = 1 THEN RAISE EXCEPTION 'planted' USING ERRCODE = '{state}'; \
             END IF; RETURN NULL; END $$; \
             CREATE OR REPLACE TRIGGER fails BEFORE INSERT ON trestle_first \
             FOR EACH STATEMENT EXECUTE FUNCTION fail()"
        );
        server.execute(&database, &sql).await.unwrap();
    };
    let mut expected = [0; RetryReason::ALL.len()];
    for (state, reason) in [
        ("40001", RetryReason::Serialization),
        ("40P01", RetryReason::Deadlock),
        ("55P03", RetryReason::LockTimeout),
        ("53200", RetryReason::LockTable),
        ("23502", RetryReason::Version),
        ("25006", RetryReason::ReadOnly),
    ] {
        planted(state).await;
        commit(&*engine, vec![put(key("a"), state.to_owned())]).await.unwrap();

        expected[place(reason)] += 1;
        assert_eq!(engine.stats().retries, expected, "{state}");
    }

    // Another failure is none that is tried again.
    planted("22000").await;
    let error = commit(&*engine, vec![put(key("a"), "1")]).await.unwrap_err();
    assert!(matches!(error, CommitError::Unavailable { .. }), "{error}");
    assert_eq!((engine.stats().retries, engine.stats().unknown), (expected, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_waits_for_a_database_that_is_away_is_counted() {
    let Some(mut server) = PostgresServer::start(&[]).await else { return };
    let engine = open(&server.address(&server.database().await)).await;
    assert!(engine.server_now().await.unwrap().is_primary);
    server.crash();

    let is_retried = |stats: &PostgresStats| stats.retries[place(RetryReason::Lost)] > 0;
    let writing = {
        let engine = Arc::clone(&engine);
        // A process of the server may outlive it for a moment, and commit. Later ones wait, or are unavailable.
        tokio::spawn(async move {
            while !is_retried(&engine.stats()) {
                let _ = commit(&*engine, vec![put(key("a"), "1")]).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    };
    becomes(&engine, is_retried).await;
    server.run().await;

    writing.await.unwrap();
    assert!(engine.server_now().await.unwrap().is_primary);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_open_snapshot_and_the_connections_are_counted() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let engine = open(&server.address(&server.database().await)).await;
    let pools = || engine.stats().connections.map(|pool| (pool.name, pool.used, pool.idle));
    becomes(&engine, |stats| stats.connections[0].idle == 1).await;
    assert_eq!(pools(), [("commits", 0, 1), ("reads", 0, 0), ("snapshots", 0, 0)]);
    assert_eq!(engine.stats().oldest_snapshot, Duration::ZERO);

    let first = engine.snapshot().await.unwrap();
    let between = Instant::now();
    let second = engine.snapshot().await.unwrap();
    engine.get(&key("a")).await.unwrap();
    let least = between.elapsed();
    assert!(engine.stats().oldest_snapshot >= least, "{:?} {least:?}", engine.stats());
    assert_eq!(pools(), [("commits", 0, 1), ("reads", 1, 0), ("snapshots", 2, 0)]);

    drop(first);
    becomes(&engine, |stats| stats.connections[2].idle == 1).await;
    let age = engine.stats().oldest_snapshot;
    assert!(!age.is_zero() && age <= between.elapsed(), "{age:?}");
    drop(second);
    assert_eq!(engine.stats().oldest_snapshot, Duration::ZERO);
    becomes(&engine, |stats| stats.connections[2].used == 0).await;
    assert_eq!(pools()[2], ("snapshots", 0, 2));
    assert_eq!(engine.stats().connections.map(|pool| pool.max), [8, 4, 16]);
}
