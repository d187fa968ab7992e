//! Mutual TLS between roles: the table process accepts only valid client certificates, and a
//! gateway reloads a changed one.

use std::time::Duration;

use tempfile::TempDir;
use tonic::Code;
use trestle_proto::queue::v1 as proto;
use trestle_tests::{CertificateAuthority, HANG, Issued, Queue, Server, Table, entity, text};

use crate::{contents::MAIN, writer::create};

/// The address of the table process, as its certificate names it.
const LOOPBACK: &str = "127.0.0.1";

/// A role process that requires client certificates of a CA.
fn process(role: &str, data: &TempDir, own: &Issued, gateways: &CertificateAuthority) -> Server {
    process_with(role, data, own, gateways, &[])
}

/// The same with more settings.
fn process_with(
    role: &str,
    data: &TempDir,
    own: &Issued,
    gateways: &CertificateAuthority,
    more: &[(&str, &str)],
) -> Server {
    let path = data.path().to_str().expect("a path in UTF-8");
    let authorities = gateways.file();
    let required = [
        ("TRESTLE__TLS__CLIENT_CA_FILE", authorities.to_str().expect("a path in UTF-8")),
        ("TRESTLE__TLS__CLIENT_CERTIFICATES", "required"),
    ];
    let settings = [&own.settings()[..], &required, more].concat();
    Server::start(&["--roles", role, "--data-dir", path], &settings)
}

fn table_process(data: &TempDir, own: &Issued, gateways: &CertificateAuthority) -> Server {
    process("table", data, own, gateways)
}

/// A gateway that connects to tables over TLS, with a CA and optionally a client certificate.
fn gateway(table: &Server, trusted: &CertificateAuthority, shown: Option<&Issued>) -> Server {
    let endpoint = format!("https://{}", table.address("grpc"));
    gateway_to(&[("TRESTLE__GATEWAY__TABLE_ENDPOINT", &endpoint)], trusted, shown)
}

/// A gateway with endpoints of roles.
fn gateway_to(
    endpoints: &[(&str, &str)],
    trusted: &CertificateAuthority,
    shown: Option<&Issued>,
) -> Server {
    let authorities = trusted.file();
    let mut settings = vec![
        ("TRESTLE__GATEWAY__TLS__CA_FILE", authorities.to_str().expect("a path in UTF-8")),
        ("TRESTLE__GATEWAY__WAIT_MS", "0"),
    ];
    if let Some(shown) = shown {
        let [certificate, key] = [&shown.certificate, &shown.key].map(|file| file.to_str());
        settings.push(("TRESTLE__GATEWAY__TLS__CERT_FILE", certificate.expect("a path")));
        settings.push(("TRESTLE__GATEWAY__TLS__KEY_FILE", key.expect("a path")));
    }
    Server::start(&["--roles", "gateway"], &[endpoints, &settings].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn table_process_rejects_a_gateway_without_a_valid_certificate() {
    let (roles, gateways) =
        (CertificateAuthority::new("roles"), CertificateAuthority::new("gateways"));
    let stranger = CertificateAuthority::new("stranger");
    let (own, shown, other) =
        (roles.issue(LOOPBACK), gateways.issue("gateway"), stranger.issue("gateway"));
    let data = tempfile::tempdir().unwrap();
    let table = table_process(&data, &own, &gateways);

    let good = gateway(&table, &roles, Some(&shown));
    let through = Table::over(&good.channel(), MAIN);
    create(&through).await.unwrap();
    through.insert(entity("p", "r", [])).await.unwrap();

    for (what, bad) in [
        ("shows none", gateway(&table, &roles, None)),
        ("shows a stranger's", gateway(&table, &roles, Some(&other))),
        ("trusts a stranger", gateway(&table, &stranger, Some(&shown))),
    ] {
        let rejected = Table::over(&bad.channel(), MAIN).get("p", "r").await.unwrap_err();
        assert_eq!(rejected.kind(), (Code::Unavailable, "SERVER_UNAVAILABLE"), "{what}");
    }
    assert_eq!(through.rows("").await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_of_a_role_is_not_that_of_a_gateway() {
    let authority = CertificateAuthority::new("all");
    let own = authority.issue(LOOPBACK);
    let data = tempfile::tempdir().unwrap();
    let table = table_process(&data, &own, &authority);
    let through = |name: &str| {
        let shown = if name == LOOPBACK { own.clone() } else { authority.issue(name) };
        let gateway = gateway(&table, &authority, Some(&shown));
        let table = Table::over(&gateway.channel(), MAIN);
        (gateway, table)
    };

    let (_gateway, of_gateway) = through("gateway");
    create(&of_gateway).await.unwrap();
    of_gateway.insert(entity("p", "r", [])).await.unwrap();

    for name in [LOOPBACK, "queue", "gateway.other", "othergateway"] {
        let (_gateway, of_role) = through(name);
        let rejected = of_role.get("p", "r").await.unwrap_err();
        assert_eq!(rejected.code, Code::Unauthenticated, "{name}");
        assert!(rejected.message.contains("tls.gateway_names"), "{rejected:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_names_of_gateways_are_a_setting() {
    let authority = CertificateAuthority::new("all");
    let data = tempfile::tempdir().unwrap();
    let names = ("TRESTLE__TLS__GATEWAY_NAMES", "front.internal, edge.internal");
    let table = process_with("table", &data, &authority.issue(LOOPBACK), &authority, &[names]);
    let listed = async |name: &str| {
        let gateway = gateway(&table, &authority, Some(&authority.issue(name)));
        Table::over(&gateway.channel(), MAIN).get("p", "r").await.unwrap_err().code
    };

    // The table does not exist.
    assert_eq!(listed("edge.internal").await, Code::NotFound);
    assert_eq!(listed("front.internal").await, Code::NotFound);
    assert_eq!(listed("gateway").await, Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutual_tls_is_configured_per_role() {
    let (roles, gateways) =
        (CertificateAuthority::new("roles"), CertificateAuthority::new("gateways"));
    let (own, shown) = (roles.issue(LOOPBACK), gateways.issue("gateway"));
    let [tables, queues] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let path = tables.path().to_str().unwrap();
    let table = Server::start(&["--roles", "table", "--data-dir", path], &[]);
    let queue = process("queue", &queues, &own, &gateways);
    let endpoints = [table.endpoint(), format!("https://{}", queue.address("grpc"))];
    let endpoints = [
        ("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoints[0].as_str()),
        ("TRESTLE__GATEWAY__QUEUE_ENDPOINT", endpoints[1].as_str()),
    ];

    let good = gateway_to(&endpoints, &roles, Some(&shown));
    let jobs = Queue::over(&good.channel(), "jobs");
    let expected = proto::Queue { name: jobs.name(), ..Default::default() };
    let request = proto::CreateQueueRequest { queue: Some(expected) };
    jobs.client().create_queue(request).await.unwrap();
    jobs.send(text("encrypted")).await.unwrap();
    assert_eq!(jobs.count().await, 1);
    create(&Table::over(&good.channel(), MAIN)).await.unwrap();

    let bad = gateway_to(&endpoints, &roles, None);
    let rejected = Queue::over(&bad.channel(), "jobs").peek(1).await.unwrap_err();
    assert_eq!(rejected.kind(), (Code::Unavailable, "SERVER_UNAVAILABLE"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_reloads_its_client_certificate() {
    let (roles, gateways) =
        (CertificateAuthority::new("roles"), CertificateAuthority::new("gateways"));
    let data = tempfile::tempdir().unwrap();
    let table = table_process(&data, &roles.issue(LOOPBACK), &gateways);
    let stranger = CertificateAuthority::new("stranger");
    let shown = stranger.issue("gateway");
    let gateway = gateway(&table, &roles, Some(&shown));
    let through = Table::over(&gateway.channel(), MAIN);
    assert_eq!(create(&through).await.unwrap_err().code, Code::Unavailable);

    gateways.replace(&shown, "gateway");

    let works = async {
        while create(&through).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(HANG, works).await.expect("the new certificate is shown");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_a_role_whose_certificate_has_another_name() {
    let (roles, gateways) =
        (CertificateAuthority::new("roles"), CertificateAuthority::new("gateways"));
    let shown = gateways.issue("gateway");
    let (of_tables, of_queues) = (roles.issue("tables.internal"), roles.issue("queues.internal"));
    let [tables, queues] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let table = process("table", &tables, &of_tables, &gateways);
    let queue = process("queue", &queues, &of_queues, &gateways);
    let at = [&table, &queue].map(|role| format!("https://{}", role.address("grpc")));
    let reached = async |named: &[(&str, &str)]| {
        let endpoints = [
            ("TRESTLE__GATEWAY__TABLE_ENDPOINT", at[0].as_str()),
            ("TRESTLE__GATEWAY__QUEUE_ENDPOINT", at[1].as_str()),
        ];
        let gateway = gateway_to(&[&endpoints, named].concat(), &roles, Some(&shown));
        let tables = Table::over(&gateway.channel(), MAIN).get("p", "r").await.unwrap_err().code;
        let queues = Queue::over(&gateway.channel(), "jobs").peek(1).await.unwrap_err().code;
        [tables, queues]
    };
    let (name, queue_name) =
        ("TRESTLE__GATEWAY__TLS__SERVER_NAME", "TRESTLE__GATEWAY__TLS__QUEUE_SERVER_NAME");

    // Each role responds that the table and the queue do not exist.
    let (there, away) = (Code::NotFound, Code::Unavailable);
    let both = [(name, "tables.internal"), (queue_name, "queues.internal")];
    assert_eq!(reached(&both).await, [there, there]);
    assert_eq!(reached(&both[..1]).await, [there, away]);
    assert_eq!(reached(&both[1..]).await, [away, there]);
    assert_eq!(reached(&[(name, "queues.internal")]).await, [away, there]);
    assert_eq!(reached(&[]).await, [away, away]);
}
