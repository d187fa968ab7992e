//! The operations of a bench: their requests, and one caller's loop over them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use prost::Message as _;
use tokio::{sync::mpsc, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming};
use trestle_proto::table::v1::{
    BatchInsert, BatchOperation, Entity, ExecuteBatchRequest, GetEntityRequest, ImportChunk,
    ImportEntitiesRequest, ImportEntitiesResponse, ImportSpec, InsertEntityRequest, Property,
    QueryEntitiesRequest, QueryEntitiesResponse, StreamEntitiesRequest, StreamEntitiesResponse,
    UpsertEntityRequest, Value, WriteMode, batch_operation::Operation,
    import_entities_request::Message, value::Kind,
};

use super::{
    BenchOp, BenchTally, TableBenchArgs,
    template::{PARTITION, ROW, Template},
};
use crate::raw::{RawClient, RpcMethod};

/// Entities of a batch, of a page and of an imported chunk.
const GROUP: usize = 100;
/// Rows of one caller begin at a multiple of this, so that callers use disjoint keys.
const ROWS_A_CALLER: u64 = 100_000_000_000;
/// A caller whose call failed waits, so that a dead server is not called in a busy loop.
const WAIT_AFTER_ERROR: Duration = Duration::from_millis(10);

/// The requests of a bench.
#[derive(Clone)]
pub(super) struct BenchLoad {
    op: BenchOp,
    template: Arc<Template>,
    /// Fills the table.
    chunk: Arc<Template>,
    spec: Bytes,
    partitions: u64,
    entities: u64,
}

impl BenchLoad {
    pub(super) fn new(args: &TableBenchArgs, table: &str) -> Self {
        let size = usize::try_from(args.entity_bytes).unwrap_or_default();
        let chunk = Template::new(&chunk(size));
        let table = table.to_owned();
        let entity = || Some(entity(size));
        let template = match args.op {
            BenchOp::Get => Template::new(&GetEntityRequest {
                table: table.clone(),
                partition_key: PARTITION.to_owned(),
                row_key: ROW.to_owned(),
                select: None,
            }),
            BenchOp::Insert => {
                Template::new(&InsertEntityRequest { table: table.clone(), entity: entity() })
            }
            BenchOp::Upsert | BenchOp::MergeHot => {
                let merge = args.op == BenchOp::MergeHot;
                let mode = if merge { WriteMode::Merge } else { WriteMode::Replace }.into();
                let table = table.clone();
                Template::new(&UpsertEntityRequest { table, entity: entity(), mode })
            }
            BenchOp::Batch => Template::new(&batch(&table, GROUP, size)),
            BenchOp::Query => Template::new(&QueryEntitiesRequest {
                table: table.clone(),
                filter: format!("PartitionKey eq '{PARTITION}' and RowKey ge '{ROW}'"),
                page_size: i32::try_from(GROUP).ok(),
                ..QueryEntitiesRequest::default()
            }),
            BenchOp::Stream => Template::new(&StreamEntitiesRequest {
                table: table.clone(),
                ..StreamEntitiesRequest::default()
            }),
            BenchOp::Import => chunk.clone(),
        };
        let spec = Message::Spec(ImportSpec { table, mode: Some(WriteMode::Replace.into()) });
        let spec = ImportEntitiesRequest { message: Some(spec) }.encode_to_vec().into();
        Self {
            op: args.op,
            template: Arc::new(template),
            chunk: Arc::new(chunk),
            spec,
            partitions: u64::from(args.partitions),
            entities: u64::from(args.entities),
        }
    }

    /// Whether the operation reads.
    pub(super) fn needs_entities(&self) -> bool {
        matches!(self.op, BenchOp::Get | BenchOp::Query | BenchOp::Stream)
    }

    /// Fills the table: groups of rows go round the partitions, at least one group each.
    pub(super) async fn fill(&self, client: &mut RawClient) -> Result<(), Status> {
        let (sender, mut answers) = self.import(client).await?;
        for group in 0..self.groups() {
            let partition = group.checked_rem(self.partitions).unwrap_or_default();
            let request = self.chunk.fill(partition, group.saturating_mul(GROUP as u64));
            send_chunk(&sender, &mut answers, request).await?;
        }
        Ok(())
    }

    fn groups(&self) -> u64 {
        self.entities.div_ceil(GROUP as u64).max(self.partitions)
    }

    async fn import(
        &self,
        client: &mut RawClient,
    ) -> Result<(mpsc::Sender<Bytes>, Streaming<Bytes>), Status> {
        let (sender, requests) = mpsc::channel(2);
        let closed = |_| Status::unavailable("stream is closed");
        sender.send(self.spec.clone()).await.map_err(closed)?;
        let requests = ReceiverStream::new(requests);
        let answers = client.both_stream(RpcMethod::IMPORT_ENTITIES, requests).await?;
        Ok((sender, answers))
    }
}

/// Sends a chunk and waits for its answer; the number of entities written.
async fn send_chunk(
    sender: &mpsc::Sender<Bytes>,
    answers: &mut Streaming<Bytes>,
    request: Bytes,
) -> Result<usize, Status> {
    // The responses of a closed stream contain the error.
    let _ = sender.send(request).await;
    let answer = answers.message().await?;
    let answer = answer.ok_or_else(|| Status::unavailable("stream ended early"))?;
    let answer = ImportEntitiesResponse::decode(answer).map_err(|error| malformed(&error))?;
    match answer.results.iter().find_map(|result| result.error.as_ref()) {
        Some(error) => Err(Status::new(Code::from(error.code), error.message.clone())),
        None => Ok(answer.results.len()),
    }
}

/// One caller.
pub(super) struct Worker {
    pub(super) load: BenchLoad,
    pub(super) number: u32,
    pub(super) measured_from: Instant,
    pub(super) end: Instant,
}

impl Worker {
    /// Calls until the end; what began and ended within the measured time is counted.
    pub(super) async fn run(self, mut client: RawClient, tally: &mut BenchTally) {
        let mut random = fastrand::Rng::with_seed(u64::from(self.number));
        let mut row = u64::from(self.number).saturating_mul(ROWS_A_CALLER);
        let mut import = None;
        let mut began = Instant::now();
        while began < self.end {
            let measured = began >= self.measured_from;
            let result = match self.load.op {
                BenchOp::Stream => self.stream(&mut client, tally).await.map(|()| 0),
                BenchOp::Import => self.import(&mut client, &mut import, row).await,
                _ => self.unary(&mut client, &mut random, row).await,
            };
            row = row.saturating_add(GROUP as u64);
            let ended = Instant::now();
            match result {
                Ok(entities) if measured && ended <= self.end => {
                    tally.call(ended.duration_since(began));
                    tally.entities(entities);
                }
                Ok(_) => {}
                Err(status) => {
                    tally.error(status.code());
                    import = None;
                    tokio::time::sleep(WAIT_AFTER_ERROR).await;
                }
            }
            began = Instant::now();
        }
    }

    async fn unary(
        &self,
        client: &mut RawClient,
        random: &mut fastrand::Rng,
        row: u64,
    ) -> Result<usize, Status> {
        let load = &self.load;
        let (method, partition, row) = match load.op {
            BenchOp::Insert => (RpcMethod::INSERT_ENTITY, random.u64(..load.partitions), row),
            BenchOp::Upsert => {
                let row = random.u64(..load.entities);
                (RpcMethod::UPSERT_ENTITY, random.u64(..load.partitions), row)
            }
            BenchOp::MergeHot => (RpcMethod::UPSERT_ENTITY, 0, 0),
            BenchOp::Batch => (RpcMethod::EXECUTE_BATCH, random.u64(..load.partitions), row),
            BenchOp::Query => {
                let group = random.u64(..load.groups());
                let partition = group.checked_rem(load.partitions).unwrap_or_default();
                (RpcMethod::QUERY_ENTITIES, partition, group.saturating_mul(GROUP as u64))
            }
            _ => {
                let row = random.u64(..load.groups().saturating_mul(GROUP as u64));
                let group = row / (GROUP as u64);
                let partition = group.checked_rem(load.partitions).unwrap_or_default();
                (RpcMethod::GET_ENTITY, partition, row)
            }
        };
        let request = Request::new(load.template.fill(partition, row));
        let answer = client.unary(method, request).await?;
        match load.op {
            BenchOp::Query => {
                let page =
                    QueryEntitiesResponse::decode(answer).map_err(|error| malformed(&error))?;
                Ok(page.entities.len())
            }
            BenchOp::Batch => Ok(GROUP),
            _ => Ok(1),
        }
    }

    /// Reads the whole table; entities are counted as they come, as one stream may outlast the
    /// bench.
    async fn stream(&self, client: &mut RawClient, tally: &mut BenchTally) -> Result<(), Status> {
        let request = self.load.template.fill(0, 0);
        let mut answers = client.server_stream(RpcMethod::STREAM_ENTITIES, request).await?;
        while let Some(answer) = answers.message().await? {
            let message =
                StreamEntitiesResponse::decode(answer).map_err(|error| malformed(&error))?;
            let now = Instant::now();
            if now >= self.end {
                return Ok(());
            }
            if now >= self.measured_from {
                tally.entities(message.entities.len());
            }
        }
        Ok(())
    }

    async fn import(
        &self,
        client: &mut RawClient,
        open: &mut Option<(mpsc::Sender<Bytes>, Streaming<Bytes>)>,
        row: u64,
    ) -> Result<usize, Status> {
        if open.is_none() {
            *open = Some(self.load.import(client).await?);
        }
        let Some((sender, answers)) = open.as_mut() else {
            return Err(Status::internal("stream was not opened"));
        };
        let partition = u64::from(self.number).checked_rem(self.load.partitions);
        let request = self.load.template.fill(partition.unwrap_or_default(), row);
        send_chunk(sender, answers, request).await
    }
}

fn malformed(error: &prost::DecodeError) -> Status {
    Status::internal(error.to_string())
}

fn entity(size: usize) -> Entity {
    let value = Some(Value { kind: Some(Kind::BinaryValue(vec![0xda; size].into())) });
    Entity {
        partition_key: PARTITION.to_owned(),
        row_key: ROW.to_owned(),
        properties: vec![Property { name: "data".to_owned(), value }],
        ..Entity::default()
    }
}

fn chunk(size: usize) -> ImportEntitiesRequest {
    let entities = vec![entity(size); GROUP];
    ImportEntitiesRequest { message: Some(Message::Chunk(ImportChunk { entities })) }
}

/// A batch of inserts.
pub(super) fn batch(table: &str, count: usize, size: usize) -> ExecuteBatchRequest {
    let insert = Operation::Insert(BatchInsert { entity: Some(entity(size)) });
    let operations = vec![BatchOperation { operation: Some(insert) }; count];
    ExecuteBatchRequest { table: table.to_owned(), operations }
}
