//! TLS listeners: which peers a client and a server trust, certificates that change while a server
//! runs, and which connections are rejected.

use std::{
    fs,
    net::{TcpStream, ToSocketAddrs as _},
    process::{Command, Output},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustix::process::{Pid, Signal, kill_process};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore, crypto,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use trestle_proto::table::v1::{
    self as proto, CreateTableRequest, ListTablesRequest, table_service_client::TableServiceClient,
};
use trestle_tests::{CertificateAuthority, HANG, Issued, Server, Table, entity, server_binary};

/// The address that servers of tests listen on, as a certificate names it.
const LOOPBACK: &str = "127.0.0.1";
/// A key of an account.
const KEY: &str = "c2VjcmV0LW9uZS1zZWNyZXQtb25lLXNlY3JldC1vbmU=";

/// A server with a certificate, and more settings.
fn server(issued: &Issued, more: &[(&str, &str)]) -> Server {
    Server::start(&["--ephemeral"], &[&issued.settings()[..], more].concat())
}

fn https(server: &Server) -> String {
    format!("https://{}", server.address("grpc"))
}

fn trusting(authority: &CertificateAuthority) -> ClientTlsConfig {
    let pem = fs::read(authority.file()).unwrap();
    ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
}

fn identity(issued: &Issued) -> Identity {
    Identity::from_pem(fs::read(&issued.certificate).unwrap(), fs::read(&issued.key).unwrap())
}

/// An established connection. A server rejects a client certificate only later.
async fn connected(server: &Server, tls: ClientTlsConfig) -> Option<Channel> {
    let endpoint = Endpoint::from_shared(https(server)).unwrap().tls_config(tls).unwrap();
    endpoint.connect().await.ok()
}

/// Whether a call over a connection gets a response.
async fn answers(channel: &Channel) -> bool {
    let mut client = TableServiceClient::new(channel.clone());
    client.list_tables(ListTablesRequest::default()).await.is_ok()
}

/// Whether a client gets a response.
async fn is_served(server: &Server, tls: ClientTlsConfig) -> bool {
    match connected(server, tls).await {
        Some(channel) => answers(&channel).await,
        None => false,
    }
}

/// Whether the server presents the certificate of `name` in time.
async fn becomes(server: &Server, authority: &CertificateAuthority, name: &str) -> bool {
    let until = Instant::now() + HANG;
    while Instant::now() < until {
        if is_served(server, trusting(authority).domain_name(name)).await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}

fn trestle(arguments: &[&str]) -> Output {
    Command::new(server_binary()).args(arguments).output().unwrap()
}

fn is_done(output: &Output) -> bool {
    output.status.success()
}

#[tokio::test]
async fn tls_requires_a_trusted_ca() {
    let (ours, another) = (CertificateAuthority::new("ours"), CertificateAuthority::new("another"));
    let server = server(&ours.issue(LOOPBACK), &[]);

    let channel = connected(&server, trusting(&ours)).await.unwrap();
    let table = Table::over(&channel, "Things");
    let things = proto::Table { name: "Things".to_owned(), ..Default::default() };
    table.client().create_table(CreateTableRequest { table: Some(things) }).await.unwrap();
    table.insert(entity("p", "r", [])).await.unwrap();

    assert_eq!(table.get("p", "r").await.unwrap().partition_key, "p");
    assert!(!is_served(&server, trusting(&another)).await);
    assert!(!is_served(&server, trusting(&ours).domain_name("other.test")).await);
    let plain = Endpoint::from_shared(server.endpoint()).unwrap().connect_lazy();
    assert!(!answers(&plain).await);
}

/// The status of one HTTP/1.1 request over TLS, by a client that trusts an authority.
async fn status_over_tls(
    address: &str,
    target: &str,
    authority: &CertificateAuthority,
) -> Option<u16> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.file()).unwrap()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(LOOPBACK).unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    let (mut to, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get(target).header("host", address);
    let request = request.header("x-ms-version", "2019-02-02").body(Empty::<Bytes>::new());
    let answer = to.send_request(request.unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    answer.into_body().collect().await.unwrap();
    Some(status)
}

#[tokio::test]
async fn every_listener_rejects_plain_text_and_untrusting_clients() {
    use std::io::{Read as _, Write as _};
    let (ours, another) = (CertificateAuthority::new("ours"), CertificateAuthority::new("another"));
    let server = server(&ours.issue(LOOPBACK), &[("TRESTLE__TLS__ADMIN", "true")]);

    for (listener, target, status) in [
        // Without credentials the edge itself rejects the request.
        ("azure_table", "/devstoreaccount1/Tables", 401),
        ("azure_queue", "/devstoreaccount1?comp=list", 401),
        ("admin", "/livez", 200),
    ] {
        let address = server.address(listener);
        assert_eq!(status_over_tls(&address, target, &ours).await, Some(status), "{listener}");
        assert_eq!(status_over_tls(&address, target, &another).await, None, "{listener}");

        let mut plain = TcpStream::connect(&address).unwrap();
        plain.set_read_timeout(Some(HANG)).unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        plain.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A reset also closes the connection.
        let _ = plain.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP"), "{listener} answered in plain text");
    }
}

#[test]
fn non_loopback_listener_requires_tls_or_explicit_plain_text() {
    let ours = CertificateAuthority::new("ours");
    let issued = ours.issue(LOOPBACK);
    let account = ("TRESTLE__ACCOUNTS__ACME__KEY1", KEY);
    for listener in ["--listen", "--azure-table", "--azure-queue", "--azure-blob", "--admin"] {
        let print = |more: &[&str], settings: &[(&str, &str)]| {
            let mut command = Command::new(server_binary());
            command.args(["config", "print", listener, "0.0.0.0:0"]).args(more);
            command.envs([account]).envs(settings.iter().copied()).output().unwrap()
        };
        let key = format!("server.{}", listener.trim_start_matches("--").replace('-', "_"));

        let plain = print(&[], &[]);
        let allowed = print(&["--allow-plaintext"], &[]);
        let admin = ("TRESTLE__TLS__ADMIN", "true");
        let encrypted = print(&[], &[&issued.settings()[..], &[admin]].concat());

        let errors = String::from_utf8_lossy(&plain.stderr);
        assert_eq!(plain.status.code(), Some(2), "{listener}: {plain:?}");
        assert!(
            errors.contains(&key) && errors.contains("--allow-plaintext"),
            "{listener}: {errors}"
        );
        assert!(is_done(&allowed) && is_done(&encrypted), "{listener}: {allowed:?} {encrypted:?}");
    }
}

#[test]
fn upstream_scheme_selects_tls() {
    let (plain, encrypted) = ("http://127.0.0.1:1", "https://127.0.0.1:1");
    let print = |table: &str, queue: &str, ca_file: Option<&str>| {
        let mut command = Command::new(server_binary());
        command.args(["config", "print", "--roles", "gateway"]);
        command.env("TRESTLE__GATEWAY__TABLE_ENDPOINT", table);
        command.env("TRESTLE__GATEWAY__QUEUE_ENDPOINT", queue);
        command.envs(ca_file.map(|file| ("TRESTLE__GATEWAY__TLS__CA_FILE", file)));
        command.output().unwrap()
    };
    let file = Some("/etc/ca.pem");

    for (table, queue) in [(plain, encrypted), (encrypted, plain), (encrypted, encrypted)] {
        let (with, without) = (print(table, queue, file), print(table, queue, None));
        assert!(is_done(&with), "{table} {queue}: {with:?}");
        assert_eq!(without.status.code(), Some(2), "{table} {queue}: {without:?}");
        assert!(String::from_utf8_lossy(&without.stderr).contains("gateway.tls.ca_file: required"));
    }
    let useless = print(plain, plain, file);
    assert_eq!(useless.status.code(), Some(2), "{useless:?}");
    assert!(String::from_utf8_lossy(&useless.stderr).contains("gateway.tls: of no use"));
    assert!(is_done(&print(plain, plain, None)));
}

#[tokio::test]
async fn client_commands_support_tls() {
    let (ours, another) = (CertificateAuthority::new("ours"), CertificateAuthority::new("another"));
    let client = ours.issue("client");
    let authorities = ours.file();
    let settings = [
        ("TRESTLE__TLS__CLIENT_CA_FILE", authorities.to_str().unwrap()),
        ("TRESTLE__TLS__CLIENT_CERTIFICATES", "required"),
    ];
    let server = server(&ours.issue("trestle.test"), &settings);
    let (endpoint, ca, other) = (https(&server), ours.file(), another.file());
    let with = |command: &[&str], ca: &str| {
        let target = ["--endpoint", &endpoint, "--server-name", "trestle.test", "--ca-file", ca];
        let certificate = client.certificate.to_str().unwrap();
        let shown = ["--cert-file", certificate, "--key-file", client.key.to_str().unwrap()];
        trestle(&[command, &target, &shown].concat())
    };

    let created = with(&["table", "create", "Things"], ca.to_str().unwrap());
    let healthy = with(&["healthcheck"], ca.to_str().unwrap());
    let distrusted = with(&["table", "list"], other.to_str().unwrap());
    let blind = Command::new(server_binary())
        .args(["table", "list", "--endpoint", &endpoint, "--server-name", "trestle.test"])
        .env("SSL_CERT_FILE", &other)
        .output()
        .unwrap();

    assert!(is_done(&created) && is_done(&healthy), "{created:?} {healthy:?}");
    for rejected in [distrusted, blind] {
        assert_eq!(rejected.status.code(), Some(6), "{rejected:?}");
        let errors = String::from_utf8_lossy(&rejected.stderr);
        assert!(errors.contains("--ca-file") && !errors.contains("UnknownIssuer"), "{errors}");
    }
}

#[tokio::test]
async fn client_certificates_are_ignored_optional_or_required() {
    let (ours, another) = (CertificateAuthority::new("ours"), CertificateAuthority::new("another"));
    let (issued, authorities) = (ours.issue(LOOPBACK), ours.file());
    let trusted = trusting(&ours).identity(identity(&ours.issue("client")));
    let stranger = trusting(&ours).identity(identity(&another.issue("client")));

    for (mode, none, unknown) in
        [("off", true, true), ("optional", true, false), ("required", false, false)]
    {
        let authorities = ("TRESTLE__TLS__CLIENT_CA_FILE", authorities.to_str().unwrap());
        let settings = [("TRESTLE__TLS__CLIENT_CERTIFICATES", mode), authorities];
        let settings = if mode == "off" { &settings[..1] } else { &settings[..] };
        let server = server(&issued, settings);

        assert!(is_served(&server, trusted.clone()).await, "{mode}");
        assert_eq!(is_served(&server, trusting(&ours)).await, none, "{mode}");
        assert_eq!(is_served(&server, stranger.clone()).await, unknown, "{mode}");
    }
}

#[tokio::test]
async fn reloaded_certificate_applies_to_new_connections_and_an_invalid_one_is_ignored() {
    let ours = CertificateAuthority::new("ours");
    let issued = ours.issue("first.test");
    let server = server(&issued, &[]);
    let open = connected(&server, trusting(&ours).domain_name("first.test")).await.unwrap();
    let hang_up = || {
        let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
        kill_process(pid, Signal::HUP).unwrap();
    };

    ours.replace(&issued, "second.test");
    assert!(becomes(&server, &ours, "second.test").await, "the new certificate is not used");
    assert!(!is_served(&server, trusting(&ours).domain_name("first.test")).await);

    fs::write(&issued.certificate, "broken").unwrap();
    hang_up();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(is_served(&server, trusting(&ours).domain_name("second.test")).await);

    ours.replace(&issued, "third.test");
    hang_up();
    assert!(becomes(&server, &ours, "third.test").await, "it does not recover");
    assert!(answers(&open).await, "a connection that was open is broken");
}

/// The beginning of a handshake of TLS 1.0, without any later version.
const TLS_1_0: &[u8] =
    b"\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x01abcdefghijklmnopqrstuvwxyz012345\
      \x00\x00\x02\x00\x2f\x01\x00";

#[tokio::test]
async fn connections_of_other_protocols_are_closed() {
    use std::io::{Read as _, Write as _};
    let ours = CertificateAuthority::new("ours");
    let server = server(&ours.issue(LOOPBACK), &[]);
    let address = server.address("grpc").to_socket_addrs().unwrap().next().unwrap();

    for garbage in [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..],
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        &[0xFF; 4096],
        &[0; 70_000],
        TLS_1_0,
        b"\x16\x03\x01\xff\xff",
        b"",
    ] {
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(HANG)).unwrap();
        // Fails where the server has closed the connection before the end.
        let _ = client.write_all(garbage);
        let mut answer = Vec::new();
        let closed = client.read_to_end(&mut answer);

        let timed_out = closed.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!timed_out, "still open: {:?}", garbage.first());
        assert!(!answer.starts_with(b"HTTP"), "answered in plain text");
    }

    assert!(is_served(&server, trusting(&ours)).await);
}

#[test]
fn unusable_certificates_are_reported_at_start() {
    let ours = CertificateAuthority::new("ours");
    let (one, two) = (ours.issue("one.test"), ours.issue("two.test"));
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (key, missing) = (text(&one.key), "/nowhere/cert.pem".to_owned());

    for (certificate, key, named) in [
        (missing.clone(), key.clone(), &missing),
        (text(&one.certificate), text(&two.key), &text(&two.key)),
        (key.clone(), key.clone(), &key),
        (text(&one.certificate), text(&one.certificate), &text(&one.certificate)),
    ] {
        let mut command = Command::new(server_binary());
        command.args(["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.env("TRESTLE__TLS__CERT_FILE", certificate).env("TRESTLE__TLS__KEY_FILE", key);
        let output = command.output().unwrap();

        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(named), "{output:?}");
    }
}
