//! Stores in a database, for tests.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use trestle_kv::conformance::KEYSPACES;
use trestle_kv_postgres::testing::PostgresServer;
use trestle_kv_postgres::{PostgresAddress, PostgresEngine, PostgresOptions};
use trestle_model::time::Clock;

/// Opens a store with a clock of its own.
pub(crate) async fn open_with(
    address: &PostgresAddress,
    clock: Option<Arc<dyn Clock>>,
) -> Arc<PostgresEngine> {
    let options = PostgresOptions { clock, ..PostgresOptions::new(address.clone(), KEYSPACES) };
    Arc::new(PostgresEngine::open(options).await.unwrap())
}

/// Opens a store with the clock of the server.
pub(crate) async fn open(address: &PostgresAddress) -> Arc<PostgresEngine> {
    open_with(address, None).await
}

/// How many rows the relations of keyspaces have.
pub(crate) async fn rows_of(server: &PostgresServer, database: &str) -> i64 {
    let sql = "SELECT (SELECT count(*) FROM trestle_first) + (SELECT count(*) FROM trestle_second)";
    server.client(database).await.unwrap().query_one(sql, &[]).await.unwrap().get(0)
}

/// Each pointer has rows below it, and each row below one has its pointer.
pub(crate) async fn assert_pointers_are_exact(server: &PostgresServer, database: &str) {
    let sql = "\
        WITH pointers AS (\
        SELECT '\\x00'::bytea || sha256(substring(k FROM 1 FOR 2400)) AS layer FROM trestle_first \
        WHERE octet_length(k) = 2401), \
        layers AS (\
        SELECT DISTINCT substring(k FROM 1 FOR 33) AS layer FROM trestle_first WHERE get_byte(k, 0) = 0) \
        SELECT (SELECT count(*) FROM pointers WHERE layer NOT IN (SELECT layer FROM layers)), \
        (SELECT count(*) FROM layers WHERE layer NOT IN (SELECT layer FROM pointers))";
    let row = server.client(database).await.unwrap().query_one(sql, &[]).await.unwrap();
    let (empty, unreachable): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!((empty, unreachable), (0, 0), "pointers to nothing, and layers without a pointer");
}

/// A transaction that began with these statements, and whose process reads nothing any more while the server sends it
/// rows. Its connection is open as long as what is returned.
pub(crate) async fn stuck(
    server: &Arc<PostgresServer>,
    database: &str,
    statements: &str,
) -> mpsc::Sender<()> {
    let (server, database, begun) =
        (Arc::clone(server), database.to_owned(), format!("BEGIN; {statements}"));
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (held, is_over) = mpsc::channel();
    // On a runtime that is driven no further.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let client = server.client(&database).await.unwrap();
            client.batch_execute(&begun).await.unwrap();
            let rows = "SELECT repeat('x', 1000) FROM generate_series(1, 10000000)";
            let sent =
                tokio::time::timeout(Duration::from_millis(20), client.query(rows, &[])).await;
            assert!(sent.is_err(), "there are more rows than are read in that time");
            client
        });
        // The server ends with the test, which this thread may outlive.
        drop(server);
        ready.send(()).unwrap();
        let _ = is_over.recv();
        drop((client, runtime));
    });
    is_ready.await.unwrap();
    held
}
