//! A server that answers the health call, and then no other one.

use std::{
    convert::Infallible,
    future::{Pending, pending},
    net::SocketAddr,
    task::{Context, Poll},
};

use tonic::{
    body::Body,
    server::NamedService,
    transport::{Server, server::TcpIncoming},
};
use tower::Service;

use crate::client::{Ended, bare};

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
    let server = Server::builder().add_service(health).add_service(SilentTables);
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
    assert_eq!((read.code, read.errors), (Some(5), whole("repeat as it is")));
    let doubt = "whether a write took place is unknown, read back first";
    assert_eq!((written.code, written.errors), (Some(5), whole(doubt)));
}

#[test]
fn an_address_without_a_port_is_named_with_the_port_that_was_called() {
    for (endpoint, called) in [
        ("http://127.0.0.1", "http://127.0.0.1:80"),
        ("https://127.0.0.1", "https://127.0.0.1:443"),
        ("127.0.0.1", "http://127.0.0.1:50051"),
    ] {
        let listed = Ended::of(bare(&["table", "list", "--endpoint", endpoint]));
        let checked = Ended::of(bare(&["healthcheck", "--endpoint", endpoint]));

        for ended in [listed, checked] {
            assert!(ended.errors.contains(&format!("cannot connect to {called}\n")), "{ended:?}");
        }
    }
}
