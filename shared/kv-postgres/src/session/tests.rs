use trestle_kv::conformance::KEYSPACES;

use super::*;
use crate::{schema, testing::PostgresServer};

/// The statements that a connection has.
async fn prepared<S: PreparedStatements>(server: &PostgresServer, database: &str) -> usize {
    let sql: Vec<Sql> = KEYSPACES.iter().map(Sql::of).collect();
    let connection = DatabaseConnection::open(&server.address(database)).await.ok().unwrap();
    schema::prepare(&connection, &sql).await.unwrap();
    // What that prepared is closed with the next requests.
    let session = PreparedSession::<S>::prepare(connection, &sql).await.ok().unwrap();
    let count =
        "SELECT count(*) FROM pg_prepared_statements WHERE statement ~ 'trestle_(first|second)'";
    let found = session.client().simple_query(count).await.unwrap();
    let counted = found.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    counted.unwrap()
}

#[tokio::test]
async fn a_connection_of_reads_has_only_statements_that_read() {
    let Some(server) = PostgresServer::start(&[]).await else { return };
    let database = server.database().await;
    let reads = prepared::<Vec<ReadStatements>>(&server, &database).await;
    let of_groups = prepared::<GroupStatements>(&server, &database).await;
    assert_eq!((reads, of_groups), (3 * KEYSPACES.len(), 6 * KEYSPACES.len()));
}
