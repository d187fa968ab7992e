//! Opening a store: what it refuses, what it uses, and that it outlives its server.

use std::time::Duration;

use trestle_kv::Engine as _;
use trestle_kv::conformance::KEYSPACES;
use trestle_kv::conformance::rows::{commit, key, put};
use trestle_kv_postgres::testing::PostgresServer;
use trestle_kv_postgres::{PostgresAddress, PostgresEngine, PostgresOptions};

async fn open(address: PostgresAddress) -> PostgresEngine {
    PostgresEngine::open(PostgresOptions::new(address, KEYSPACES)).await.unwrap()
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
    let _engine = open(server.address(&database)).await;
    assert_eq!(sessions(&server, &database).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_keeps_its_store_when_the_server_restarts() {
    let Some(mut server) = PostgresServer::start(&[]).await else { return };
    let first = open(server.address(&server.database().await)).await;
    server.crash();
    server.run().await;

    commit(&first, vec![put(key("a"), "1")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_asked_for_its_store_and_not_changed() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let address = server.address(&database);
    for _ in 0..2 {
        assert!(!PostgresEngine::exists(&address).await.unwrap(), "it was not made");
    }
    drop(open(address.clone()).await);
    assert!(PostgresEngine::exists(&address).await.unwrap());

    let used = server.database().await;
    server.execute(&used, "CREATE TABLE customers (name text)").await.unwrap();
    let error = PostgresEngine::exists(&server.address(&used)).await.unwrap_err().to_string();
    assert!(error.contains("relation=`customers`"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_after_a_raised_floor_have_greater_versions() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let address = server.address(&server.database().await);
    let engine = open(address.clone()).await;
    let before = commit(&engine, vec![put(key("a"), "1")]).await.unwrap();
    let floor = engine.now().after(Duration::from_secs(24 * 3600));

    engine.raise_floor(floor).await.unwrap();
    engine.raise_floor(before.ticks()).await.unwrap();

    let after = commit(&engine, vec![put(key("a"), "2")]).await.unwrap();
    assert!(after.ticks() > floor, "in the process that raised it");
    drop(engine);
    let other = open(address).await;
    assert!(other.version_floor() >= after.ticks(), "{:?}", other.version_floor());
    assert!(other.now() >= after.ticks());
    let later = commit(&other, vec![put(key("a"), "3")]).await.unwrap();
    assert!(later > after);
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
    drop(open(server.address(&newer)).await);
    server.execute(&newer, "UPDATE trestle_store SET format = 2").await.unwrap();
    let options = PostgresOptions::new(server.address(&newer), KEYSPACES);
    let error = PostgresEngine::open(options).await.err().unwrap().to_string();
    assert!(error.contains("found=`2`, known=`1`"), "{error}");
}
