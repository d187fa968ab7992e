//! One call is one trace, from the client through the gateway to the store of another process.

use tonic::Request;
use trestle_proto::table::v1::{CreateTableRequest, table_service_client::TableServiceClient};

use crate::{
    collector::{Collector, Received},
    process::Serving,
};

const METHOD: &str = "trestle.table.v1.TableService/CreateTable";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT_SPAN: &str = "b7ad6b7169203331";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The one span of `process` with this name and parent.
fn child<'a>(spans: &'a [Received], process: &str, name: &str, parent: &str) -> &'a Received {
    let wanted = |r: &&Received| {
        r.process == process && r.span.name == name && hex(&r.span.parent_span_id) == parent
    };
    let mut found = spans.iter().filter(wanted);
    let first = found.next();
    first.unwrap_or_else(|| panic!("no span: {process} {name} under {parent}: {spans:#?}"))
}

#[tokio::test]
async fn a_call_through_the_gateway_is_one_trace_down_to_the_store() {
    let (collector, collecting) = Collector::start().await;
    let named =
        |name| [("OTEL_EXPORTER_OTLP_ENDPOINT", collecting.as_str()), ("OTEL_SERVICE_NAME", name)];
    let table = Serving::start(&["--ephemeral", "--roles", "table"], &named("table"));
    let endpoint = table.endpoint();
    let reached = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
    let variables = [&named("gateway")[..], &reached[..]].concat();
    let gateway = Serving::start(&["--roles", "gateway"], &variables);

    let channel = tonic::transport::Endpoint::new(gateway.endpoint()).unwrap();
    let mut client = TableServiceClient::new(channel.connect().await.unwrap());
    let mut request = Request::new(CreateTableRequest { table: "Things".to_owned() });
    let parent = format!("00-{TRACE}-{CLIENT_SPAN}-01");
    request.metadata_mut().insert("traceparent", parent.parse().unwrap());
    request.metadata_mut().insert("x-request-id", "my-request".parse().unwrap());
    client.create_table(request).await.unwrap();
    drop(client);
    for process in [gateway, table] {
        process.terminate();
        let (status, log) = tokio::task::spawn_blocking(|| process.wait()).await.unwrap();
        assert_eq!(status.code(), Some(0), "{log}");
    }

    let mut spans = collector.spans();
    spans.retain(|received| hex(&received.span.trace_id) == TRACE);
    let arrived = child(&spans, "gateway", METHOD, CLIENT_SPAN);
    let forwarded = child(&spans, "gateway", METHOD, &hex(&arrived.span.span_id));
    let served = child(&spans, "table", METHOD, &hex(&forwarded.span.span_id));
    let stored = child(&spans, "table", "commit", &hex(&served.span.span_id));
    assert_eq!(stored.process, "table");
    for received in [arrived, served] {
        let attributes = format!("{:?}", received.span.attributes);
        for expected in ["my-request", METHOD, "rpc.response.status_code", "OK"] {
            assert!(attributes.contains(expected), "{expected}: {attributes}");
        }
    }
}
