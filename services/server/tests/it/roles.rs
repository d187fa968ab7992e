//! A role that exists only in these tests: one registration makes it run alone, behind the gateway, and in a process
//! with every role.

use std::sync::Arc;

use bytes::Bytes;
use opentelemetry::metrics::{MeterProvider as _, noop::NoopMeterProvider};
use tonic::{Request, body::Body, client::Grpc};
use tower::service_fn;
use trestle::{
    compose::{Node, NodeDeps, compose},
    roles::{Build, BuiltRole, GATEWAY, QUEUE, RoleSpec, TABLE},
    running::{Listeners, Running},
    settings::Settings,
};
use trestle_model::time::SystemClock;
use trestle_proto::RawCodec;
use trestle_rpc::access::AccessLog;
use trestle_rpc::layer;
use trestle_rpc::propagation::Traces;
use trestle_runtime::{config::Sources, openmetrics::Exposition};

/// Echoes the message of every call.
const ECHO: RoleSpec = RoleSpec {
    name: "echo",
    services: &["test.v1.EchoService"],
    writes: None,
    keyspaces: &[],
    has_objects: false,
    cors: None,
    build: Build::Service(|_| {
        let echo = |call: layer::Request| -> layer::ResponseFuture {
            Box::pin(async move {
                let body = http_body_util::BodyExt::with_trailers(call.into_body(), async {
                    let ok = ("grpc-status".parse().unwrap(), "0".parse().unwrap());
                    Some(Ok(http::HeaderMap::from_iter([ok])))
                });
                let answer = http::Response::new(Body::new(body));
                Ok(answer)
            })
        };
        Ok(BuiltRole::new(service_fn(echo)))
    }),
    is_required: true,
    azure: None,
};

const ROLES: &[RoleSpec] = &[GATEWAY, ECHO];

async fn node(roles: &[RoleSpec], variables: &[(&str, &str)]) -> (Node, Settings) {
    let free = ["LISTEN", "ADMIN"].map(|name| (format!("SERVER__{name}"), "127.0.0.1:0"));
    let set = variables.iter().map(|(name, value)| ((*name).to_owned(), *value));
    let variable = |(name, value): (String, &str)| (format!("TRESTLE__{name}"), value.to_owned());
    let environment = free.into_iter().chain(set).map(variable).collect();
    let settings = Settings::load(roles, Sources { environment, ..Sources::default() }).unwrap();
    let deps = NodeDeps {
        engine: Some(Arc::new(trestle_kv::MemoryEngine::new(trestle_table::KEYSPACES))),
        objects: None,
        listen: None,
        clock: Arc::new(SystemClock),
        meter: NoopMeterProvider::new().meter("test"),
        traces: Traces::default(),
        access: AccessLog::off(),
        random: || 7,
        source: None,
    };
    (compose(&settings, roles, deps).await.unwrap(), settings)
}

async fn echoed(node: &Node) -> Bytes {
    let path = "/test.v1.EchoService/Echo".parse().unwrap();
    let message = Request::new(Bytes::from_static(b"hello"));
    Grpc::new(node.routes.clone()).unary(message, path, RawCodec).await.unwrap().into_inner()
}

#[tokio::test]
async fn serves_a_new_role_in_a_process_with_every_role() {
    let (node, _) = node(&[GATEWAY, TABLE, QUEUE, ECHO], &[]).await;

    assert_eq!(echoed(&node).await, "hello");
    let edges: Vec<_> = node.azure.iter().map(|edge| edge.role).collect();
    assert_eq!(edges, [TABLE.name, QUEUE.name]);
}

#[tokio::test]
async fn serves_a_new_role_alone_and_behind_a_gateway() {
    let (alone, settings) = node(ROLES, &[("SERVER__ROLES", "echo")]).await;
    assert_eq!(echoed(&alone).await, "hello");
    let listeners = Listeners::bind(&settings).await.unwrap();
    let endpoint = format!("http://{}", listeners.grpc().unwrap());
    let running = Running::start(alone, listeners, &settings, Exposition::default());

    let endpoints = [("SERVER__ROLES", "gateway"), ("GATEWAY__ECHO_ENDPOINT", &endpoint)];
    let (gateway, _) = node(ROLES, &endpoints).await;

    assert_eq!(echoed(&gateway).await, "hello");
    drop(gateway);
    running.stop().await;
}

#[test]
fn rejects_settings_of_a_role_that_does_not_exist() {
    for (variable, value, problem) in [
        ("SERVER__ROLES", "table", "server.roles: must be `all`, or of `gateway` and `echo`"),
        ("SERVER__ROLES", "gateway", "gateway.echo_endpoint: required"),
        ("SERVER__AZURE_TABLE", "off", "unknown keys: keys=`server.azure_table`"),
        ("SERVER__AZURE_ECHO", "1", "server.azure_echo: must be an address"),
        ("GATEWAY__TABLE_ENDPOINT", "http://a:1", "keys=`gateway.table_endpoint`"),
        ("GATEWAY__TLS__QUEUE_SERVER_NAME", "q", "keys=`gateway.tls.queue_server_name`"),
        ("GATEWAY__WAIT", "5", "keys=`gateway.wait`"),
        ("SERVER__AZURE", "5", "keys=`server.azure`"),
    ] {
        let environment = [(format!("TRESTLE__{variable}"), value.to_owned())].into();
        let rejected = Settings::load(ROLES, Sources { environment, ..Sources::default() });
        let error = rejected.unwrap_err().to_string();
        assert!(error.contains(problem), "{variable}: {error}");
    }
}
