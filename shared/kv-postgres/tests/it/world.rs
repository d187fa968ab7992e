//! Stores in a database, for tests.

use std::sync::Arc;

use trestle_kv::conformance::KEYSPACES;
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
