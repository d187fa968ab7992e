//! The stream of an import: a chunk in, its outcomes out, one chunk at a time, so that memory remains bounded and a
//! slow reader slows the sender down.

use std::time::Duration;

use tonic::{Status, Streaming};
use trestle_model::fault::{Fault, Reason, Violations};
use trestle_model::limits::{BATCH_BYTES_MAX, IMPORT_CHUNK_ENTITIES_MAX, STREAM_IDLE_MAX};
use trestle_model::name::TableName;
use trestle_proto::table::v1::{
    self as proto, import_entities_request::Message, table_service_server::SERVICE_NAME,
};
use trestle_rpc::call_statistics::StatisticsRecorder;
use trestle_rpc::response_stream::{self, ResponseSender, ResponseStream};
use trestle_rpc::status::IntoStatus as _;

use super::{parse, rejected};
use crate::{
    authorize::{EntityAccess, EntityAction},
    error::TableError,
    operation::{EncodedEntity, EntityOperation, WriteMode},
    tables::Tables,
    write::{EntityWriter, WriteOutcomes},
};

/// Shortest wait for tokens of a quota: enough of them for a commit.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The parsed first message.
struct ImportSpec {
    table: TableName,
    /// None: insert.
    mode: Option<WriteMode>,
}

impl ImportSpec {
    fn action(&self) -> EntityAction {
        match self.mode {
            None => EntityAction::Insert,
            Some(_) => EntityAction::Upsert,
        }
    }
}

/// A running import.
pub(super) struct Import {
    tables: Tables,
    writer: EntityWriter,
    access: EntityAccess,
    /// Position of the next entity in the stream.
    next_index: u64,
    recorder: StatisticsRecorder,
}

impl Import {
    pub(super) fn new(
        tables: Tables,
        writer: EntityWriter,
        access: EntityAccess,
        recorder: StatisticsRecorder,
    ) -> Self {
        Self { tables, writer, access, next_index: 0, recorder }
    }

    /// Responds to each chunk; ends with the stream, or at the first error of the whole call.
    pub(super) fn run(
        mut self,
        mut messages: Streaming<proto::ImportEntitiesRequest>,
    ) -> ResponseStream<proto::ImportEntitiesResponse> {
        response_stream::spawn(|sender| async move {
            let spec = first_message(&mut messages).await?;
            self.recorder.record(|statistics| statistics.set_table(spec.table.as_str()));
            // A caller without the permission is denied before it sends entities.
            let table = self.tables.authorized(&self.access, &spec.table).await;
            table.and_then(|table| table.check_action(spec.action())).map_err(rejected)?;
            while let Some(message) = next_message(&mut messages).await? {
                let response = self.chunk(&spec, message, &sender).await?;
                sender.send(response).await?;
            }
            Ok(())
        })
    }

    async fn chunk(
        &mut self,
        spec: &ImportSpec,
        message: proto::ImportEntitiesRequest,
        sender: &ResponseSender<proto::ImportEntitiesResponse>,
    ) -> Result<proto::ImportEntitiesResponse, Status> {
        let Some(Message::Chunk(chunk)) = message.message else {
            return Err(rejected(misplaced("chunk", "required in every message after the first")));
        };
        let first_index = self.next_index;
        self.next_index += chunk.entities.len() as u64;
        self.recorder.record(|statistics| statistics.written = self.next_index);
        let (operations, mut results) = parse_chunk(spec, chunk, first_index).map_err(rejected)?;
        let (indexes, operations): (Vec<_>, Vec<_>) = operations.into_iter().unzip();
        let outcomes = self.write(spec, operations, sender).await?;
        for (index, outcome) in indexes.into_iter().zip(outcomes) {
            let error = outcome.err().map(Fault::from);
            if let (Some(fault), Some(result)) = (error, results.get_mut(index)) {
                let result: &mut proto::ImportResult = result;
                result.error = Some(fault.into_item_status(SERVICE_NAME));
            }
        }
        Ok(proto::ImportEntitiesResponse { results })
    }

    /// Writes a chunk, at the pace that the quotas of the account and its partitions allow: a
    /// loader is throttled rather than failed.
    async fn write(
        &self,
        spec: &ImportSpec,
        mut operations: Vec<EntityOperation>,
        sender: &ResponseSender<proto::ImportEntitiesResponse>,
    ) -> Result<Vec<Result<(), TableError>>, Status> {
        let mut outcomes = Vec::with_capacity(operations.len());
        loop {
            let count = operations.len();
            let written = match self.write_now(spec, operations).await {
                Ok(written) => written,
                Err(error) if outcomes.is_empty() => return Err(rejected(error)),
                // Some of the chunk is written, so only the rest of it failed.
                Err(error) => {
                    outcomes.extend((0..count).map(|_| Err(error.clone())));
                    return Ok(outcomes);
                }
            };
            outcomes.extend(written.outcomes);
            let Some((exceeded, rest)) = written.deferred else { return Ok(outcomes) };
            sender.pause(exceeded.wait.max(PAUSE_MIN)).await?;
            operations = rest;
        }
    }

    /// Writes the operations that the quotas admit now.
    async fn write_now(
        &self,
        spec: &ImportSpec,
        operations: Vec<EntityOperation>,
    ) -> Result<WriteOutcomes, TableError> {
        // Looked up each time: deleting the table or revoking the policy ends the import.
        let table = self.tables.authorized(&self.access, &spec.table).await?;
        self.writer.independent(&table, spec.action(), operations).await
    }
}

/// The next message, within the idle timeout.
async fn next_message(
    messages: &mut Streaming<proto::ImportEntitiesRequest>,
) -> Result<Option<proto::ImportEntitiesRequest>, Status> {
    match tokio::time::timeout(STREAM_IDLE_MAX, messages.message()).await {
        Ok(message) => message,
        Err(_) => {
            let message = format!(
                "no message within the idle timeout: seconds=`{}`",
                STREAM_IDLE_MAX.as_secs()
            );
            Err(rejected(Fault::new(Reason::OperationTimedOut, message)))
        }
    }
}

async fn first_message(
    messages: &mut Streaming<proto::ImportEntitiesRequest>,
) -> Result<ImportSpec, Status> {
    let Some(message) = next_message(messages).await? else {
        return Err(rejected(misplaced("spec", "required: the first message")));
    };
    let Some(Message::Spec(spec)) = message.message else {
        return Err(rejected(misplaced("spec", "required in the first message")));
    };
    let mut violations = Violations::default();
    let table = TableName::parse(spec.table, "spec.table", &mut violations);
    let mode = spec.mode.and_then(|mode| parse::mode(mode, "spec.mode", &mut violations));
    let table = parse::finish(violations, table).map_err(rejected)?;
    Ok(ImportSpec { table, mode })
}

/// The operations of the valid entities, each with its index in the results; the results of the others have their
/// errors already.
type Parsed = (Vec<(usize, EntityOperation)>, Vec<proto::ImportResult>);

fn parse_chunk(
    spec: &ImportSpec,
    chunk: proto::ImportChunk,
    first_index: u64,
) -> Result<Parsed, Fault> {
    let count = chunk.entities.len();
    if count == 0 {
        return Err(misplaced("chunk.entities", "required: at least one entity"));
    }
    if count > IMPORT_CHUNK_ENTITIES_MAX {
        let rule =
            format!("must have at most {IMPORT_CHUNK_ENTITIES_MAX} entities: count=`{count}`");
        return Err(Fault::violation(Reason::InvalidInput, "chunk.entities", rule));
    }
    let mut bytes = 0;
    let mut operations = Vec::with_capacity(chunk.entities.len());
    let mut results = Vec::with_capacity(chunk.entities.len());
    for (index, entity) in chunk.entities.into_iter().enumerate() {
        let mut violations = Violations::default();
        let field = format!("chunk.entities[{index}]");
        let prepared = parse::prepared(Some(entity), &field, &mut violations);
        let error = match parse::finish(violations, prepared) {
            Ok(prepared) => {
                bytes += prepared.bytes();
                operations.push((index, operation(spec, prepared)));
                None
            }
            Err(fault) => Some(fault.into_item_status(SERVICE_NAME)),
        };
        results.push(proto::ImportResult { index: first_index + index as u64, error });
    }
    if bytes > BATCH_BYTES_MAX {
        let rule = format!("must have at most {BATCH_BYTES_MAX} bytes together: bytes=`{bytes}`");
        return Err(Fault::violation(Reason::RequestBodyTooLarge, "chunk.entities", rule));
    }
    Ok((operations, results))
}

fn operation(spec: &ImportSpec, entity: EncodedEntity) -> EntityOperation {
    match spec.mode {
        None => EntityOperation::Insert(entity),
        Some(mode) => EntityOperation::Upsert { entity, mode },
    }
}

fn misplaced(field: &str, rule: &str) -> Fault {
    Fault::violation(Reason::PropertiesNeedValue, field, rule)
}
