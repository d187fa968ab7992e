//! File descriptors: those of connections never take those that the store needs.

use std::{net::SocketAddr, path::Path, time::Duration};

use tokio::net::{TcpSocket, TcpStream};
use trestle_proto::table::v1::{
    CreateTableRequest, Entity, Property, Table, UpsertEntityRequest, Value, WriteMode,
    table_service_client::TableServiceClient, value::Kind,
};

use crate::process::{SERVE, Serving, limited, output};

/// Another peer than the clients of these tests, which are at 127.0.0.1.
const FLOOD: &str = "127.0.0.2:0";
/// Characters of a property, and how many a row has: each about half of what is allowed.
const PROPERTY_CHARS: usize = 30_000;
const PROPERTIES: usize = 15;
/// Rows that fill more than two memtables.
const ROWS: usize = 240;

async fn connections(count: usize, address: &str) -> Vec<TcpStream> {
    let address: SocketAddr = address.parse().unwrap();
    let mut streams = Vec::new();
    for _ in 0..count {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(FLOOD.parse().unwrap()).unwrap();
        streams.push(socket.connect(address).await.unwrap());
    }
    // The last ones may be in the backlog.
    tokio::time::sleep(Duration::from_millis(500)).await;
    streams
}

#[tokio::test]
async fn a_connection_costs_one_descriptor() {
    let server = Serving::start(&["--ephemeral"], &[]);
    let before = server.descriptors();

    let open = connections(50, &server.grpc).await;

    assert_eq!(server.descriptors() - before, open.len());
}

/// The files of data that the store has written.
fn data_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let own = if folder.ends_with("tables") { files.len() } else { 0 };
    own + folders.iter().map(|folder| data_files(folder)).sum::<usize>()
}

#[tokio::test]
async fn the_store_flushes_while_connections_use_up_their_descriptors() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().to_str().unwrap();
    let command = limited(600, &[&SERVE[..], &["--data-dir", path]].concat());
    let server = Serving::launch(command, &[]);

    let flood = connections(1_000, &server.grpc).await;
    let used = server.descriptors();
    let endpoint = tonic::transport::Endpoint::new(server.endpoint()).unwrap();
    let mut client = TableServiceClient::new(endpoint.connect().await.unwrap());
    let table = Some(Table { name: "Things".to_owned(), ..Table::default() });
    client.create_table(CreateTableRequest { table }).await.unwrap();
    for row in 0..ROWS {
        let text = Value { kind: Some(Kind::StringValue("x".repeat(PROPERTY_CHARS))) };
        let names = 0..PROPERTIES;
        let entity = Entity {
            partition_key: "p".to_owned(),
            row_key: format!("{row:04}"),
            properties: names
                .map(|name| Property { name: format!("P{name}"), value: Some(text.clone()) })
                .collect(),
            ..Entity::default()
        };
        let request = UpsertEntityRequest {
            table: "Things".to_owned(),
            entity: Some(entity),
            mode: WriteMode::Replace.into(),
        };
        let written = client.upsert_entity(request).await;
        assert!(written.is_ok(), "row {row}: {written:?}");
    }

    assert!(data_files(data.path()) > 0, "nothing was flushed");
    assert!(used < 450, "the reserve of the store was used: {used}");
    drop((client, flood));
    server.terminate();
    let (status, log) = tokio::task::spawn_blocking(|| server.wait()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{log}");
    let lines: Vec<_> = log.lines().filter(|line| line.contains("few file descriptors")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("limit=600") && lines[0].contains("recommended=5444"), "{lines:?}");
    // Nothing in the settings changed.
    assert!(!log.contains("next start"), "{log}");
}

#[test]
fn a_limit_too_low_for_the_store_is_rejected_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().to_str().unwrap();

    let rejected = output(&mut limited(300, &[&SERVE[..], &["--data-dir", path]].concat()));

    let error = String::from_utf8_lossy(&rejected.stderr);
    assert_eq!(rejected.status.code(), Some(1), "{error}");
    assert!(error.contains("too few file descriptors: limit=`300`, needed=`528`"), "{error}");
}
