//! A primary that waits for a standby: what the standby does not have is not acknowledged.

use std::time::{Duration, Instant};

use trestle_kv::conformance::rows::{commit, key, put};
use trestle_kv::{CommitError, Engine};
use trestle_kv_postgres::{ServerStatus, testing::PostgresServer};

use crate::world::open;

/// Of a standby that is named and never there.
const ABSENT: [&str; 2] = ["synchronous_standby_names=standby", "synchronous_commit=on"];

/// Until a process of the server waits for the standby.
async fn wait_for_commit(server: &PostgresServer, database: &str) {
    let client = server.client(database).await.unwrap();
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let until = Instant::now() + Duration::from_secs(60);
    while client.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(Instant::now() < until, "no commit waits");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An engine on a primary that waits for a standby from now on.
async fn waiting_primary() -> Option<(PostgresServer, String)> {
    let server = PostgresServer::start(&[]).await?;
    let database = server.database().await;
    // What creates the store would wait too.
    drop(open(&server.address(&database)).await);
    name_standby(&server, &database).await;
    Some((server, database))
}

/// Has a primary wait for a standby from now on.
async fn name_standby(server: &PostgresServer, database: &str) {
    for setting in ABSENT {
        let (name, value) = setting.split_once('=').unwrap();
        let set = format!("ALTER SYSTEM SET {name} = '{value}'");
        server.execute(database, &set).await.unwrap();
    }
    server.execute(database, "SELECT pg_reload_conf()").await.unwrap();
    let client = server.client(database).await.unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let row = client.query_one("SHOW synchronous_standby_names", &[]).await.unwrap();
        if row.get::<_, String>(0) == "standby" {
            return;
        }
        assert!(Instant::now() < until, "the setting is not there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_wait_is_ended_is_unknown() {
    let Some((server, database)) = waiting_primary().await else { return };
    let engine = open(&server.address(&database)).await;
    assert_eq!(engine.server().standbys(), 1);

    let writing = tokio::spawn({
        let engine = engine.clone();
        async move { commit(&*engine, vec![put(key("a"), "1")]).await }
    });
    wait_for_commit(&server, &database).await;
    assert!(!writing.is_finished(), "it is not acknowledged");
    assert_eq!(engine.stats().connections[0].used, 1);
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    server.execute(&database, cancel).await.unwrap();

    let error = writing.await.unwrap().unwrap_err();
    assert!(matches!(error, CommitError::Unknown { .. }), "{error}");
    assert!(error.to_string().contains("standby"), "{error}");
    assert_eq!(engine.stats().unknown, 1);
    // It is on the primary, as `Unknown` allows.
    assert_eq!(engine.get(&key("a")).await.unwrap(), Some("1".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_waits_is_unknown_when_its_connection_ends() {
    let Some((server, database)) = waiting_primary().await else { return };
    let engine = open(&server.address(&database)).await;
    let writing = tokio::spawn({
        let engine = engine.clone();
        async move { commit(&*engine, vec![put(key("a"), "1")]).await }
    });
    wait_for_commit(&server, &database).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    server.execute(&database, end).await.unwrap();

    let error = writing.await.unwrap().unwrap_err();
    assert!(matches!(error, CommitError::Unknown { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_wait_and_those_that_are_too_many_are_counted() {
    /// As many as may wait.
    const WAITING: usize = 4_096;
    let Some((server, database)) = waiting_primary().await else { return };
    let engine = open(&server.address(&database)).await;
    let change = || Box::pin(commit(&*engine, vec![put(key("a"), "1")]));
    let mut first = change();
    assert!(futures::poll!(&mut first).is_pending());
    wait_for_commit(&server, &database).await;

    // In the domain of the first.
    let mut waiting: Vec<_> = (0..WAITING).map(|_| change()).collect();
    for waiting in &mut waiting {
        assert!(futures::poll!(waiting).is_pending());
    }
    let error = change().await.unwrap_err();

    assert!(matches!(error, CommitError::Busy { .. }), "{error}");
    let stats = engine.stats();
    assert_eq!((stats.queue_depth, stats.shed), (WAITING as u64, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_asked_again_what_it_keeps() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    assert_eq!(engine.server_now().await.unwrap(), *engine.server());

    name_standby(&server, &database).await;

    // Each session reads its configuration when it is idle.
    let until = Instant::now() + Duration::from_secs(60);
    while engine.server_now().await.unwrap().standbys() != 1 {
        assert!(Instant::now() < until, "{:?}", engine.server_now().await);
    }
}

#[test]
fn the_standbys_that_a_commit_waits_for_are_counted() {
    let standbys = |names: &str, synchronous_commit: &str| {
        ServerStatus {
            version: "PostgreSQL 15".to_owned(),
            fsync: true,
            synchronous_commit: synchronous_commit.to_owned(),
            synchronous_standbys: names.to_owned(),
            is_primary: true,
        }
        .standbys()
    };
    for (names, count) in [
        ("", 0),
        (" ", 0),
        ("*", 1),
        ("a, b", 1),
        ("FIRST 2 (a, b, c)", 2),
        ("ANY 3(a, b, c)", 3),
        ("2 (*)", 2),
    ] {
        assert_eq!(standbys(names, "on"), count, "{names}");
        assert_eq!(standbys(names, "remote_apply"), count, "{names}");
        assert_eq!((standbys(names, "local"), standbys(names, "off")), (0, 0), "{names}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_says_what_it_keeps() {
    let Some(server) = PostgresServer::start(&["fsync=on"]).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    let status = engine.server();
    assert!(status.is_durable() && status.version.starts_with("PostgreSQL "), "{status:?}");
    assert_eq!((status.synchronous_standbys.as_str(), status.is_primary), ("", true));

    let off = format!("ALTER DATABASE {database} SET synchronous_commit = off");
    server.execute(&database, &off).await.unwrap();
    let engine = open(&server.address(&database)).await;
    assert!(!engine.server().is_durable(), "{:?}", engine.server());
    assert_eq!(engine.status().durability, trestle_kv::Durability::Os);
}
