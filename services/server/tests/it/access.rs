//! The access log: one line for each call, with any outcome and any process of the table role.

use serde_json::Value;
use tonic::{Code, Request, transport::Channel};
use trestle_identity::{
    account::AccountKey,
    caller::KeyRange,
    sas::{Scope, Terms, Time, Version, mint},
};
use trestle_model::name::AccountName;
use trestle_proto::{
    queue::v1::{self as queue, queue_service_client::QueueServiceClient},
    table::v1::{self as proto, table_service_client::TableServiceClient},
};

use crate::process::Serving;

/// The public key of the development account, and `Basic` credentials with it.
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const CREDENTIAL: &str = "ZGV2c3RvcmVhY2NvdW50MTpFYnk4dmRNMDJ4Tk9jcUZscVV3SlBMbG1FdGxDRFhKMU9Ve\
    kZUNTB1U1JaNklGc3VGcTJVVkVyQ3o0STZ0cS9LMVNaRlBUT3RyL0tCSEJla3NvR01Hdz09";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SERVICE: &str = "trestle.table.v1.TableService";
const PARTITION: &str = "customer-4711";

/// A gateway, and the table role in the same process or in a separate one.
struct World {
    gateway: Serving,
    table: Option<Serving>,
}

impl World {
    fn in_one_process(variables: &[(&str, &str)]) -> Self {
        Self { gateway: Serving::start(&["--ephemeral"], variables), table: None }
    }

    fn in_two_processes(variables: &[(&str, &str)]) -> Self {
        let table = Serving::start(&["--ephemeral", "--roles", "table"], &[]);
        let endpoint = table.endpoint();
        let endpoints = [("TRESTLE__GATEWAY__TABLE_ENDPOINT", endpoint.as_str())];
        let gateway = Serving::start(&["--roles", "gateway"], &[variables, &endpoints].concat());
        Self { gateway, table: Some(table) }
    }

    async fn client(&self) -> TableServiceClient<Channel> {
        let endpoint = tonic::transport::Endpoint::new(self.gateway.endpoint()).unwrap();
        TableServiceClient::new(endpoint.connect().await.unwrap())
    }

    /// Ends it; returns the logs of the gateway and of the other process.
    async fn end(self) -> (String, String) {
        let mut logs = Vec::new();
        for process in [Some(self.gateway), self.table].into_iter().flatten() {
            process.terminate();
            let ended = tokio::task::spawn_blocking(|| process.wait()).await.unwrap();
            assert_eq!(ended.0.code(), Some(0), "{}", ended.1);
            logs.push(ended.1);
        }
        logs.resize(2, String::new());
        let [gateway, table] = logs.try_into().unwrap();
        (gateway, table)
    }
}

/// A request with an id, in a trace, by the owner of the account.
fn request<T>(id: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    metadata.insert("x-request-id", id.parse().unwrap());
    metadata.insert("traceparent", format!("00-{TRACE}-b7ad6b7169203331-00").parse().unwrap());
    metadata.insert("authorization", format!("Basic {CREDENTIAL}").parse().unwrap());
    request
}

fn entity(row: &str) -> proto::Entity {
    let (partition_key, row_key) = (PARTITION.to_owned(), row.to_owned());
    proto::Entity { partition_key, row_key, ..proto::Entity::default() }
}

fn get(row: &str) -> proto::GetEntityRequest {
    let (partition_key, row_key) = (PARTITION.to_owned(), row.to_owned());
    proto::GetEntityRequest { table: "Orders".into(), partition_key, row_key, select: None }
}

fn batch(rows: &[&str]) -> proto::ExecuteBatchRequest {
    use proto::{BatchInsert, batch_operation::Operation};
    let operations = rows.iter().map(|row| proto::BatchOperation {
        operation: Some(Operation::Insert(BatchInsert { entity: Some(entity(row)) })),
    });
    proto::ExecuteBatchRequest { table: "Orders".into(), operations: operations.collect() }
}

/// One call of every kind, each with its own id.
async fn call_everything(client: &mut TableServiceClient<Channel>) {
    let table = Some(proto::Table { name: "Orders".into(), ..Default::default() });
    let table = proto::CreateTableRequest { table };
    client.create_table(request("create", table)).await.unwrap();
    let insert = proto::InsertEntityRequest { table: "Orders".into(), entity: Some(entity("1")) };
    client.insert_entity(request("insert", insert)).await.unwrap();
    client.execute_batch(request("batch", batch(&["2", "3"]))).await.unwrap();
    client.get_entity(request("get", get("1"))).await.unwrap();
    let filter = "RowKey eq '2' or RowKey eq '3'".to_owned();
    let query =
        proto::QueryEntitiesRequest { table: "Orders".into(), filter, ..Default::default() };
    client.query_entities(request("query", query)).await.unwrap();
    let stream = proto::StreamEntitiesRequest { table: "Orders".into(), ..Default::default() };
    let mut stream = client.stream_entities(request("stream", stream)).await.unwrap().into_inner();
    while stream.message().await.unwrap().is_some() {}
    let absent = client.get_entity(request("absent", get("9"))).await.unwrap_err();
    assert_eq!(absent.code(), Code::NotFound);
    let rejected = client.execute_batch(request("rejected", batch(&[]))).await.unwrap_err();
    assert_eq!(rejected.code(), Code::InvalidArgument);
}

async fn call_an_unknown_method(world: &World) {
    let endpoint = tonic::transport::Endpoint::new(world.gateway.endpoint()).unwrap();
    let mut grpc = tonic::client::Grpc::new(endpoint.connect().await.unwrap());
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/some.v1.Service/Method");
    let unknown = request("unknown", bytes::Bytes::new());
    let unknown = grpc.unary(unknown, path, trestle_proto::RawCodec).await.unwrap_err();
    assert_eq!(unknown.code(), Code::Unimplemented);
}

/// The lines of the access log in a log, as objects.
fn lines(log: &str) -> Vec<Value> {
    let objects = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    objects.filter(|line| line["target"] == "trestle::access").collect()
}

/// The only line about the request `id`.
fn line<'a>(lines: &'a [Value], id: &str) -> &'a Value {
    let mut found = lines.iter().filter(|line| line["request_id"] == id);
    let line = found.next().unwrap_or_else(|| panic!("no line about {id}: {lines:#?}"));
    assert!(found.next().is_none(), "two lines about {id}: {lines:#?}");
    line
}

/// Compares members of a line; null means an absent one.
fn assert_line(lines: &[Value], id: &str, expected: &Value) {
    let line = line(lines, id);
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&line[name], value, "{name} in {line:#}");
    }
    assert_eq!(line["trace_id"], TRACE, "{line:#}");
    assert!(line["duration_us"].is_u64() && line["timestamp"].is_string(), "{line:#}");
}

const JSON: [(&str, &str); 2] =
    [("TRESTLE__TELEMETRY__ACCESS_LOG", "stderr"), ("TRESTLE__TELEMETRY__LOG_FORMAT", "json")];

/// The expected members of the lines, by request id.
fn expected() -> Vec<(&'static str, Value)> {
    let method = |name: &str| format!("{SERVICE}/{name}");
    let account = "devstoreaccount1";
    vec![
        (
            "create",
            serde_json::json!({ "method": method("CreateTable"), "status": "OK",
            "account": account, "credential": "owner", "table": "Orders", "reason": null,
            "partition_key_hash": null, "written": 0 }),
        ),
        (
            "insert",
            serde_json::json!({ "method": method("InsertEntity"), "written": 1,
            "table": "Orders", "status": "OK" }),
        ),
        (
            "batch",
            serde_json::json!({ "method": method("ExecuteBatch"), "written": 2,
            "row_key_hash": null }),
        ),
        (
            "get",
            serde_json::json!({ "method": method("GetEntity"), "status": "OK",
            "scanned": 1, "returned": 1, "written": 0, "account": account }),
        ),
        (
            "query",
            serde_json::json!({ "method": method("QueryEntities"), "scanned": 3,
            "returned": 2, "table": "Orders" }),
        ),
        (
            "stream",
            serde_json::json!({ "method": method("StreamEntities"), "scanned": 3,
            "returned": 3, "status": "OK" }),
        ),
        (
            "absent",
            serde_json::json!({ "status": "NOT_FOUND", "table": "Orders",
            "reason": "RESOURCE_NOT_FOUND", "returned": 0 }),
        ),
        (
            "rejected",
            serde_json::json!({ "status": "INVALID_ARGUMENT", "table": "Orders",
            "account": account }),
        ),
        (
            "unknown",
            serde_json::json!({ "method": "_OTHER", "status": "UNIMPLEMENTED",
            "reason": "NOT_IMPLEMENTED", "table": null }),
        ),
    ]
}

async fn each_call_has_one_line(world: World) {
    let mut client = world.client().await;
    call_everything(&mut client).await;
    call_an_unknown_method(&world).await;
    drop(client);
    let (log, of_table) = world.end().await;

    let lines = lines(&log);
    assert_eq!(lines.len(), 9, "{lines:#?}");
    for (id, expected) in expected() {
        assert_line(&lines, id, &expected);
    }
    let key = |id: &str| line(&lines, id)["partition_key_hash"].as_str().unwrap().to_owned();
    assert_eq!(key("get").len(), 16);
    assert_eq!([key("insert"), key("batch"), key("absent")], [key("get"), key("get"), key("get")]);
    assert!(line(&lines, "get")["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
    for log in [&log, &of_table] {
        for secret in [KEY, CREDENTIAL, PARTITION] {
            assert!(!log.contains(secret), "{secret} is in {log}");
        }
    }
    assert!(!of_table.contains("trestle::access"), "{of_table}");
}

#[tokio::test]
async fn each_call_of_one_process_has_one_line_with_names_cost_and_trace() {
    each_call_has_one_line(World::in_one_process(&JSON)).await;
}

#[tokio::test]
async fn each_call_through_a_gateway_has_one_line_with_the_statistics_of_the_service() {
    each_call_has_one_line(World::in_two_processes(&JSON)).await;
}

/// A request with a SAS of these permissions.
fn signed<T>(id: &str, scope: Scope, permissions: &str, message: T) -> (Request<T>, String) {
    let time = |field, text: &str| Time::parse(field, text.to_owned()).unwrap();
    let terms = Terms {
        version: Version::parse("2019-02-02".to_owned()).unwrap(),
        permissions: permissions.to_owned(),
        start: None,
        expiry: Some(time("se", "2090-01-01T00:00:00Z")),
        policy: None,
        addresses: None,
        protocol: None,
        delegation: None,
        scope,
    };
    let account = AccountName::development();
    let token = mint(terms, account.as_str(), &AccountKey::development()).unwrap().to_query();
    let mut request = request(id, message);
    let value = format!("SharedAccessSignature {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    let signature = token.split('&').find_map(|field| field.strip_prefix("sig=")).unwrap();
    (request, signature.to_owned())
}

#[tokio::test]
async fn a_line_contains_the_kind_of_credential_and_never_the_credential() {
    let world = World::in_two_processes(&JSON);
    let mut client = world.client().await;
    let table = Scope::of_table("Orders", &KeyRange::default());
    let account = Scope::Account {
        services: "t".to_owned(),
        resource_types: "o".to_owned(),
        encryption_scope: String::new(),
    };
    let (by_table, one) = signed("by-table", table.clone(), "r", get("1"));
    let (by_account, two) = signed("by-account", account, "r", get("1"));
    let (lacking, three) = signed("lacking", table, "a", get("1"));
    let mut wrong = request("wrong", get("1"));
    wrong.metadata_mut().insert("authorization", "Basic YWNtZTphYWFh".parse().unwrap());

    for request in [by_table, by_account, lacking, wrong] {
        client.get_entity(request).await.unwrap_err();
    }
    drop(client);
    let (log, of_table) = world.end().await;

    let lines = lines(&log);
    for (id, expected) in [
        (
            "by-table",
            serde_json::json!({ "credential": "table_sas", "account": "devstoreaccount1",
            "status": "NOT_FOUND" }),
        ),
        ("by-account", serde_json::json!({ "credential": "account_sas", "status": "NOT_FOUND" })),
        (
            "lacking",
            serde_json::json!({ "credential": "table_sas", "status": "PERMISSION_DENIED",
            "reason": "AUTHORIZATION_PERMISSION_MISMATCH", "table": "Orders" }),
        ),
        (
            "wrong",
            serde_json::json!({ "credential": null, "account": null, "table": null,
            "status": "UNAUTHENTICATED", "reason": "AUTHENTICATION_FAILED" }),
        ),
    ] {
        assert_line(&lines, id, &expected);
    }
    for secret in [one, two, three] {
        assert!(!log.contains(&secret) && !of_table.contains(&secret), "{secret} is in {log}");
    }
}

#[tokio::test]
async fn a_call_that_is_shed_has_a_line_too() {
    let world =
        World::in_one_process(&[&JSON[..], &[("TRESTLE__LIMITS__CALLS_MAX", "1")]].concat());
    let mut client = world.client().await;
    // An import without a message uses the only slot.
    let (sender, messages) = tokio::sync::mpsc::channel(1);
    let messages = tokio_stream::wrappers::ReceiverStream::new(messages);
    let import = client.import_entities(request("import", messages)).await.unwrap();
    let shed = client.get_entity(request("shed", get("1"))).await.unwrap_err();
    drop::<(_, tokio::sync::mpsc::Sender<proto::ImportEntitiesRequest>)>((import, sender));
    drop(client);
    let (log, _) = world.end().await;

    assert_eq!(shed.code(), Code::ResourceExhausted);
    let expected = serde_json::json!({ "status": "RESOURCE_EXHAUSTED", "reason": "SERVER_BUSY",
        "table": null });
    assert_line(&lines(&log), "shed", &expected);
}

#[tokio::test]
async fn logs_keys_in_clear_text_only_if_configured() {
    let clear = [&JSON[..], &[("TRESTLE__TELEMETRY__ACCESS_LOG_KEYS", "clear")]].concat();
    let world = World::in_two_processes(&clear);
    let mut client = world.client().await;
    client.get_entity(request("get", get("row-1"))).await.unwrap_err();
    drop(client);
    let (log, _) = world.end().await;

    let expected = serde_json::json!({ "partition_key": PARTITION, "row_key": "row-1",
        "partition_key_hash": null });
    assert_line(&lines(&log), "get", &expected);
}

#[tokio::test]
async fn a_salt_file_keeps_the_hashes_of_the_access_log_across_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (salt, output) = (path("salt"), path("access.log"));
    std::fs::write(&salt, "sixteen bytes and more").unwrap();
    let variables = [
        JSON[1],
        ("TRESTLE__TELEMETRY__ACCESS_LOG", output.as_str()),
        ("TRESTLE__TELEMETRY__ACCESS_LOG_SALT_FILE", salt.as_str()),
    ];
    for id in ["first", "second"] {
        let world = World::in_one_process(&variables);
        let mut client = world.client().await;
        client.get_entity(request(id, get("1"))).await.unwrap_err();
        drop(client);
        let (log, _) = world.end().await;
        assert!(!log.contains("trestle::access"), "{log}");
    }

    let lines = lines(&std::fs::read_to_string(output).unwrap());
    let hash = |id: &str| line(&lines, id)["partition_key_hash"].as_str().unwrap();
    assert_eq!(hash("first"), hash("second"));
}

/// Calls on a queue, each with its own id.
async fn call_a_queue(client: &mut QueueServiceClient<Channel>) {
    let named = || "jobs".to_owned();
    let queue = Some(queue::Queue { name: named(), ..Default::default() });
    client.create_queue(request("create", queue::CreateQueueRequest { queue })).await.unwrap();
    let message = |text: &str| queue::OutgoingMessage {
        body: Some(queue::outgoing_message::Body::Text(text.to_owned())),
        ..Default::default()
    };
    let messages = vec![message("secret-1"), message("secret-22")];
    let send = queue::SendMessagesRequest { queue: named(), messages, ..Default::default() };
    client.send_messages(request("send", send)).await.unwrap();
    let max_messages = Some(2);
    let receive =
        queue::ReceiveMessagesRequest { queue: named(), max_messages, ..Default::default() };
    client.receive_messages(request("receive", receive)).await.unwrap();
    let peek = queue::PeekMessagesRequest { queue: "absent".into(), ..Default::default() };
    client.peek_messages(request("absent", peek)).await.unwrap_err();
}

#[tokio::test]
async fn calls_on_queues_log_the_queue_and_the_number_of_messages() {
    let world = World::in_one_process(&JSON);
    let endpoint = tonic::transport::Endpoint::new(world.gateway.endpoint()).unwrap();
    call_a_queue(&mut QueueServiceClient::new(endpoint.connect().await.unwrap())).await;
    let (log, _) = world.end().await;

    let lines = lines(&log);
    let json = |text: &str| serde_json::from_str(text).unwrap();
    for (id, expected) in [
        ("create", json(r#"{"queue":"jobs","table":null,"written":0,"status":"OK"}"#)),
        ("send", json(r#"{"queue":"jobs","written":2,"returned":0}"#)),
        ("receive", json(r#"{"queue":"jobs","written":0,"returned":2,"bytes":17}"#)),
        ("absent", json(r#"{"queue":"absent","returned":0,"reason":"QUEUE_NOT_FOUND"}"#)),
    ] {
        assert_line(&lines, id, &expected);
    }
    assert!(!log.contains("secret-"), "{log}");
}

#[tokio::test]
async fn logs_no_line_without_the_setting() {
    let world = World::in_two_processes(&JSON[1..]);
    let mut client = world.client().await;
    call_everything(&mut client).await;
    drop(client);
    let (log, of_table) = world.end().await;

    assert!(!log.contains("trestle::access") && !of_table.contains("trestle::access"), "{log}");
}

#[tokio::test]
async fn a_client_of_the_gateway_receives_no_call_statistics() {
    let world = World::in_two_processes(&JSON);
    let mut client = world.client().await;
    let mut forged = request("forged", get("1"));
    forged.metadata_mut().insert("trestle-statistics", "1".parse().unwrap());
    let rejected = client.get_entity(forged).await.unwrap_err();
    drop(client);
    world.end().await;

    assert!(rejected.metadata().get_bin("trestle-statistics-bin").is_none(), "{rejected:?}");
}
