//! Stores in a database, for tests.

use std::sync::Arc;

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
