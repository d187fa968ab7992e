//! The most memory of a server while every kind of write runs at once.

use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;
use trestle_proto::{
    queue::v1::{self as queue, OutgoingMessage, queue_service_client::QueueServiceClient},
    table::v1::{self as proto, Entity, Property, Value, value::Kind},
};

use crate::{
    Plan,
    drive::drive,
    paths::{self, BATCH, BATCH_CLIENTS, Bench, INSERT, TABLE},
    queue::{QUEUE, SEND},
    report,
};

/// Longer than memtables take to fill and be flushed several times; leaks and backlogs show later.
const LASTS: Duration = Duration::from_secs(60);
const SAMPLE_EVERY: Duration = Duration::from_millis(50);
/// Clients of each kind of large value.
const LARGE_CLIENTS: usize = 8;
/// `storage.cache_bytes` by default, and what a server may have beside it, in MiB.
const BUDGET_MIB: f64 = 128.0 + 256.0;

/// Batches of small entities, inserts of large entities and sends of large messages, for a minute.
pub(crate) async fn memory(_: Plan) {
    let bench = Bench::start(|_| true).await.unwrap();
    let queue = queue::Queue { name: QUEUE.to_owned(), ..Default::default() };
    let request = queue::CreateQueueRequest { queue: Some(queue) };
    QueueServiceClient::new(bench.connections.pick(0)).create_queue(request).await.unwrap();
    let load = |clients, path, message: fn(u64) -> Bytes| {
        let connections = bench.connections.clone();
        drive(clients, LASTS, move |number| {
            let connections = connections.clone();
            // An overloaded server rejects some calls, which is how it bounds its memory.
            async move { u64::from(connections.unary(number, path, message(number)).await.is_ok()) }
        })
    };
    let sample = async {
        let started = Instant::now();
        let mut peak = 0.0_f64;
        while started.elapsed() < LASTS {
            peak = peak.max(bench.server.resident_mib());
            tokio::time::sleep(SAMPLE_EVERY).await;
        }
        peak
    };
    let (batches, inserts, sends, peak) = tokio::join!(
        load(BATCH_CLIENTS, BATCH, paths::batch_message),
        load(LARGE_CLIENTS, INSERT, large_entity),
        load(LARGE_CLIENTS, SEND, large_messages),
        sample,
    );
    for (name, done) in [("batches", batches), ("large entities", inserts), ("sends", sends)] {
        assert!(done.operations > 0, "no {name} were written");
    }
    report::figure("most memory under mixed writes", peak, BUDGET_MIB, true, "MiB");
}

/// An entity of 900 KiB by the count of the service, two bytes a character, and half of that on the wire.
fn large_entity(number: u64) -> Bytes {
    let text = paths::payload().repeat(30);
    let properties = (0..15).map(|index| {
        let value = Some(Value { kind: Some(Kind::StringValue(text.clone())) });
        Property { name: format!("payload{index}"), value }
    });
    let entity = Entity {
        partition_key: "large".to_owned(),
        row_key: format!("{number:012}"),
        properties: properties.collect(),
        ..Default::default()
    };
    let table = TABLE.to_owned();
    proto::InsertEntityRequest { table, entity: Some(entity) }.encode_to_vec().into()
}

/// Eight messages of 45 KiB.
fn large_messages(_: u64) -> Bytes {
    let text = paths::payload().repeat(45);
    let message = OutgoingMessage {
        body: Some(queue::outgoing_message::Body::Text(text)),
        ..Default::default()
    };
    let messages = vec![message; 8];
    let queue = QUEUE.to_owned();
    queue::SendMessagesRequest { queue, messages, ..Default::default() }.encode_to_vec().into()
}
