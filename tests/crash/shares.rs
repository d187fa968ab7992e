//! An account that takes all it can of a pool leaves a part of it to another account, from the same address.

use std::{future::Future, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::header::{AUTHORIZATION, CONTENT_TYPE, TE};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::task::JoinSet;
use tonic::{
    Code, Request, Status,
    body::Body,
    client::GrpcService as _,
    transport::{Channel, Endpoint},
};
use trestle_proto::{
    blob::v1::{
        Container, CreateContainerRequest, WriteBlobRequest, WriteBlobSpec,
        blob_service_client::BlobServiceClient,
    },
    log::v1::{
        CreateStreamRequest, LogStream, TailRecordsRequest, log_service_client::LogServiceClient,
    },
    queue::v1::{
        CreateQueueRequest, Queue, ReceiveMessagesRequest, queue_service_client::QueueServiceClient,
    },
    table::v1::{ListTablesRequest, table_service_client::TableServiceClient},
};
use trestle_tests::{HANG, Server};

/// Base64 of 64 bytes.
const KEY: &str =
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==";
/// Calls at a time: 32 streams and 16 bulk transfers.
const CALLS_MAX: &str = "64";
/// More calls than any pool has slots.
const CALLS: usize = 100;
/// The longest wait of a receive, which the tests do not wait for.
const WAIT: Duration = Duration::from_secs(20);

fn start() -> Server {
    let bytes_max = (16 << 20).to_string();
    let settings = [
        ("TRESTLE__ACCOUNTS__GREEDY__KEY1", KEY),
        ("TRESTLE__ACCOUNTS__OTHER__KEY1", KEY),
        ("TRESTLE__LIMITS__CALLS_MAX", CALLS_MAX),
        ("TRESTLE__LIMITS__BODY_BYTES_MAX", &bytes_max),
    ];
    Server::start(&["--ephemeral"], &settings)
}

/// A client of an account, over a connection of its own.
#[derive(Clone)]
struct Client {
    account: &'static str,
    channel: Channel,
}

impl Client {
    fn new(server: &Server, account: &'static str) -> Self {
        let endpoint = Endpoint::from_shared(server.endpoint()).unwrap();
        Self { account, channel: endpoint.connect_lazy() }
    }

    fn credentials(&self) -> String {
        format!("Basic {}", STANDARD.encode(format!("{}:{KEY}", self.account)))
    }

    fn signed<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.credentials().parse().unwrap());
        request
    }

    /// A stream, a queue and a container, each with the name `shared`.
    async fn create(&self) {
        let name = "shared".to_owned();
        let stream = Some(LogStream { name: name.clone(), ..LogStream::default() });
        let request = self.signed(CreateStreamRequest { stream });
        LogServiceClient::new(self.channel.clone()).create_stream(request).await.unwrap();
        let queue = Some(Queue { name: name.clone(), ..Queue::default() });
        let request = self.signed(CreateQueueRequest { queue });
        QueueServiceClient::new(self.channel.clone()).create_queue(request).await.unwrap();
        let container = Some(Container { name, ..Container::default() });
        let request = self.signed(CreateContainerRequest { container });
        BlobServiceClient::new(self.channel.clone()).create_container(request).await.unwrap();
    }

    /// Follows a stream until this is dropped.
    async fn tail(self) -> Result<(), Status> {
        let request = TailRecordsRequest { stream: "shared".to_owned(), ..Default::default() };
        let request = self.signed(request);
        let mut records = LogServiceClient::new(self.channel).tail_records(request).await?;
        while records.get_mut().message().await?.is_some() {}
        Ok(())
    }

    async fn receive(self, wait: Duration) -> Result<(), Status> {
        let seconds = i64::try_from(wait.as_secs()).unwrap();
        let request = ReceiveMessagesRequest {
            queue: "shared".to_owned(),
            wait: (seconds > 0).then_some(prost_types::Duration { seconds, nanos: 0 }),
            ..Default::default()
        };
        let request = self.signed(request);
        QueueServiceClient::new(self.channel).receive_messages(request).await.map(drop)
    }

    /// Begins an upload that never ends.
    async fn upload(self) -> Result<(), Status> {
        let (container, blob) = ("shared".to_owned(), "half".to_owned());
        let spec = WriteBlobSpec { container, blob, ..Default::default() };
        let first = WriteBlobRequest { spec: Some(spec), ..Default::default() };
        let messages = stream::iter([first]).chain(stream::pending());
        let request = self.signed(messages);
        BlobServiceClient::new(self.channel).write_blob(request).await.map(drop)
    }

    /// Sends all but the last byte of a message.
    async fn incomplete(mut self) -> Result<(), Status> {
        const MESSAGE_BYTES: u32 = 1024 * 1024;
        let [a, b, c, d] = MESSAGE_BYTES.to_be_bytes();
        let message = vec![0; usize::try_from(MESSAGE_BYTES - 1).unwrap()];
        let parts = [Bytes::copy_from_slice(&[0, a, b, c, d]), message.into()];
        let parts = stream::iter(parts.map(|part| Ok::<_, Status>(Frame::data(part))));
        let body = Body::new(StreamBody::new(parts.chain(stream::pending())));
        let uri = "http://a/trestle.queue.v1.QueueService/SendMessages";
        let request = http::Request::post(uri)
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .header(AUTHORIZATION, self.credentials());
        futures::future::poll_fn(|cx| self.channel.poll_ready(cx)).await.unwrap();
        let answer = self.channel.call(request.body(body).unwrap()).await;
        let answer = answer.map_err(|error| Status::unavailable(error.to_string()))?;
        Status::from_header_map(answer.headers()).map_or(Ok(()), Err)
    }
}

/// Makes calls until one of them is rejected. Returns those that go on.
async fn exhausted<F>(call: impl Fn() -> F) -> JoinSet<Result<(), Status>>
where
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        calls.spawn(call());
    }
    let first = tokio::time::timeout(HANG, calls.join_next()).await.expect("a rejected call");
    let rejected = first.unwrap().unwrap().unwrap_err();
    assert_eq!(rejected.code(), Code::ResourceExhausted, "{rejected:?}");
    calls
}

/// Whether a call goes on while the server answers another call of the same client. Calls of another account that were
/// rejected hold their slots until they have ended, so it is tried until it does.
async fn goes_on<F>(client: &Client, call: impl Fn() -> F) -> bool
where
    F: Future<Output = Result<(), Status>>,
{
    let tried = async { while !is_served(client, call()).await {} };
    tokio::time::timeout(HANG, tried).await.is_ok()
}

async fn is_served(client: &Client, call: impl Future<Output = Result<(), Status>>) -> bool {
    let mut call = std::pin::pin!(call);
    for _ in 0..5 {
        let request = client.signed(ListTablesRequest::default());
        let mut tables = TableServiceClient::new(client.channel.clone());
        let listed = tokio::select! {
            ended = &mut call => {
                println!("{ended:?}");
                return false;
            }
            listed = tables.list_tables(request) => listed.map(drop),
        };
        match listed {
            Ok(()) => {}
            Err(rejected) if rejected.code() == Code::ResourceExhausted => return false,
            Err(error) => panic!("{error:?}"),
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_account_takes_no_pool_from_another() {
    let server = start();
    let [greedy, other] = ["greedy", "other"].map(|account| Client::new(&server, account));
    greedy.create().await;
    other.create().await;

    let held = exhausted(|| greedy.clone().tail()).await;
    assert!(goes_on(&other, || other.clone().tail()).await, "streams");
    drop(held);

    let held = exhausted(|| greedy.clone().receive(WAIT)).await;
    assert!(goes_on(&other, || other.clone().receive(WAIT)).await, "calls that may wait");
    drop(held);

    let held = exhausted(|| greedy.clone().upload()).await;
    assert!(goes_on(&other, || other.clone().upload()).await, "bulk transfers");
    drop(held);

    let held = exhausted(|| greedy.clone().incomplete()).await;
    assert!(goes_on(&other, || other.clone().incomplete()).await, "bytes of bodies");
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receive_without_a_wait_needs_no_slot_of_those_that_wait() {
    let server = start();
    let client = Client::new(&server, "greedy");
    client.create().await;
    let held = exhausted(|| client.clone().receive(WAIT)).await;

    for _ in 0..10 {
        client.clone().receive(Duration::ZERO).await.unwrap();
    }
    drop(held);
}
