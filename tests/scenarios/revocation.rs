//! Calls that are open while the key, the account or the stored access policy that opened them is revoked.

use std::{fs, path::Path, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::header::AUTHORIZATION;
use prost_types::Timestamp;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};
use trestle_identity::{
    account::AccountKey,
    caller::KeyRange,
    sas::{Scope, mint},
};
use trestle_proto::{
    blob::v1::{SetContainerAccessPoliciesRequest, WriteBlobRequest},
    log::v1::{AppendStreamRequest, AppendStreamResponse, TailRecordsRequest, TailRecordsResponse},
    queue::v1::{
        StreamMessagesRequest, StreamMessagesResponse, StreamOpen, stream_messages_request::Message,
    },
    service::v1::AccessPolicy,
    table::v1::{ImportEntitiesRequest, ImportEntitiesResponse, import_entities_request},
};
use trestle_tests::{
    CallError, HANG, Queue, Server, World, blob_scenario, log_record, over_account, queue_scenario,
    replace_file, scenario, seconds, terms, terms_by_policy, text, texts, token,
};

scenario!(an_idle_import_ends_when_its_policy_is_removed);
queue_scenario!(
    waiting_consumers_end_when_their_policy_is_removed,
    a_stream_ends_when_its_policy_grants_less,
);
blob_scenario!(an_idle_upload_ends_when_its_policy_is_removed);

const NOT_AUTHENTIC: (Code, &str) = (Code::Unauthenticated, "AUTHENTICATION_FAILED");
const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const DISABLED: (Code, &str) = (Code::PermissionDenied, "ACCOUNT_IS_DISABLED");

/// The end of a stream, which may deliver something before.
async fn end<T>(stream: &mut Streaming<T>) -> CallError {
    loop {
        match tokio::time::timeout(HANG, stream.message()).await.expect("the stream ends") {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended without an error"),
            Err(status) => return CallError::from(status),
        }
    }
}

/// A call with a stream of requests that remains open.
struct Requests<T>(mpsc::Sender<T>);

impl<T> Requests<T> {
    async fn begin(first: T) -> (Self, ReceiverStream<T>) {
        let (sender, receiver) = mpsc::channel(4);
        sender.send(first).await.expect("open");
        (Self(sender), ReceiverStream::new(receiver))
    }
}

/// The time in which a call without a first response begins; otherwise it is rejected when it begins.
async fn begun() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

async fn consume(
    queue: &Queue,
) -> (Requests<StreamMessagesRequest>, Streaming<StreamMessagesResponse>) {
    let opened = StreamOpen { queue: queue.name(), credit: 10, ..Default::default() };
    let opened = StreamMessagesRequest { message: Some(Message::Open(opened)) };
    let (requests, receiver) = Requests::begin(opened).await;
    let deliveries = queue.client().stream_messages(receiver).await.unwrap().into_inner();
    (requests, deliveries)
}

async fn import(
    world: &World,
    table: &str,
) -> (Requests<ImportEntitiesRequest>, Streaming<ImportEntitiesResponse>) {
    let table = world.existing_table(table);
    let spec = import_entities_request::Message::Spec(table.spec(None));
    let (requests, receiver) = Requests::begin(ImportEntitiesRequest { message: Some(spec) }).await;
    let outcomes = table.client().import_entities(receiver).await.unwrap().into_inner();
    (requests, outcomes)
}

const KEY_1: &str =
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==";
const KEY_2: &str =
    "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg==";

fn owner(world: &World, key: &str) -> World {
    let value = STANDARD.encode(format!("acme:{key}"));
    world.with_header(AUTHORIZATION, &format!("Basic {value}"))
}

/// Calls of one credential that wait for data.
struct Waiting {
    tail: Streaming<TailRecordsResponse>,
    appends: (Requests<AppendStreamRequest>, Streaming<AppendStreamResponse>),
    deliveries: (Requests<StreamMessagesRequest>, Streaming<StreamMessagesResponse>),
    import: (Requests<ImportEntitiesRequest>, Streaming<ImportEntitiesResponse>),
}

impl Waiting {
    async fn open(world: &World) -> Self {
        let stream = world.existing_log_stream("web");
        let request = TailRecordsRequest { stream: stream.name(), ..Default::default() };
        let tail = world.logs().tail_records(request).await.unwrap().into_inner();
        let append = Some(stream.appending(&[log_record(1, "first")]));
        let (requests, receiver) =
            Requests::begin(AppendStreamRequest { append, append_id: 1 }).await;
        let mut acks = stream.client().append_stream(receiver).await.unwrap().into_inner();
        acks.message().await.unwrap().expect("an acknowledgement");
        let deliveries = consume(&world.existing_queue("jobs")).await;
        let import = import(world, "orders").await;
        Self { tail, appends: (requests, acks), deliveries, import }
    }

    async fn ends(mut self) -> [CallError; 4] {
        [
            end(&mut self.tail).await,
            end(&mut self.appends.1).await,
            end(&mut self.deliveries.1).await,
            end(&mut self.import.1).await,
        ]
    }
}

fn configure(config: &Path, section: &str) {
    replace_file(config, &format!("[accounts.acme]\n{section}"));
}

/// A server with an account of two keys, and the resources that [`Waiting`] uses.
async fn acme(config: &Path) -> World {
    configure(config, &format!("key1 = \"{KEY_1}\"\nkey2 = \"{KEY_2}\"\n"));
    let both = [("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "loopback")];
    let server = Server::start(&["--ephemeral", "--config", config.to_str().unwrap()], &both);
    let world = World::of(server).await;
    let owner = owner(&world, KEY_1);
    owner.log_stream("web").await;
    owner.queue("jobs").await;
    owner.create("orders").await.unwrap();
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_removed_key_end_and_those_of_the_other_key_continue() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.toml");
    let world = acme(&config).await;
    let (removed, kept) = (owner(&world, KEY_1), owner(&world, KEY_2));
    let terms = terms(over_account("q", "sco"), "rp");
    let signed = mint(terms, "acme", &AccountKey::decode(KEY_1).unwrap()).unwrap().to_query();
    let mut other = Waiting::open(&kept).await;
    let waiting = Waiting::open(&removed).await;
    let (_grants, mut by_signature) = consume(&world.signed(&signed).existing_queue("jobs")).await;
    let idle = removed.queue("idle").await;
    let revoke = async {
        begun().await;
        configure(&config, &format!("key2 = \"{KEY_2}\"\n"));
        world.hang_up();
    };

    let (received, ()) = tokio::join!(idle.wait(seconds(20)), revoke);

    for error in waiting.ends().await {
        assert_eq!(error.kind(), NOT_AUTHENTIC, "{error:?}");
        assert!(error.message.contains("account=`acme`"), "{error:?}");
        assert!(error.message.contains("the key of the call was removed"), "{error:?}");
    }
    assert_eq!(end(&mut by_signature).await.kind(), NOT_AUTHENTIC);
    assert_eq!(received.unwrap_err().kind(), NOT_AUTHENTIC);
    kept.existing_queue("jobs").send(text("after")).await.unwrap();
    let delivered = tokio::time::timeout(HANG, other.deliveries.1.message()).await.unwrap();
    assert_eq!(texts(&delivered.unwrap().expect("a delivery").deliveries), ["after"]);
    let append = Some(kept.existing_log_stream("web").appending(&[log_record(2, "after")]));
    other.appends.0.0.send(AppendStreamRequest { append, append_id: 2 }).await.unwrap();
    let acked = tokio::time::timeout(HANG, other.appends.1.message()).await.unwrap();
    assert_eq!(acked.unwrap().expect("an acknowledgement").append_id, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_a_disabled_account_end() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.toml");
    let world = acme(&config).await;
    let waiting = Waiting::open(&owner(&world, KEY_1)).await;
    let kept = world.queue("kept").await;
    let (_grants, mut deliveries) = consume(&kept).await;

    let keys = fs::read_to_string(&config).unwrap().replace("[accounts.acme]\n", "");
    configure(&config, &format!("{keys}disabled = true\n"));
    world.hang_up();

    for error in waiting.ends().await {
        assert_eq!(error.kind(), DISABLED, "{error:?}");
        assert!(error.message.contains("the account was disabled: account=`acme`"), "{error:?}");
    }
    kept.send(text("to the other account")).await.unwrap();
    let delivered = tokio::time::timeout(HANG, deliveries.message()).await.unwrap();
    assert_eq!(delivered.unwrap().expect("a delivery").deliveries.len(), 1);
}

fn policy(id: &str, permissions: &str) -> AccessPolicy {
    AccessPolicy {
        id: id.to_owned(),
        expiry_time: Some(Timestamp { seconds: 4_000_000_000, nanos: 0 }),
        permissions: Some(permissions.to_owned()),
        ..Default::default()
    }
}

/// The queue `jobs` for the holder of a token by a policy.
fn by_policy(world: &World, id: &str) -> Queue {
    let token = token(terms_by_policy(Scope::of_queue("jobs"), id));
    world.signed_for_queue(&token, "jobs").existing_queue("jobs")
}

async fn waiting_consumers_end_when_their_policy_is_removed(world: &World) {
    let jobs = world.queue("jobs").await;
    jobs.set_policies(vec![policy("removed", "p"), policy("kept", "p")]).await.unwrap();
    let (_kept_grants, mut kept) = consume(&by_policy(world, "kept")).await;
    let removed = by_policy(world, "removed");
    let (_grants, mut stream) = consume(&removed).await;
    let revoke = async {
        begun().await;
        jobs.set_policies(vec![policy("kept", "p")]).await.unwrap();
    };

    let (received, ()) = tokio::join!(removed.wait(seconds(20)), revoke);

    for error in [end(&mut stream).await, received.unwrap_err()] {
        assert_eq!(error.kind(), NOT_AUTHENTIC, "{error:?}");
        assert!(error.message.contains("policy=`removed`"), "{error:?}");
    }
    jobs.send(text("after")).await.unwrap();
    let delivered = tokio::time::timeout(HANG, kept.message()).await.unwrap().unwrap();
    assert_eq!(texts(&delivered.expect("a delivery").deliveries), ["after"]);
}

async fn a_stream_ends_when_its_policy_grants_less(world: &World) {
    let jobs = world.queue("jobs").await;
    jobs.set_policies(vec![policy("p", "ap")]).await.unwrap();
    let (_grants, mut stream) = consume(&by_policy(world, "p")).await;
    // What is delivered shows that the stream has begun: it is rejected in other words.
    jobs.send(text("first")).await.unwrap();
    let begun = tokio::time::timeout(HANG, stream.message()).await.unwrap().unwrap();
    assert_eq!(texts(&begun.expect("a delivery").deliveries), ["first"]);

    jobs.set_policies(vec![policy("p", "a")]).await.unwrap();

    let error = end(&mut stream).await;
    assert_eq!(error.kind(), NO_PERMISSION, "{error:?}");
    assert!(error.message.contains("policy=`p`, permissions lost=`p`"), "{error:?}");
}

async fn an_idle_import_ends_when_its_policy_is_removed(world: &World) {
    let orders = world.table("orders").await;
    orders.set_policies(vec![policy("p", "a")]).await.unwrap();
    let token = token(terms_by_policy(Scope::of_table("orders", &KeyRange::default()), "p"));
    let (_requests, mut outcomes) = import(&world.signed(&token), "orders").await;

    orders.set_policies(Vec::new()).await.unwrap();

    let error = end(&mut outcomes).await;
    assert_eq!(error.kind(), NOT_AUTHENTIC, "{error:?}");
    assert!(error.message.contains("policy=`p`"), "{error:?}");
}

async fn an_idle_upload_ends_when_its_policy_is_removed(world: &World) {
    let logs = world.container("logs").await;
    let set = async |policies| {
        let container = logs.name();
        let request =
            SetContainerAccessPoliciesRequest { container, policies, ..Default::default() };
        logs.client().set_container_access_policies(request).await.unwrap();
    };
    set(vec![policy("p", "cw")]).await;
    let token = token(terms_by_policy(Scope::of_container("logs"), "p"));
    let writer = world.signed_for_blob(&token, "logs").existing_container("logs");
    let first = WriteBlobRequest {
        spec: Some(writer.spec("a")),
        data: vec![7; 1000].into(),
        ..Default::default()
    };
    let (_requests, receiver) = Requests::begin(first).await;
    let mut client = writer.client();
    let upload = tokio::time::timeout(HANG, client.write_blob(receiver));
    let revoke = async {
        begun().await;
        set(Vec::new()).await;
    };

    let (ended, ()) = tokio::join!(upload, revoke);

    let ended = ended.expect("the upload ends");
    let error = CallError::from(ended.unwrap_err());
    assert_eq!(error.kind(), NOT_AUTHENTIC, "{error:?}");
    assert!(error.message.contains("policy=`p`"), "{error:?}");
    assert_eq!(logs.get("a").await.unwrap_err().kind().0, Code::NotFound);
}
