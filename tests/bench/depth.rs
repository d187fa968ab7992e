//! The cost of a deep queue, after many deletes, and after a restart: it must not grow with the
//! number of waiting or deleted messages.
//!
//! `BENCH_DEPTH` is the greatest depth, default 1,000,000.

use std::{path::Path, time::Instant};

use bytes::Bytes;
use prost::Message as _;
use trestle_proto::queue::v1::{
    self as proto, OutgoingMessage, ReceiptRef, outgoing_message::Body,
    queue_service_client::QueueServiceClient,
};

use crate::{
    Plan,
    drive::Connections,
    queue::{DELETE, QUEUE, RECEIVE, SEND},
    report,
    server::Process,
};

/// Messages of one call, both ways.
const BATCH: u64 = 32;
/// Callers at a time.
const CALLERS: u64 = 32;
/// Receives that are measured at each depth.
const MEASURED: u64 = 2_000;
/// Messages of a shallow queue.
const FEW: u64 = 10_000;

/// A server on a directory, with connections to it.
struct Bench {
    server: Process,
    connections: Connections,
}

impl Bench {
    async fn start(data: &Path) -> Self {
        let server = Process::start(&mut Process::trestle(&["--data-dir", data.to_str().unwrap()]));
        let connections = Connections::open(&server.endpoint()).await;
        Self { server, connections }
    }

    /// Calls `times` times, by some callers at a time.
    async fn calls(&self, times: u64, call: impl AsyncFn(Connections, u64) + Copy) {
        let callers = (0..CALLERS).map(|caller| async move {
            for number in (caller..times).step_by(size(CALLERS)) {
                call(self.connections.clone(), number).await;
            }
        });
        futures::future::join_all(callers).await;
    }

    async fn send(&self, messages: u64) {
        let body = Some(Body::Text("x".repeat(100)));
        let message = OutgoingMessage { body, ..Default::default() };
        let messages_each = vec![message; size(BATCH)];
        let request = proto::SendMessagesRequest {
            queue: QUEUE.to_owned(),
            messages: messages_each,
            ..Default::default()
        };
        let request = &Bytes::from(request.encode_to_vec());
        self.calls(messages.div_ceil(BATCH), async |connections, number| {
            connections.call(number, SEND, request.clone()).await.unwrap();
        })
        .await;
    }

    /// Receives and deletes.
    async fn consume(&self, messages: u64) {
        let receive = &receive_message(u32::try_from(BATCH).unwrap(), 60);
        self.calls(messages.div_ceil(BATCH), async |connections, number| {
            let received = connections.call(number, RECEIVE, receive.clone()).await.unwrap();
            let received = proto::ReceiveMessagesResponse::decode(received).unwrap();
            let receipts = received.deliveries.into_iter().map(|delivery| ReceiptRef {
                message_id: delivery.message.unwrap().message_id,
                pop_receipt: delivery.pop_receipt,
            });
            let receipts: Vec<_> = receipts.collect();
            assert!(!receipts.is_empty(), "messages wait");
            let request = proto::DeleteMessagesRequest { queue: QUEUE.to_owned(), receipts };
            let request = request.encode_to_vec().into();
            connections.call(number, DELETE, request).await.unwrap();
        })
        .await;
    }

    /// Processor time of the server for a receive of one message, in microseconds.
    async fn receive_us(&self) -> f64 {
        // For a day: received messages must not be redelivered.
        let receive = &receive_message(1, 86_400);
        let before = self.server.cpu_us();
        self.calls(MEASURED, async |connections, number| {
            let received = connections.call(number, RECEIVE, receive.clone()).await.unwrap();
            let received = proto::ReceiveMessagesResponse::decode(received).unwrap();
            assert_eq!(received.deliveries.len(), 1);
        })
        .await;
        (self.server.cpu_us() - before) / MEASURED as f64
    }

    /// How long the count of messages takes, in milliseconds, and what it is.
    async fn count_ms(&self) -> (f64, u64) {
        let began = Instant::now();
        let request = proto::GetQueueRequest { queue: QUEUE.to_owned() };
        let queue = QueueServiceClient::new(self.connections.pick(0)).get_queue(request).await;
        let stats = queue.unwrap().into_inner().stats.unwrap();
        (began.elapsed().as_secs_f64() * 1000.0, stats.approximate_message_count)
    }
}

fn receive_message(max: u32, visibility_seconds: i64) -> Bytes {
    let visibility = prost_types::Duration { seconds: visibility_seconds, nanos: 0 };
    let request = proto::ReceiveMessagesRequest {
        queue: QUEUE.to_owned(),
        max_messages: Some(max),
        visibility_timeout: Some(visibility),
        ..Default::default()
    };
    request.encode_to_vec().into()
}

/// Fills a queue, measures at some depths, empties it, and restarts the server.
pub(crate) async fn depth(_: Plan) {
    let deepest = std::env::var("BENCH_DEPTH").ok().and_then(|text| text.parse().ok());
    let deepest: u64 = deepest.unwrap_or(1_000_000);
    let data = tempfile::tempdir().unwrap();
    let bench = Bench::start(data.path()).await;
    let queue = proto::Queue { name: QUEUE.to_owned(), ..Default::default() };
    let request = proto::CreateQueueRequest { queue: Some(queue) };
    QueueServiceClient::new(bench.connections.pick(0)).create_queue(request).await.unwrap();

    let (mut waiting, mut first) = (0, f64::NAN);
    for depth in [FEW, 100_000.min(deepest), deepest] {
        bench.send(depth.saturating_sub(waiting)).await;
        waiting = depth.max(waiting) - MEASURED;
        let cost = bench.receive_us().await;
        first = if first.is_nan() { cost } else { first };
        let name = format!("server CPU a receive, {depth} waiting");
        report::figure(&name, cost, 2.0 * first, true, "us");
    }
    let (ms, count) = bench.count_ms().await;
    report::figure(&format!("count of a queue of {count}"), ms, 20.0, true, "ms");

    // All but what was received for a day, and a few.
    let consumed = waiting - FEW;
    bench.consume(consumed).await;
    let cost = bench.receive_us().await;
    let name = format!("server CPU a receive, {consumed} consumed");
    report::figure(&name, cost, 2.0 * first, true, "us");

    drop(bench);
    let bench = Bench::start(data.path()).await;
    let start_ms = bench.server.start_ms;
    report::figure("start after a kill", start_ms, 3_000.0, true, "ms");
    let began = Instant::now();
    let receive = receive_message(1, 86_400);
    let received = bench.connections.call(0, RECEIVE, receive).await.unwrap();
    let took = began.elapsed().as_secs_f64() * 1000.0;
    let received = proto::ReceiveMessagesResponse::decode(received).unwrap();
    assert_eq!(received.deliveries.len(), 1);
    report::figure("first receive after it", took, 50.0, true, "ms");
    let cost = bench.receive_us().await;
    report::figure("server CPU a receive after it", cost, 2.0 * first, true, "us");
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap()
}
