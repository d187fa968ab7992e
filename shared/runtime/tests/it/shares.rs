//! Shares of peers: one that uses up connections or handshakes does not block another. Each address of the loopback
//! network is a peer.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName},
};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tower::service_fn;
use trestle_rpc::layer::{CallService, Request, Response};
use trestle_runtime::{
    serve::{Connections, serve},
    tls::{Certificates, ClientCertificates, Tls, TlsFiles},
};

use crate::listening::{BOUNDS, listen};

const GREEDY: &str = "127.0.0.2";
const OTHER: &str = "127.0.0.3";
/// More than any wait here should take, and less than the time that opening a connection may take.
const SOON: Duration = Duration::from_secs(120);
/// Connections are evicted for newer ones of their peer from this age on.
const OWN_AGE: Duration = Duration::from_millis(1100);

/// A server whose calls to `/wait` do not end.
async fn server(connections_max: usize, tls: Option<Tls>) -> (SocketAddr, Connections) {
    let service = CallService::new(service_fn(|request: Request| async move {
        if request.uri().path() == "/wait" {
            std::future::pending::<()>().await;
        }
        Ok::<Response, Infallible>(Status::ok("").into_http())
    }));
    let (mut listener, address) = listen(connections_max, BOUNDS).await;
    listener.tls = tls;
    let connections = listener.connections.clone();
    tokio::spawn(serve(listener, service, CancellationToken::new()));
    (address, connections)
}

async fn connect(from: &str, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    socket.connect(to).await.unwrap()
}

/// Opens this many connections, and sends the same bytes on each.
async fn open(count: usize, from: &str, to: SocketAddr, bytes: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = connect(from, to).await;
        stream.write_all(bytes).await.unwrap();
        streams.push(stream);
    }
    streams
}

async fn until_open(connections: &Connections, count: usize) {
    let opened = async {
        while connections.open() < count {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, opened).await.expect("the connections are accepted");
}

/// The beginning of the response to a request on a connection of its own; none if it was closed.
async fn answer(from: &str, to: SocketAddr) -> Option<String> {
    let mut stream = connect(from, to).await;
    stream.write_all(GET).await.ok()?;
    let mut status = [0; 15];
    let read = timeout(SOON, stream.read_exact(&mut status)).await.ok()?;
    read.ok().map(|_| String::from_utf8_lossy(&status).into_owned())
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const WAIT: &[u8] = b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK";

/// Whether the server has closed it.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match timeout(Duration::from_millis(50), stream.read(&mut bytes)).await {
            Err(_) => return false,
            Ok(Ok(0) | Err(_)) => return true,
            Ok(Ok(_)) => {}
        }
    }
}

#[tokio::test]
async fn evicts_a_connection_of_a_peer_that_has_all_of_them() {
    const CONNECTIONS: usize = 12;
    // Unopened, idle after a response, in the middle of a head, and with a call in flight.
    for (bytes, closes_oldest) in [(&b""[..], true), (GET, true), (&GET[..20], true), (WAIT, false)]
    {
        let (address, connections) = server(CONNECTIONS, None).await;
        let mut greedy = open(CONNECTIONS, GREEDY, address, bytes).await;
        until_open(&connections, CONNECTIONS).await;
        // Its first bytes are read.
        sleep(Duration::from_millis(100)).await;

        assert_eq!(answer(OTHER, address).await.as_deref(), Some(OK), "{bytes:?}");

        sleep(Duration::from_millis(500)).await;
        let mut closed = Vec::new();
        for stream in &mut greedy {
            closed.push(is_closed(stream).await);
        }
        let expected = if closes_oldest { 0 } else { CONNECTIONS - 1 };
        let only: Vec<_> = (0..CONNECTIONS).map(|index| index == expected).collect();
        assert_eq!(closed, only, "{bytes:?}");
    }
}

#[tokio::test]
async fn a_peer_below_its_share_is_never_closed_for_another() {
    let (address, connections) = server(8, None).await;
    let mut first = open(3, OTHER, address, b"").await;
    let _greedy = open(20, GREEDY, address, b"").await;
    until_open(&connections, 8).await;
    sleep(OWN_AGE).await;
    let _more = open(20, GREEDY, address, b"").await;
    sleep(Duration::from_millis(200)).await;

    for stream in &mut first {
        assert!(!is_closed(stream).await);
    }
    assert_eq!(answer("127.0.0.4", address).await.as_deref(), Some(OK));
}

#[tokio::test]
async fn a_new_connection_of_the_only_peer_replaces_an_old_idle_one() {
    let (address, connections) = server(4, None).await;
    let _idle = open(2, GREEDY, address, GET).await;
    let mut busy = open(2, GREEDY, address, WAIT).await;
    until_open(&connections, 4).await;
    assert_eq!(answer(GREEDY, address).await, None, "all are young");

    sleep(OWN_AGE).await;

    assert_eq!(answer(GREEDY, address).await.as_deref(), Some(OK));
    for stream in &mut busy {
        assert!(!is_closed(stream).await);
    }
}

/// A server with TLS, and a client that trusts its certificate.
async fn encrypted(connections_max: usize) -> (SocketAddr, Connections, TlsConnector) {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsFiles {
        certificate: folder.path().join("certificate.pem"),
        key: folder.path().join("key.pem"),
        clients: ClientCertificates::Off,
        gateways: Vec::new(),
    };
    std::fs::write(&files.certificate, cert.pem()).unwrap();
    std::fs::write(&files.key, signing_key.serialize_pem()).unwrap();
    let tls = Tls::new(&Certificates::read(&files).unwrap());
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (address, connections) = server(connections_max, Some(tls)).await;
    (address, connections, TlsConnector::from(Arc::new(client)))
}

#[tokio::test]
async fn half_open_handshakes_block_neither_other_peers_nor_for_long_their_own() {
    // An eighth of the connections, 32, may be in a handshake.
    let (address, connections, client) = encrypted(256).await;
    let handshake = async |from: &str| {
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connect(from, address).await;
        let encrypted = timeout(SOON, client.connect(name, stream)).await;
        encrypted.is_ok_and(|handshake| handshake.is_ok())
    };
    let _half_open = open(100, GREEDY, address, b"\x16").await;
    until_open(&connections, 100).await;

    assert!(handshake(OTHER).await, "another peer");
    sleep(OWN_AGE).await;
    assert!(handshake(GREEDY).await, "the same peer");
}
