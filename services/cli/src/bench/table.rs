//! `bench table`: the operations, their requests, and one caller's loop over them.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::{sync::mpsc, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use trestle_command::{
    client::{Session, TableClient},
    errors::CliError,
    flags::ClientArgs,
    interrupt::Interrupts,
};
use trestle_proto::table::v1::{
    BatchInsert, BatchOperation, CreateTableRequest, DeleteTableRequest, Entity,
    ExecuteBatchRequest, GetEntityRequest, ImportChunk, ImportEntitiesRequest,
    ImportEntitiesResponse, ImportSpec, InsertEntityRequest, Property, QueryEntitiesRequest,
    StreamEntitiesRequest, Table, UpsertEntityRequest, Value, WriteMode,
    batch_operation::Operation, import_entities_request::Message, value::Kind,
};

use super::{BenchOp, BenchTally, CompletedBench, MeasuredTime, TableBenchArgs, measure, op_name};

/// Entities of a batch, of a page and of an imported chunk.
const GROUP: u64 = 100;
/// Rows of one caller begin at a multiple of this, so that callers use disjoint keys.
const ROWS_A_CALLER: u64 = 100_000_000_000;
/// A caller whose call failed waits, so that a dead server is not called in a busy loop.
const WAIT_AFTER_ERROR: Duration = Duration::from_millis(10);

/// Runs the bench in a table of this name; its arguments and the measurements.
pub(super) async fn run(
    args: &TableBenchArgs,
    client: &ClientArgs,
    session: &Session,
    name: String,
) -> Result<CompletedBench, CliError> {
    let mut interrupts = Interrupts::listen()?;
    let table = Some(Table { name: name.clone(), ..Table::default() });
    session.table().create_table(CreateTableRequest { table }).await?;
    let measured = interrupts.unless_pressed(async {
        let load = BenchLoad::new(args, &name);
        if load.needs_entities() {
            load.fill(&mut session.table()).await?;
        }
        let caller = |session: Session, number, span| {
            Worker { load: load.clone(), client: session.table(), number, span }.run()
        };
        measure(&args.load, client, caller).await
    });
    let measured = measured.await;
    let removed = session.table().delete_table(DeleteTableRequest { table: name.clone() }).await;
    let record = json!({
        "op": op_name(&args.op), "entity_bytes": args.entity_bytes, "partitions": args.partitions,
    });
    CompletedBench::new(record, measured, removed, &format!("table `{name}`"), client)
}

/// The requests of a bench.
#[derive(Clone)]
struct BenchLoad {
    op: BenchOp,
    table: String,
    /// The one property of each entity.
    data: Bytes,
    partitions: u64,
    entities: u64,
}

impl BenchLoad {
    fn new(args: &TableBenchArgs, table: &str) -> Self {
        let size = usize::try_from(args.entity_bytes).unwrap_or_default();
        Self {
            op: args.op,
            table: table.to_owned(),
            data: vec![0xda; size].into(),
            partitions: args.partitions.into(),
            entities: args.entities.into(),
        }
    }

    /// Whether the operation reads.
    fn needs_entities(&self) -> bool {
        matches!(self.op, BenchOp::Get | BenchOp::Query | BenchOp::Stream)
    }

    /// Fills the table: groups of rows go round the partitions, at least one group each.
    async fn fill(&self, client: &mut TableClient) -> Result<(), Status> {
        let mut import = ImportStream::open(self, client).await?;
        for group in 0..self.groups() {
            import.send(self.group(self.partition_of(group), group * GROUP)).await?;
        }
        Ok(())
    }

    fn groups(&self) -> u64 {
        self.entities.div_ceil(GROUP).max(self.partitions)
    }

    fn partition_of(&self, group: u64) -> u64 {
        group.checked_rem(self.partitions).unwrap_or_default()
    }

    fn entity(&self, partition: u64, row: u64) -> Entity {
        let value = Some(Value { kind: Some(Kind::BinaryValue(self.data.clone())) });
        let (partition_key, row_key) = keys(partition, row);
        let properties = vec![Property { name: "data".to_owned(), value }];
        Entity { partition_key, row_key, properties, ..Entity::default() }
    }

    /// Entities of one partition whose rows count up.
    fn group(&self, partition: u64, row: u64) -> Vec<Entity> {
        (row..row + GROUP).map(|row| self.entity(partition, row)).collect()
    }
}

/// Keys of constant length, so that every entity of a bench has the same size.
fn keys(partition: u64, row: u64) -> (String, String) {
    (format!("{partition:08}"), format!("{row:016}"))
}

/// An import in progress.
struct ImportStream {
    requests: mpsc::Sender<ImportEntitiesRequest>,
    answers: Streaming<ImportEntitiesResponse>,
}

impl ImportStream {
    async fn open(load: &BenchLoad, client: &mut TableClient) -> Result<Self, Status> {
        let (sender, requests) = mpsc::channel(2);
        let mode = Some(WriteMode::Replace.into());
        let spec = Message::Spec(ImportSpec { table: load.table.clone(), mode });
        // The channel has room for it.
        let _ = sender.send(ImportEntitiesRequest { message: Some(spec) }).await;
        let answers = client.import_entities(ReceiverStream::new(requests)).await?.into_inner();
        Ok(Self { requests: sender, answers })
    }

    /// Sends a chunk and waits for its answer; the number of entities written.
    async fn send(&mut self, entities: Vec<Entity>) -> Result<usize, Status> {
        let message = Some(Message::Chunk(ImportChunk { entities }));
        // The responses of a closed stream contain the error.
        let _ = self.requests.send(ImportEntitiesRequest { message }).await;
        let answer = self.answers.message().await?;
        let answer = answer.ok_or_else(|| Status::unavailable("stream ended early"))?;
        match answer.results.iter().find_map(|result| result.error.as_ref()) {
            Some(error) => Err(Status::new(Code::from(error.code), error.message.clone())),
            None => Ok(answer.results.len()),
        }
    }
}

/// One caller.
struct Worker {
    load: BenchLoad,
    client: TableClient,
    number: u32,
    span: MeasuredTime,
}

impl Worker {
    /// Calls until the end; what began and ended within the measured time is counted.
    async fn run(mut self) -> BenchTally {
        let mut tally = BenchTally::new();
        let mut random = fastrand::Rng::with_seed(self.number.into());
        let mut row = u64::from(self.number) * ROWS_A_CALLER;
        let mut import = None;
        let mut began = Instant::now();
        while began < self.span.end {
            let result = match self.load.op {
                BenchOp::Stream => self.stream(&mut tally).await.map(|()| 0),
                BenchOp::Import => self.import(&mut import, row).await,
                _ => self.unary(&mut random, row).await,
            };
            row += GROUP;
            let ended = Instant::now();
            match result {
                Ok(entities) if self.span.has(began, ended) => {
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
        tally
    }

    /// One call of a key or a group of keys at random; the number of entities read or written.
    async fn unary(&mut self, random: &mut fastrand::Rng, row: u64) -> Result<usize, Status> {
        let Self { load, client, .. } = self;
        let (table, partition) = (load.table.clone(), random.u64(..load.partitions));
        match load.op {
            BenchOp::Insert => {
                let entity = Some(load.entity(partition, row));
                client.insert_entity(InsertEntityRequest { table, entity }).await?;
            }
            BenchOp::Upsert | BenchOp::MergeHot => {
                let (entity, mode) = match load.op {
                    BenchOp::MergeHot => (load.entity(0, 0), WriteMode::Merge),
                    _ => (load.entity(partition, random.u64(..load.entities)), WriteMode::Replace),
                };
                let (entity, mode) = (Some(entity), mode.into());
                client.upsert_entity(UpsertEntityRequest { table, entity, mode }).await?;
            }
            BenchOp::Batch => {
                let insert = |entity| BatchOperation {
                    operation: Some(Operation::Insert(BatchInsert { entity: Some(entity) })),
                };
                let operations = load.group(partition, row).into_iter().map(insert).collect();
                client.execute_batch(ExecuteBatchRequest { table, operations }).await?;
                return Ok(usize::try_from(GROUP).unwrap_or_default());
            }
            BenchOp::Query => {
                let group = random.u64(..load.groups());
                let (partition, row) = keys(load.partition_of(group), group * GROUP);
                let request = QueryEntitiesRequest {
                    table,
                    filter: format!("PartitionKey eq '{partition}' and RowKey ge '{row}'"),
                    page_size: i32::try_from(GROUP).ok(),
                    ..QueryEntitiesRequest::default()
                };
                return Ok(client.query_entities(request).await?.into_inner().entities.len());
            }
            _ => {
                let row = random.u64(..load.groups() * GROUP);
                let (partition_key, row_key) = keys(load.partition_of(row / GROUP), row);
                let request = GetEntityRequest { table, partition_key, row_key, select: None };
                client.get_entity(request).await?;
            }
        }
        Ok(1)
    }

    /// Reads the whole table; entities are counted as they come, as one stream may outlast the bench.
    async fn stream(&mut self, tally: &mut BenchTally) -> Result<(), Status> {
        let table = self.load.table.clone();
        let request = StreamEntitiesRequest { table, ..StreamEntitiesRequest::default() };
        let mut answers = self.client.stream_entities(request).await?.into_inner();
        while let Some(answer) = answers.message().await? {
            let now = Instant::now();
            if now >= self.span.end {
                return Ok(());
            }
            if now >= self.span.from {
                tally.entities(answer.entities.len());
            }
        }
        Ok(())
    }

    async fn import(&mut self, open: &mut Option<ImportStream>, row: u64) -> Result<usize, Status> {
        let import = match open {
            Some(import) => import,
            None => open.insert(ImportStream::open(&self.load, &mut self.client).await?),
        };
        import.send(self.load.group(self.load.partition_of(self.number.into()), row)).await
    }
}
