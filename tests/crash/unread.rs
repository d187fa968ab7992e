//! Clients that never receive their responses, over connections that they keep: other clients are served.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::Request;
use prost::Message as _;
use tokio::{net::TcpStream, time::timeout};
use trestle_proto::{
    blob::v1::{
        Container, CreateContainerRequest, GetContainerRequest, PublicAccess, ReadBlobRequest,
        blob_service_client::BlobServiceClient,
    },
    table::v1::{ListTablesRequest, table_service_client::TableServiceClient},
};
use trestle_tests::{HANG, Server, framed};

/// Base64 of 64 bytes.
const KEY: &str =
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==";
/// Connections of the client, as many as the calls need.
const CONNECTIONS: usize = 5;
/// Calls on each: as many as a connection may have.
const CALLS: usize = 256;
/// Transfers that are not received: their account may have more, and a connection to a role once held four.
const TRANSFERS: usize = 100;
const LARGE_BYTES: usize = 4 * 1024 * 1024;
/// No call is reset for its client while the test lasts.
const UNLIMITED_READER: (&str, &str) = ("TRESTLE__LIMITS__READER_WITHIN_SECONDS", "3600");

/// A connection whose calls may receive no byte of their responses.
async fn connected(server: &Server) -> SendRequest<Bytes> {
    let socket = TcpStream::connect(server.address("grpc")).await.unwrap();
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(0).initial_max_send_streams(CALLS);
    let (client, connection) = builder.handshake(socket).await.unwrap();
    tokio::spawn(async move { connection.await.ok() });
    client
}

async fn call(
    client: &SendRequest<Bytes>,
    path: &str,
    headers: &[(&str, &str)],
    message: &[u8],
) -> ResponseFuture {
    let mut request = Request::post(format!("http://127.0.0.1{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut client = timeout(HANG, client.clone().ready()).await.expect("a slot").unwrap();
    let (answer, mut body) = client.send_request(request.body(()).unwrap(), false).unwrap();
    body.send_data(framed(message).into(), true).unwrap();
    answer
}

/// Calls a method until each call has a response that is not received. Returns what keeps them open, and how many were
/// rejected.
async fn unread(
    server: &Server,
    path: &str,
    headers: &[(&str, &str)],
    message: &[u8],
) -> (Vec<h2::RecvStream>, usize) {
    let (mut held, mut rejected) = (Vec::new(), 0);
    for _ in 0..CONNECTIONS {
        let client = connected(server).await;
        let mut answers = Vec::new();
        for _ in 0..CALLS {
            answers.push(call(&client, path, headers, message).await);
        }
        for answer in answers {
            let answer = timeout(HANG, answer).await.expect("a response").unwrap();
            rejected += usize::from(answer.headers().contains_key("grpc-status"));
            held.push(answer.into_body());
        }
        // The connection remains as long as its streams.
        drop(client);
    }
    (held, rejected)
}

/// Another client calls as often as there are slots, one call after the other.
async fn is_served(server: &Server) {
    let mut client = TableServiceClient::new(server.channel());
    for _ in 0..20 {
        let listed = client.list_tables(ListTablesRequest::default());
        timeout(HANG, listed).await.expect("a response").expect("the client is served");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_that_are_never_received_leave_slots_to_the_same_account() {
    let server = Server::start(&["--ephemeral"], &[UNLIMITED_READER]);
    let path = "/trestle.table.v1.TableService/ListTables";
    let message = ListTablesRequest::default().encode_to_vec();

    let (held, rejected) = unread(&server, path, &[], &message).await;

    assert_eq!((held.len(), rejected), (CONNECTIONS * CALLS, 0));
    is_served(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_of_a_public_container_that_are_never_received_leave_slots_to_others() {
    let account = [
        UNLIMITED_READER,
        ("TRESTLE__ACCOUNTS__OPEN__KEY1", KEY),
        ("TRESTLE__ACCOUNTS__OPEN__ALLOW_BLOB_PUBLIC_ACCESS", "true"),
        // The account of the client that is served beside them.
        ("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "loopback"),
    ];
    let server = Server::start(&["--ephemeral"], &account);
    let container = Container {
        name: "public".to_owned(),
        public_access: PublicAccess::Container.into(),
        ..Container::default()
    };
    let mut create = tonic::Request::new(CreateContainerRequest { container: Some(container) });
    let owner = format!("Basic {}", STANDARD.encode(format!("open:{KEY}")));
    create.metadata_mut().insert("authorization", owner.parse().unwrap());
    BlobServiceClient::new(server.channel()).create_container(create).await.unwrap();
    let path = "/trestle.blob.v1.BlobService/GetContainer";
    let headers = [("trestle-account", "open")];
    let message = GetContainerRequest { container: "public".to_owned(), ..Default::default() };

    let (held, rejected) = unread(&server, path, &headers, &message.encode_to_vec()).await;

    assert_eq!((held.len(), rejected), (CONNECTIONS * CALLS, 0));
    is_served(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_are_never_received_do_not_delay_others_behind_a_gateway() {
    let role = Server::start(&["--ephemeral", "--roles", "blob"], &[UNLIMITED_READER]);
    let endpoint = ("TRESTLE__GATEWAY__BLOB_ENDPOINT", &*role.endpoint());
    let roles = ["--ephemeral", "--roles", "gateway,table,queue"];
    let gateway = Server::start(&roles, &[UNLIMITED_READER, endpoint]);
    let container = trestle_tests::Container::over(&gateway.channel(), "crash");
    container.create().await.unwrap();
    container.write("small", vec![1; 100]).await.unwrap();
    container.write("large", vec![1; LARGE_BYTES]).await.unwrap();

    let path = "/trestle.blob.v1.BlobService/ReadBlob";
    let (container_name, blob) = ("crash".to_owned(), "large".to_owned());
    let read = ReadBlobRequest { container: container_name, blob, ..Default::default() };
    let client = connected(&gateway).await;
    let mut held = Vec::new();
    for _ in 0..TRANSFERS {
        let answer = call(&client, path, &[], &read.encode_to_vec()).await;
        let answer = timeout(HANG, answer).await.expect("a response").unwrap();
        assert!(!answer.headers().contains_key("grpc-status"), "{answer:?}");
        held.push(answer.into_body());
    }

    for _ in 0..20 {
        let read = timeout(HANG, container.read("small")).await.expect("others are served");
        assert_eq!(read.unwrap().data.len(), 100);
    }
}
