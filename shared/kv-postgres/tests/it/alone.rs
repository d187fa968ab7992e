//! One process at a time: another one waits, takes over, and the former one commits nothing any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trestle_kv::conformance::KEYSPACES;
use trestle_kv::conformance::rows::{commit, everything, key, put};
use trestle_kv::{CommitError, Engine};
use trestle_kv_postgres::{PostgresAddress, PostgresEngine, PostgresOptions};

use trestle_kv_postgres::testing::PostgresServer;

use crate::world::stuck;

async fn alone(address: PostgresAddress) -> Arc<PostgresEngine> {
    let options = PostgresOptions { is_alone: true, ..PostgresOptions::new(address, KEYSPACES) };
    Arc::new(PostgresEngine::open(options).await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_waits_for_the_one_before_and_takes_over() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let address = server.address(&server.database().await);
    let first = alone(address.clone()).await;
    commit(&*first, vec![put(key("a"), "1")]).await.unwrap();

    let mut second = tokio::spawn(alone(address));
    let early = tokio::time::timeout(Duration::from_secs(3), &mut second).await;
    assert!(early.is_err(), "the first is alive");
    commit(&*first, vec![put(key("b"), "1")]).await.unwrap();
    drop(first);

    let second = second.await.unwrap();
    commit(&*second, vec![put(key("c"), "1")]).await.unwrap();
    assert_eq!(everything(&*second).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_lost_its_lock_without_knowing_commits_nothing() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let address = server.address(&database);
    let first = alone(address.clone()).await;
    commit(&*first, vec![put(key("a"), "1")]).await.unwrap();

    // As another one would, while this one is paused.
    server.execute(&database, "UPDATE trestle_store SET owner = 1").await.unwrap();
    let refused = commit(&*first, vec![put(key("b"), "1")]).await.unwrap_err();
    assert!(matches!(refused, CommitError::Stopped { .. }), "{refused}");
    assert!(refused.to_string().contains("taken the store over"), "{refused}");
    assert!(first.status().stopped.is_some());
    assert_eq!(everything(&*first).await.len(), 1);
    drop(first);

    let second = alone(address).await;
    commit(&*second, vec![put(key("c"), "1")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_lock_was_taken_stops_by_itself() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let first = alone(server.address(&database)).await;
    let other = server.client(&database).await.unwrap();

    // The connection that holds the lock ends, and somebody else is quicker.
    let take = "SELECT pg_terminate_backend(pid) FROM pg_locks \
                WHERE locktype = 'advisory' AND pid <> pg_backend_pid(); \
                SELECT pg_advisory_lock(hashtextextended('trestle owner', 0)); \
                UPDATE trestle_store SET owner = 1";
    other.batch_execute(take).await.unwrap();

    let until = Instant::now() + Duration::from_secs(60);
    while first.status().stopped.is_none() {
        assert!(Instant::now() < until, "it does not notice");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The sessions of a database so far.
async fn sessions(server: &PostgresServer, database: &str) -> i64 {
    let sql = "SELECT sessions FROM pg_stat_database WHERE datname = $1";
    let client = server.client("postgres").await.unwrap();
    client.query_one(sql, &[&database]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_store_has_the_connection_that_opened_it() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let options = PostgresOptions::new(server.address(&database), KEYSPACES);
    let engine = PostgresEngine::open(options).await.unwrap();
    assert_eq!(sessions(&server, &database).await, 1);
    drop(engine);

    // One that asks for the lock, and one before and after that: a process that waits has one.
    let engine = alone(server.address(&database)).await;
    assert_eq!(sessions(&server, &database).await, 4);
    commit(&*engine, vec![put(key("a"), "1")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_keeps_its_store_when_the_server_restarts() {
    let Some(mut server) = PostgresServer::start(&[]).await else { return };
    let first = alone(server.address(&server.database().await)).await;
    server.crash();
    server.run().await;

    commit(&*first, vec![put(key("a"), "1")]).await.unwrap();
    assert!(first.status().stopped.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_something_else_or_of_another_format_is_refused() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let used = server.database().await;
    server.execute(&used, "CREATE TABLE customers (name text)").await.unwrap();
    let options = PostgresOptions::new(server.address(&used), KEYSPACES);
    let error = PostgresEngine::open(options).await.err().unwrap().to_string();
    assert!(error.contains("relation=`customers`"), "{error}");

    let newer = server.database().await;
    drop(alone(server.address(&newer)).await);
    server.execute(&newer, "UPDATE trestle_store SET format = 2").await.unwrap();
    let options = PostgresOptions::new(server.address(&newer), KEYSPACES);
    let error = PostgresEngine::open(options).await.err().unwrap().to_string();
    assert!(error.contains("found=`2`, known=`1`"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_followed_that_stands_still_while_it_is_sent_rows() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let server = Arc::new(server);
    let address = server.address(&database);
    drop(alone(address.clone()).await);

    // The lock that each transaction of an owner shares.
    let fence = "SELECT pg_advisory_xact_lock_shared(x'74726573746c6531'::bigint)";
    let held = stuck(&server, &database, fence).await;
    let second = tokio::time::timeout(Duration::from_secs(60), alone(address)).await;

    commit(&*second.expect("it takes over"), vec![put(key("a"), "1")]).await.unwrap();
    drop(held);
}
