//! A server whose table of locks is full: groups are made smaller, and what cannot be locked at all is not written.

use std::sync::Arc;

use tokio::task::JoinSet;
use trestle_kv::conformance::rows::{everything, key};
use trestle_kv::conformance::{covering, domain_of};
use trestle_kv::{Change, CommitError, Domain, Engine, Lock, Version, Writes};
use trestle_kv_postgres::PostgresEngine;
use trestle_kv_postgres::testing::PostgresServer;

use crate::world::open;

/// As few locks as a server can be configured with.
const SMALL: [&str; 2] = ["max_locks_per_transaction=10", "max_connections=40"];
/// Domains of a change.
const DOMAINS: usize = 100;
const CHANGES: usize = 24;

/// A session that has every lock that the table has room for, but `free` of them.
async fn fill(server: &PostgresServer, database: &str, free: i64) -> tokio_postgres::Client {
    let client = server.client(database).await.unwrap();
    let fill = "DO $$ BEGIN \
                FOR number IN 1..1000000 LOOP PERFORM pg_advisory_lock(number); END LOOP; \
                EXCEPTION WHEN out_of_memory THEN NULL; END $$";
    client.batch_execute(fill).await.unwrap();
    let give_back = "SELECT count(*) FROM generate_series(1, $1::bigint) AS numbers (number) \
                     WHERE pg_advisory_unlock(number)";
    let given: i64 = client.query_one(give_back, &[&free]).await.unwrap().get(0);
    assert_eq!(given, free);
    client
}

/// A change that shares many domains with no other one.
async fn share_many(engine: Arc<PostgresEngine>, number: usize) -> Result<Version, CommitError> {
    let row = key(format!("c{number}/row"));
    let mut spec = covering([&row]);
    for other in 1..DOMAINS {
        spec.also(Domain::of_key(&key(format!("c{number}d{other}/")), domain_of), Lock::Shared);
    }
    let change = Change::new(spec, move |_, _| {
        let mut writes = Writes::new();
        writes.put(row.clone(), "1");
        writes
    });
    engine.commit(change).await
}

/// Of all changes at once.
async fn outcomes(engine: &Arc<PostgresEngine>) -> Vec<Result<Version, CommitError>> {
    let mut writing = JoinSet::new();
    for number in 0..CHANGES {
        writing.spawn(share_many(Arc::clone(engine), number));
    }
    writing.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_with_more_locks_than_the_server_has_is_committed_in_parts() {
    let Some(server) = PostgresServer::start(&SMALL).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    // Each worker has its connection.
    for outcome in outcomes(&engine).await {
        outcome.unwrap();
    }
    let _full = fill(&server, &database, 3 * DOMAINS as i64 + 50).await;

    for outcome in outcomes(&engine).await {
        outcome.unwrap();
    }
    assert_eq!(everything(&*engine).await.len(), CHANGES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_cannot_be_locked_is_unavailable_until_there_is_room() {
    let Some(server) = PostgresServer::start(&SMALL).await else { return };
    let database = server.database().await;
    let engine = open(&server.address(&database)).await;
    // Room for connections, and for less than the change.
    let full = fill(&server, &database, DOMAINS as i64 / 2).await;

    let error = share_many(Arc::clone(&engine), 0).await.unwrap_err();
    assert!(matches!(error, CommitError::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("sqlstate=`53200`"), "{error}");
    assert!(everything(&*engine).await.is_empty());

    full.batch_execute("SELECT pg_advisory_unlock_all()").await.unwrap();
    share_many(Arc::clone(&engine), 0).await.unwrap();
    assert_eq!(everything(&*engine).await.len(), 1);
}
