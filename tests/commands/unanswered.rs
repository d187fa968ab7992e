//! A server that answers the health call, and then no other one, or none of a service.

use std::{
    convert::Infallible,
    future::{Pending, pending},
    net::SocketAddr,
    task::{Context, Poll},
};

use tonic::{
    body::Body,
    server::NamedService,
    transport::{Server as GrpcServer, server::TcpIncoming},
};
use tower::Service;
use trestle_tests::Server;

use crate::client::{Ended, bare, run, succeeds};

/// A table service that never answers.
#[derive(Clone)]
struct SilentTables;

impl NamedService for SilentTables {
    const NAME: &'static str = "trestle.table.v1.TableService";
}

impl Service<http::Request<Body>> for SilentTables {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pending<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<Body>) -> Self::Future {
        pending()
    }
}

async fn silent() -> SocketAddr {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let (_, health) = tonic_health::server::health_reporter();
    let server = GrpcServer::builder().add_service(health).add_service(SilentTables);
    tokio::spawn(server.serve_with_incoming(incoming));
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_an_answer_names_the_address_and_only_writes_are_in_doubt() {
    let address = silent().await;
    let ended = |args: &[&str]| {
        let endpoint = address.to_string();
        Ended::of(bare(&[args, &["--endpoint", &endpoint, "--timeout", "300ms"]].concat()))
    };

    let read = ended(&["table", "list"]);
    let written = ended(&["table", "create", "rows"]);

    let whole = |hint: &str| {
        format!(
            "error: no answer in time: --timeout limits the wait for a call\n  code: DEADLINE_EXCEEDED\n  \
             hint: {hint}\n  endpoint: http://{address}\n"
        )
    };
    let cause = "the server may be overloaded or suspended";
    assert_eq!((read.code, read.errors), (Some(5), whole(&format!("repeat as it is; {cause}"))));
    let doubt = "whether a write took place is unknown, read back first";
    assert_eq!((written.code, written.errors), (Some(5), whole(&format!("{doubt}; {cause}"))));
}

/// A gRPC server without any service of Trestle.
async fn other_server() -> SocketAddr {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let (_, health) = tonic_health::server::health_reporter();
    tokio::spawn(GrpcServer::builder().add_service(health).serve_with_incoming(incoming));
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_grpc_server_is_a_wrong_address_for_every_command() {
    let address = other_server().await;
    for (args, service) in [
        (&["table", "list"][..], "trestle.table.v1.TableService"),
        (&["status"], "trestle.table.v1.TableService"),
        (&["queue", "create", "jobs"], "trestle.queue.v1.QueueService"),
        (&["blob", "ls", "blob://photos"], "trestle.blob.v1.BlobService"),
        (&["log", "list"], "trestle.log.v1.LogService"),
    ] {
        let ended = Ended::of(bare(&[args, &["--endpoint", &address.to_string()]].concat()));

        let text = format!(
            "error: the server at http://{address} does not serve {service}: another gRPC server answers there; \
             give the address of Trestle with --endpoint\n"
        );
        assert_eq!((ended.code, ended.errors), (Some(6), text), "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_address_is_not_answered_with_a_hint_to_repeat_the_command() {
    let address = other_server().await.to_string();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file.jsonl");
    std::fs::write(&file, "{}\n").unwrap();
    let file = file.to_str().unwrap();

    for command in [
        &["queue", "drain", "jobs", "--to", file][..],
        &["queue", "load", "jobs", file, "--text"],
        &["blob", "cp", file, "blob://photos/a"],
        &["blob", "cp", "blob://photos/a", file],
        &["table", "export", "rows", file],
        &["log", "export", "app", file],
    ] {
        let ended = Ended::of(bare(&[command, &["--endpoint", &address]].concat()));

        assert_eq!(ended.code, Some(6), "{ended:?}");
        assert!(!ended.errors.contains("hint:"), "{ended:?}");
    }
}

/// A gRPC server of one service, which has no method, and no health.
async fn server_without_health() -> SocketAddr {
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    tokio::spawn(GrpcServer::builder().add_service(SilentTables).serve_with_incoming(incoming));
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_of_another_grpc_server_is_a_wrong_address_in_the_words_of_other_commands() {
    let (with_health, without) = (other_server().await, server_without_health().await);
    let tables = "trestle.table.v1.TableService";
    for (address, service, named) in [
        (without, "", "grpc.health.v1.Health"),
        (without, tables, "grpc.health.v1.Health"),
        (with_health, tables, tables),
    ] {
        let endpoint = format!("http://{address}");
        let args = ["healthcheck", "--endpoint", &endpoint, "--service", service];
        let checked = Ended::of(bare(&args));
        let mut doctor = bare(&["doctor", "--json"]);
        doctor.env("TRESTLE__SERVER__ROLES", "gateway");
        doctor.env("TRESTLE__GATEWAY__TABLE_ENDPOINT", &endpoint);
        let examined = Ended::of(doctor);

        let text = |service: &str| {
            format!(
                "the server at {endpoint} does not serve {service}: another gRPC server answers there; give the \
                 address of Trestle with --endpoint"
            )
        };
        let whole = format!("error: {}\n", text(named));
        assert_eq!((checked.code, checked.errors), (Some(1), whole), "{service}");
        let of_role = if address == without { named } else { tables };
        let found = format!("gateway.table_endpoint: {}\"", text(of_role));
        assert!(examined.output.contains(&found), "{examined:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_names_the_setting_of_an_endpoint_where_another_server_answers() {
    let (table, other) = (Server::start(&["--ephemeral"], &[]), server_without_health().await);
    let tables = table.endpoint();
    for queues in [
        format!("http://{other}"),
        Server::start(&["--ephemeral", "--roles", "table"], &[]).endpoint(),
    ] {
        let settings = [
            ("TRESTLE__GATEWAY__TABLE_ENDPOINT", &*tables),
            ("TRESTLE__GATEWAY__QUEUE_ENDPOINT", &*queues),
        ];
        let gateway = Server::start(&["--roles", "gateway"], &settings);

        let ended = run(&gateway, &["queue", "list"]);

        let text = format!(
            "error: the server at {} does not serve trestle.queue.v1.QueueService: the server at \
             gateway.queue_endpoint does not serve it; correct the settings of this gateway, or call another one \
             with --endpoint\n",
            gateway.endpoint()
        );
        assert_eq!((ended.code, ended.errors), (Some(6), text), "{queues}");
    }
}

#[test]
fn a_process_without_the_role_is_a_wrong_address_with_a_hint() {
    let blobs = ["blob", "container", "list"];
    for (role, own, other, service) in [
        ("queue", &["queue", "list"][..], &["table", "list"][..], "table.v1.TableService"),
        ("blob", &blobs, &["log", "list"], "log.v1.LogService"),
        ("log", &["log", "list"], &blobs, "blob.v1.BlobService"),
    ] {
        let server = Server::start(&["--ephemeral", "--roles", role], &[]);

        succeeds(&server, own);
        let listed = run(&server, other);
        let status = succeeds(&server, &["status", "-o", "json"]).output;

        assert_eq!(listed.code, Some(6), "{role}: {listed:?}");
        let text =
            format!("does not serve trestle.{service}: it is a Trestle process without the role");
        assert!(listed.errors.contains(&text), "{role}: {listed:?}");
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["services"], serde_json::json!([role]), "{status}");
    }
}

#[test]
fn an_address_without_a_port_is_named_with_the_port_that_was_called() {
    // An address on which nothing listens, also where a server has the default port.
    for (endpoint, called) in [
        ("http://127.93.0.1", "http://127.93.0.1:80"),
        ("https://127.93.0.1", "https://127.93.0.1:443"),
        ("127.93.0.1", "http://127.93.0.1:50051"),
    ] {
        let listed = Ended::of(bare(&["table", "list", "--endpoint", endpoint]));
        let checked = Ended::of(bare(&["healthcheck", "--endpoint", endpoint]));

        for ended in [listed, checked] {
            assert!(ended.errors.contains(&format!("cannot connect to {called}\n")), "{ended:?}");
        }
    }
}
