//! A service responds the same in process and behind a gateway, and upstream errors report whether a call may have been
//! executed.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tower::ServiceExt as _;
use trestle::{roles::ROLES, running::Listeners, settings::Settings};
use trestle_command::trust::TlsArgs;
use trestle_proto::table::v1::{
    CreateTableRequest, GetTableRequest, ListTablesRequest, Table,
    table_service_client::TableServiceClient,
};
use trestle_rpc::layer::Request;
use trestle_rpc::peer::Peer;
use trestle_rpc::upstream::{Endpoint, Remote, RemoteOptions, Upstream};
use trestle_runtime::config::Sources;

use crate::{
    process::{Serving, output, trestle},
    serving::node,
};

type Client = TableServiceClient<Upstream>;

fn remote(endpoint: &str) -> Client {
    let options = RemoteOptions { connections: 2, ..RemoteOptions::default() };
    let remote = Remote::new(Endpoint::parse(endpoint).unwrap(), options);
    TableServiceClient::new(Upstream::Remote(remote))
}

/// The response as a client sees it: the name of the table, or the error with its details.
async fn outcome(mut client: Client, table: &str) -> Result<String, (Code, String, String)> {
    let request = GetTableRequest { table: table.to_owned() };
    let answer = client.get_table(request).await;
    let table = answer.map(|answer| answer.into_inner().table.unwrap().name);
    table.map_err(|e| {
        let details = e.get_error_details();
        let detail = (details.error_info().unwrap().reason.clone(), details.bad_request());
        (e.code(), e.message().to_owned(), format!("{detail:?}"))
    })
}

#[tokio::test]
async fn local_and_remote_return_the_same_responses_and_the_same_errors() {
    let local = TableServiceClient::new(Upstream::Local(node(&[]).await.routes));
    let table = Serving::start(&["--ephemeral", "--roles", "table"], &[]);
    let endpoint = table.endpoint();
    let variables = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
    let gateway = Serving::start(&["--roles", "gateway"], &variables);
    let clients = [local, remote(&endpoint), remote(&gateway.endpoint())];
    for client in &clients[..2] {
        let request = CreateTableRequest {
            table: Some(Table { name: "Things".to_owned(), ..Table::default() }),
        };
        client.clone().create_table(request).await.unwrap();
    }

    for name in ["Things", "absent", "1", "no/name"] {
        let [local, direct, through] = &clients;
        let expected = outcome(local.clone(), name).await;
        assert_eq!(outcome(direct.clone(), name).await, expected, "direct: {name}");
        assert_eq!(outcome(through.clone(), name).await, expected, "gateway: {name}");
    }
}

/// The statuses of a read and of a write.
async fn statuses_of(endpoint: &str) -> [Status; 2] {
    let read = remote(endpoint).get_table(GetTableRequest::default()).await.unwrap_err();
    let write = remote(endpoint).create_table(CreateTableRequest::default()).await.unwrap_err();
    [read, write]
}

/// Reads a call on each connection and disconnects without a response: its outcome is unknown.
async fn take_and_break(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
            stream.write_all(&settings).await.unwrap();
            let (mut bytes, mut received) = (vec![0; 65536], Vec::new());
            // The message of the call is the only DATA frame.
            while !has_data(&received) {
                let read = stream.read(&mut bytes).await.unwrap_or_default();
                if read == 0 {
                    break;
                }
                received.extend_from_slice(&bytes[..read]);
            }
        });
    }
}

/// Whether the bytes that a client of HTTP/2 sent contain a DATA frame.
fn has_data(bytes: &[u8]) -> bool {
    const PREFACE: usize = 24;
    let mut rest = bytes.get(PREFACE..).unwrap_or_default();
    while let [a, b, c, kind, ..] = *rest {
        if kind == 0 {
            return true;
        }
        let length = u32::from_be_bytes([0, a, b, c]);
        rest = rest.get(9 + length as usize..).unwrap_or_default();
    }
    false
}

#[tokio::test]
async fn an_unreachable_service_is_unavailable_and_an_interrupted_write_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let broken = format!("http://{}", listener.local_addr().unwrap());
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let unreachable = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    tokio::spawn(take_and_break(listener));

    let unreachable = statuses_of(&unreachable).await;
    let [read, write] = statuses_of(&broken).await;

    for status in unreachable {
        assert_eq!(status.code(), Code::Unavailable);
        assert!(status.message().contains("nothing was sent"), "{}", status.message());
        assert!(status.get_details_retry_info().is_some());
    }
    assert_eq!(read.code(), Code::Unavailable);
    assert!(read.message().contains("nothing was changed"), "{}", read.message());
    assert_eq!(write.code(), Code::Unknown);
    assert!(write.message().contains("outcome"), "{}", write.message());
}

#[tokio::test]
async fn a_gateway_is_ready_when_its_upstream_service_is() {
    let table = Serving::start(&["--ephemeral", "--roles", "table"], &[]);
    let endpoint = table.endpoint();
    let variables = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
    let gateway = Serving::start(&["--roles", "gateway"], &variables);
    let serves = async |expected: bool| {
        for _ in 0..100 {
            let (endpoint, tls) = (gateway.endpoint(), TlsArgs::default());
            let checked = trestle::healthcheck::check(&endpoint, &tls, String::new()).await;
            if checked.is_ok() == expected {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        false
    };

    assert!(serves(true).await, "never became ready");
    table.terminate();
    assert_eq!(table.wait().0.code(), Some(0));
    assert!(serves(false).await, "still reports that it is ready");
}

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Whether a role process with these settings accepts a call of a peer on another machine with these headers.
async fn is_accepted(
    settings: &[(&str, &str)],
    header: Option<(&'static str, &'static str)>,
) -> Result<(), Status> {
    let stranger = Peer { address: "10.1.2.3:4".parse().unwrap(), tls: None };
    let settings = [&[("TRESTLE__SERVER__ROLES", "table")], settings].concat();
    let routes = node(&settings).await.routes.map_request(move |mut request: Request| {
        request.extensions_mut().insert(stranger.clone());
        if let Some((name, value)) = header {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request
    });
    let mut client = TableServiceClient::new(Upstream::local(routes));
    client.list_tables(ListTablesRequest::default()).await.map(drop)
}

#[tokio::test]
async fn a_role_without_a_gateway_trusts_peers_on_other_machines_only_with_the_secret() {
    let secret = ("TRESTLE__SERVER__GATEWAY_SECRET", SECRET);
    let trusting = [("TRESTLE__SERVER__TRUST_CALLERS", "true"), secret];
    let header = |value| Some(("trestle-gateway-secret", value));
    let other = "fedcba9876543210fedcba9876543210";

    is_accepted(&trusting, header(SECRET)).await.expect("it has the secret");
    for (settings, sent) in [
        (&[][..], None),
        (&[], header(SECRET)),
        (&[secret], header(SECRET)),
        (&trusting, None),
        (&trusting, header(other)),
    ] {
        let status = is_accepted(settings, sent).await.expect_err("no proof");
        assert_eq!(status.code(), Code::Unauthenticated);
        assert!(status.message().contains("server.gateway_secret"), "{status}");
    }
}

#[tokio::test]
async fn a_gateway_sends_its_secret_to_roles() {
    let secret = [("TRESTLE__SERVER__GATEWAY_SECRET", SECRET)];
    let other = [("TRESTLE__SERVER__GATEWAY_SECRET", "fedcba9876543210fedcba9876543210")];
    let table = Serving::start(&["--ephemeral", "--roles", "table"], &secret);
    let endpoint = table.endpoint();
    let found = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
    let listed = async |more: &[(&str, &str)]| {
        let gateway = Serving::start(&["--roles", "gateway"], &[&found, more].concat());
        let mut client = TableServiceClient::connect(gateway.endpoint()).await.unwrap();
        let listed = client.list_tables(ListTablesRequest::default()).await;
        gateway.terminate();
        listed.map(drop).map_err(|status| status.code())
    };

    assert_eq!(listed(&secret).await, Ok(()));
    assert_eq!(listed(&other).await, Err(Code::Unauthenticated));
    assert_eq!(listed(&[]).await, Err(Code::Unauthenticated));
    let mut direct = TableServiceClient::connect(endpoint).await.unwrap();
    let status = direct.list_tables(ListTablesRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated, "also from this machine");
}

/// A page of any origin may send text without a preflight request.
#[tokio::test]
async fn a_role_without_a_gateway_executes_no_request_of_a_browser() {
    let table = Serving::start(&["--ephemeral", "--roles", "table"], &[]);
    // A table `Things`: the prefix of a gRPC message, and the message.
    let frame = b"\0\0\0\0\x0a\x0a\x08\x0a\x06Things".as_slice();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/grpc-web+proto"] {
        let head = format!(
            "POST /trestle.table.v1.TableService/CreateTable HTTP/1.1\r\nhost: {}\r\n\
             origin: http://evil.example\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n",
            table.grpc,
            frame.len()
        );
        let mut stream = tokio::net::TcpStream::connect(&table.grpc).await.unwrap();
        stream.write_all(&[head.as_bytes(), frame].concat()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();

        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1 415 "), "{kind}: {answer}");
        assert!(answer.contains("this address serves gRPC over HTTP/2 only"), "{kind}: {answer}");
    }

    let tables = remote(&table.endpoint()).list_tables(ListTablesRequest::default()).await;
    assert!(tables.unwrap().into_inner().tables.is_empty());
}

#[tokio::test]
async fn a_gateway_listens_for_the_roles_alone_that_it_serves() {
    let table = Serving::start(&["--ephemeral", "--roles", "table"], &[]);
    let variables = [
        ("TRESTLE__GATEWAY__TABLE_ENDPOINT", table.endpoint()),
        ("TRESTLE__SERVER__ROLES", "gateway".to_owned()),
        ("TRESTLE__SERVER__LISTEN", "127.0.0.1:0".to_owned()),
        ("TRESTLE__SERVER__AZURE_TABLE", "127.0.0.1:0".to_owned()),
        ("TRESTLE__SERVER__AZURE_QUEUE", "127.0.0.1:0".to_owned()),
        ("TRESTLE__SERVER__AZURE_BLOB", "127.0.0.1:0".to_owned()),
        ("TRESTLE__SERVER__ADMIN", "127.0.0.1:0".to_owned()),
    ];
    let environment = variables.map(|(name, value)| (name.to_owned(), value)).into();
    let sources = Sources { environment, ..Sources::default() };
    let settings = Settings::load(ROLES, sources).unwrap();

    let listeners = Listeners::bind(&settings).await.unwrap();

    assert!(listeners.azure("table").is_some());
    for role in ["queue", "blob"] {
        assert_eq!(listeners.azure(role), None);
        assert!(!listeners.ready().unwrap().contains(&format!("azure_{role}")));
    }
    let variables = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", table.endpoint())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let gateway = Serving::start(&["--roles", "gateway"], &variables);
    for (service, part) in [("queue", "QueueService"), ("log", "LogService")] {
        let rejected = output(&mut trestle(&[service, "list", "--endpoint", &gateway.endpoint()]));
        let errors = String::from_utf8(rejected.stderr).unwrap();
        let rule = format!("{part}: gateway.{service}_endpoint is not set; correct the settings");
        assert!(errors.contains(&rule), "{errors}");
    }
}
