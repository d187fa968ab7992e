//! The paths of the queue service: sending, a whole cycle, and the wait of a consumer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use prost::Message as _;
use tempfile::TempDir;
use trestle_proto::queue::v1::{
    self as proto, OutgoingMessage, ReceiptRef, outgoing_message::Body,
    queue_service_client::QueueServiceClient,
};

use crate::{
    Plan,
    drive::{Connections, Done, drive},
    paths::{CLIENTS, payload},
    raw::RawEngine,
    report::{self, Side},
    server::Process,
};

pub(crate) const QUEUE: &str = "bench";
pub(crate) const SEND: &str = "/trestle.queue.v1.QueueService/SendMessages";
pub(crate) const RECEIVE: &str = "/trestle.queue.v1.QueueService/ReceiveMessages";
pub(crate) const DELETE: &str = "/trestle.queue.v1.QueueService/DeleteMessages";
/// Deliveries whose wait is measured.
const WAITS: usize = 500;

/// A server with one queue.
struct Bench {
    server: Process,
    connections: Connections,
    _data: TempDir,
}

impl Bench {
    async fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let args = ["--data-dir", data.path().to_str().unwrap()];
        let server = Process::start(&mut Process::trestle(&args));
        let connections = Connections::open(&server.endpoint()).await;
        let queue = proto::Queue { name: QUEUE.to_owned(), ..Default::default() };
        let request = proto::CreateQueueRequest { queue: Some(queue) };
        QueueServiceClient::new(connections.pick(0)).create_queue(request).await.unwrap();
        Self { server, connections, _data: data }
    }
}

fn send_message() -> Bytes {
    let body = Some(Body::Text(payload().to_owned()));
    let messages = vec![OutgoingMessage { body, ..Default::default() }];
    let request =
        proto::SendMessagesRequest { queue: QUEUE.to_owned(), messages, ..Default::default() };
    request.encode_to_vec().into()
}

fn receive_message(wait: Option<i64>) -> Bytes {
    let wait = wait.map(|seconds| prost_types::Duration { seconds, nanos: 0 });
    let queue = QUEUE.to_owned();
    proto::ReceiveMessagesRequest { queue, wait, ..Default::default() }.encode_to_vec().into()
}

/// Deletes what an answer to a receive delivered; none if it delivered nothing.
fn delete_message(received: Bytes) -> Option<Bytes> {
    let delivery = proto::ReceiveMessagesResponse::decode(received).unwrap().deliveries.pop()?;
    let message_id = delivery.message.unwrap().message_id;
    let receipts = vec![ReceiptRef { message_id, pop_receipt: delivery.pop_receipt }];
    let request = proto::DeleteMessagesRequest { queue: QUEUE.to_owned(), receipts };
    Some(request.encode_to_vec().into())
}

/// Sends beside raw commits of one row of the same size.
pub(crate) async fn send(plan: Plan) {
    let bench = Bench::start().await;
    let directory = tempfile::tempdir().unwrap();
    let mut raw = RawEngine::start(directory.path(), |_| {});
    let (mut measured, mut ceiling) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let (connections, message) = (bench.connections.clone(), send_message());
        let before = bench.server.cpu_us();
        let done = drive(CLIENTS, plan.turn, move |number| {
            let (connections, message) = (connections.clone(), message.clone());
            async move {
                connections.call(number, SEND, message).await.unwrap();
                1
            }
        });
        let done = done.await;
        measured.add(done, bench.server.cpu_us() - before);
        let (done, cpu) = raw.commit(CLIENTS, 1, plan.turn);
        ceiling.add(done, cpu);
    }
    report::compared("queue send 1 KiB / raw group commit", &measured, &ceiling, 0.5);
}

/// Send, receive and delete beside raw commits of the same shape, three each.
pub(crate) async fn cycle(plan: Plan) {
    let bench = Bench::start().await;
    let directory = tempfile::tempdir().unwrap();
    let mut raw = RawEngine::start(directory.path(), |_| {});
    let (mut measured, mut ceiling) = (Side::default(), Side::default());
    for _ in 0..plan.rounds {
        let before = bench.server.cpu_us();
        let done = cycles(&bench.connections, plan.turn).await;
        measured.add(done, bench.server.cpu_us() - before);
        let (done, cpu) = raw.commit(CLIENTS, 0, plan.turn);
        ceiling.add(done, cpu);
    }
    report::compared("queue send+receive+delete / raw cycle", &measured, &ceiling, 0.5);
}

async fn cycles(connections: &Connections, time: Duration) -> Done {
    let (connections, sent) = (connections.clone(), send_message());
    let received = receive_message(None);
    drive(CLIENTS, time, move |number| {
        let (connections, sent) = (connections.clone(), sent.clone());
        let received = received.clone();
        async move {
            connections.call(number, SEND, sent).await.unwrap();
            let answer = connections.call(number, RECEIVE, received).await.unwrap();
            let Some(delete) = delete_message(answer) else { return 0 };
            connections.call(number, DELETE, delete).await.unwrap();
            1
        }
    })
    .await
}

/// From the start of a send to its delivery to a waiting consumer, one at a time.
pub(crate) async fn wait(_: Plan) {
    let bench = Bench::start().await;
    let connections = Arc::new(bench.connections.clone());
    let mut waits = Vec::with_capacity(WAITS);
    for number in 0..WAITS as u64 {
        let consumer = Arc::clone(&connections);
        let delivery = tokio::spawn(async move {
            let answer = consumer.call(number, RECEIVE, receive_message(Some(20))).await.unwrap();
            (Instant::now(), answer)
        });
        // Until it waits.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let began = Instant::now();
        connections.call(number + 1, SEND, send_message()).await.unwrap();
        let (delivered, answer) = delivery.await.unwrap();
        waits.push(delivered.duration_since(began).as_secs_f64() * 1000.0);
        connections.call(number, DELETE, delete_message(answer).unwrap()).await.unwrap();
    }
    waits.sort_by(f64::total_cmp);
    let at = |share: usize| waits.get(waits.len() * share / 100).copied().unwrap_or(f64::NAN);
    report::figure("long poll, send to delivery, p50", at(50), 2.0, true, "ms");
    report::figure("long poll, send to delivery, p99", at(99), 20.0, true, "ms");
}
