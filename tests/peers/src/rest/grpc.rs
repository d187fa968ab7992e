//! The same calls over gRPC, as encoded messages: the load costs as little as over REST.

use std::time::{Duration, Instant};

use bytes::Bytes;
use prost::Message as _;
use tonic::{
    Request,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use trestle_proto::{
    RawCodec,
    queue::v1::{OutgoingMessage, SendMessagesRequest, outgoing_message::Body},
    table::v1::{
        BatchInsert, BatchOperation, Entity, ExecuteBatchRequest, GetEntityRequest,
        InsertEntityRequest, Property, QueryEntitiesRequest, Value, batch_operation, value::Kind,
    },
};

use super::{
    CONNECTIONS, Done, Numbers,
    calls::{BATCH_ROWS, GROWN, Operation, PARTITIONS, QUEUE, ROWS, batched, grown, row},
    sides::Side,
};
use crate::load;

/// Connections that the callers share, as clients of gRPC do.
const CHANNELS: usize = 4;

/// Connections of gRPC.
#[derive(Clone)]
pub(super) struct Channels(Vec<Channel>);

impl Channels {
    pub(super) async fn open(side: &Side) -> Self {
        let port = side.grpc_port.expect("trestle has gRPC");
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
        let endpoint = endpoint.expect("an address").tcp_nodelay(true);
        let endpoint = endpoint.initial_stream_window_size(1 << 20);
        let endpoint = endpoint.initial_connection_window_size(4 << 20);
        let mut channels = Vec::new();
        for _ in 0..CHANNELS {
            channels.push(endpoint.connect().await.expect("a connection"));
        }
        Self(channels)
    }
}

/// One turn of an operation, with as many callers as there are connections of REST.
pub(super) async fn turn(
    side: &Side,
    channels: &Channels,
    operation: Operation,
    time: Duration,
) -> Done {
    let calls = (0..CONNECTIONS).map(|index| {
        let channel = channels.0[index % channels.0.len()].clone();
        let numbers = side.numbers.clone();
        async move {
            let (mut units, began) = (0, Instant::now());
            while began.elapsed() < time {
                let (path, message, more) = message(operation, &numbers);
                let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(16 << 20);
                grpc.ready().await.expect("a connection");
                let path = http::uri::PathAndQuery::from_static(path);
                let answer = grpc.unary(Request::new(message), path, RawCodec).await;
                let _: Bytes = answer.expect("an answer").into_inner();
                units += more;
            }
            units
        }
    });
    side.measure(calls).await
}

fn entity((partition_key, row_key): (String, String)) -> Entity {
    let value = Some(Value { kind: Some(Kind::StringValue(load::payload().to_owned())) });
    let properties = vec![Property { name: "payload".to_owned(), value }];
    Entity { partition_key, row_key, properties, ..Default::default() }
}

/// The method, its message, and its number of units.
fn message(operation: Operation, numbers: &Numbers) -> (&'static str, Bytes, u64) {
    let encoded = |message: Vec<u8>| Bytes::from(message);
    match operation {
        Operation::Get => {
            let (partition_key, row_key) = row(numbers.other());
            let table = ROWS.to_owned();
            let request = GetEntityRequest { table, partition_key, row_key, select: None };
            ("/trestle.table.v1.TableService/GetEntity", encoded(request.encode_to_vec()), 1)
        }
        Operation::Insert => {
            let entity = Some(entity(grown(numbers.insert())));
            let request = InsertEntityRequest { table: GROWN.to_owned(), entity };
            ("/trestle.table.v1.TableService/InsertEntity", encoded(request.encode_to_vec()), 1)
        }
        Operation::PageOf100 | Operation::PageOf1000 => {
            let request = QueryEntitiesRequest {
                table: ROWS.to_owned(),
                filter: format!("PartitionKey eq 'p{}'", numbers.other() % PARTITIONS),
                page_size: (operation == Operation::PageOf100).then_some(100),
                ..Default::default()
            };
            ("/trestle.table.v1.TableService/QueryEntities", encoded(request.encode_to_vec()), 1)
        }
        Operation::Batch => {
            let number = numbers.other();
            let operations = (0..BATCH_ROWS).map(|row| {
                let entity = Some(entity(batched(number, row)));
                let insert = BatchInsert { entity };
                BatchOperation { operation: Some(batch_operation::Operation::Insert(insert)) }
            });
            let operations = operations.collect();
            let request = ExecuteBatchRequest { table: GROWN.to_owned(), operations };
            let message = encoded(request.encode_to_vec());
            ("/trestle.table.v1.TableService/ExecuteBatch", message, BATCH_ROWS)
        }
        Operation::QueueSend => {
            let body = Some(Body::Text(load::payload().to_owned()));
            let messages = vec![OutgoingMessage { body, ..OutgoingMessage::default() }];
            let queue = QUEUE.to_owned();
            let request = SendMessagesRequest { queue, messages, ..Default::default() };
            ("/trestle.queue.v1.QueueService/SendMessages", encoded(request.encode_to_vec()), 1)
        }
        _ => unreachable!("{} is not compared with gRPC", operation.name()),
    }
}
