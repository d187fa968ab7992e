//! A service answers the same wherever it lives, and failures of the way to it say what may have
//! happened.

use std::time::Duration;

use tokio::net::TcpListener;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;
use trestle_cli::TlsArgs;
use trestle_proto::table::v1::{
    CreateTableRequest, GetTableRequest, table_service_client::TableServiceClient,
};
use trestle_service::upstream::{Remote, Upstream};

use crate::{process::Serving, serving::node};

type Client = TableServiceClient<Upstream>;

fn remote(endpoint: &str) -> Client {
    TableServiceClient::new(Upstream::Remote(Remote::new(endpoint, 2).unwrap()))
}

/// What a client sees of an answer: the name of the table, or the failure with its details.
async fn seen(mut client: Client, table: &str) -> Result<String, (Code, String, String)> {
    let request = GetTableRequest { table: table.to_owned() };
    let answer = client.get_table(request).await;
    let table = answer.map(|answer| answer.into_inner().table.unwrap().name);
    table.map_err(|e| {
        let details = e.get_error_details();
        let told = (details.error_info().unwrap().reason.clone(), details.bad_request());
        (e.code(), e.message().to_owned(), format!("{told:?}"))
    })
}

#[tokio::test]
async fn local_and_remote_give_the_same_answers_and_the_same_failures() {
    let local = TableServiceClient::new(Upstream::Local(node(&[]).await.routes));
    let table = Serving::start(&["--ephemeral", "--roles", "table"], &[]);
    let endpoint = table.endpoint();
    let variables = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
    let gateway = Serving::start(&["--roles", "gateway"], &variables);
    let clients = [local, remote(&endpoint), remote(&gateway.endpoint())];
    for client in &clients[..2] {
        let request = CreateTableRequest { table: "Things".to_owned() };
        client.clone().create_table(request).await.unwrap();
    }

    for name in ["Things", "absent", "1", "no/name"] {
        let [local, direct, through] = &clients;
        let expected = seen(local.clone(), name).await;
        assert_eq!(seen(direct.clone(), name).await, expected, "direct: {name}");
        assert_eq!(seen(through.clone(), name).await, expected, "gateway: {name}");
    }
}

async fn status_of(endpoint: &str) -> Status {
    let request = Request::new(GetTableRequest::default());
    remote(endpoint).get_table(request).await.unwrap_err()
}

#[tokio::test]
async fn a_service_that_is_away_is_unavailable_and_one_that_breaks_off_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let broken = format!("http://{}", listener.local_addr().unwrap());
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let away = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    // Takes the call and goes away with it: who knows what happened.
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut read, mut write) = stream.split();
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        tokio::io::AsyncWriteExt::write_all(&mut write, &settings).await.unwrap();
        let mut bytes = vec![0; 65536];
        tokio::io::AsyncReadExt::read(&mut read, &mut bytes).await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        tokio::io::AsyncReadExt::read(&mut read, &mut bytes).await.unwrap();
    });

    let away = status_of(&away).await;
    let broken = status_of(&broken).await;

    assert_eq!(away.code(), Code::Unavailable);
    assert!(away.message().contains("nothing was sent"), "{}", away.message());
    assert_eq!(broken.code(), Code::Unknown);
    assert!(broken.message().contains("outcome"), "{}", broken.message());
}

#[tokio::test]
async fn a_gateway_is_ready_when_the_service_behind_it_is() {
    let table = Serving::start(&["--ephemeral", "--roles", "table"], &[]);
    let endpoint = table.endpoint();
    let variables = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
    let gateway = Serving::start(&["--roles", "gateway"], &variables);
    let serves = async |wanted: bool| {
        for _ in 0..100 {
            let (endpoint, tls) = (gateway.endpoint(), TlsArgs::default());
            let asked = trestle::healthcheck::check(&endpoint, &tls, String::new()).await;
            if asked.is_ok() == wanted {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        false
    };

    assert!(serves(true).await, "never became ready");
    table.terminate();
    assert_eq!(table.wait().0.code(), Some(0));
    assert!(serves(false).await, "still says it is ready");
}
