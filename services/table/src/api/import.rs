//! The stream of an import: a chunk in, its outcomes out, one chunk at a time, so that memory stays bounded and a
//! slow reader slows the sender down.

use std::time::Duration;

use tonic::{Status, Streaming};
use trestle_proto::table::v1::{self as proto, import_entities_request::Message};
use trestle_service::{
    facts::Facts,
    fault::{Fault, Reason, Violations},
    limits::{BATCH_BYTES_MAX, IMPORT_CHUNK_ENTITIES_MAX, STREAM_IDLE_MAX},
    name::TableName,
};

use super::{
    Responses,
    outbox::{self, Outbox},
    parse,
};
use crate::{
    authorize::{Access, Action},
    error::TableError,
    operation::{Mode, Operation, Prepared},
    tables::Tables,
    write::{Progress, Writer},
};

/// Shortest wait for room in a quota: worth a commit.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// What the first message asks for.
struct Spec {
    table: TableName,
    /// None: insert.
    mode: Option<Mode>,
}

impl Spec {
    fn action(&self) -> Action {
        match self.mode {
            None => Action::Insert,
            Some(_) => Action::Upsert,
        }
    }
}

/// An import under way.
pub(super) struct Import {
    tables: Tables,
    writer: Writer,
    access: Access,
    /// Position of the next entity in the stream.
    next_index: u64,
    facts: Facts,
}

impl Import {
    pub(super) fn new(tables: Tables, writer: Writer, access: Access, facts: Facts) -> Self {
        Self { tables, writer, access, next_index: 0, facts }
    }

    /// Takes the messages and answers each chunk; ends with the stream, or at the first failure of the whole.
    pub(super) fn run(
        mut self,
        mut messages: Streaming<proto::ImportEntitiesRequest>,
    ) -> Responses<proto::ImportEntitiesResponse> {
        outbox::responses(|outbox| async move {
            let spec = first_message(&mut messages).await?;
            self.facts.note(|work| work.names(spec.table.as_str()));
            // A caller who may not import at all learns it before the entities are sent.
            let target = self.tables.target(&self.access, &spec.table).await;
            target.and_then(|target| target.permit(spec.action())).map_err(Fault::from)?;
            while let Some(message) = next_message(&mut messages).await? {
                let answer = self.chunk(&spec, message, &outbox).await?;
                outbox.send(answer).await?;
            }
            Ok(())
        })
    }

    async fn chunk(
        &mut self,
        spec: &Spec,
        message: proto::ImportEntitiesRequest,
        outbox: &Outbox<proto::ImportEntitiesResponse>,
    ) -> Result<proto::ImportEntitiesResponse, Status> {
        let Some(Message::Chunk(chunk)) = message.message else {
            return Err(misplaced("chunk", "required in every message after the first").into());
        };
        let first_index = self.next_index;
        self.next_index += chunk.entities.len() as u64;
        self.facts.note(|work| work.written = self.next_index);
        let (operations, mut results) = parse_chunk(spec, chunk, first_index)?;
        let (places, operations): (Vec<_>, Vec<_>) = operations.into_iter().unzip();
        let outcomes = self.write(spec, operations, outbox).await?;
        for (place, outcome) in places.into_iter().zip(outcomes) {
            let error = outcome.err().map(Fault::from);
            if let (Some(fault), Some(result)) = (error, results.get_mut(place)) {
                let result: &mut proto::ImportResult = result;
                result.error = Some(rpc_status(fault));
            }
        }
        Ok(proto::ImportEntitiesResponse { results })
    }

    /// Writes a chunk, at the pace that the limits of the account and its partitions allow: a
    /// loader is slowed down rather than failed.
    async fn write(
        &self,
        spec: &Spec,
        mut operations: Vec<Operation>,
        outbox: &Outbox<proto::ImportEntitiesResponse>,
    ) -> Result<Vec<Result<(), TableError>>, Status> {
        let mut outcomes = Vec::with_capacity(operations.len());
        loop {
            let count = operations.len();
            let progress = match self.each(spec, operations).await {
                Ok(progress) => progress,
                Err(error) if outcomes.is_empty() => return Err(Fault::from(error).into()),
                // Some of the chunk is written, so what failed is the rest of it.
                Err(error) => {
                    outcomes.extend((0..count).map(|_| Err(error.clone())));
                    return Ok(outcomes);
                }
            };
            outcomes.extend(progress.outcomes);
            let Some((over, rest)) = progress.held else { return Ok(outcomes) };
            outbox.pause(over.wait.max(PAUSE_MIN)).await?;
            operations = rest;
        }
    }

    /// Writes what may be written now.
    async fn each(&self, spec: &Spec, operations: Vec<Operation>) -> Result<Progress, TableError> {
        // Looked up each time: a table deleted or a policy revoked meanwhile ends the import.
        let target = self.tables.target(&self.access, &spec.table).await?;
        self.writer.each(&target, spec.action(), operations).await
    }
}

/// The next message, which must come before the client counts as gone.
async fn next_message(
    messages: &mut Streaming<proto::ImportEntitiesRequest>,
) -> Result<Option<proto::ImportEntitiesRequest>, Status> {
    match tokio::time::timeout(STREAM_IDLE_MAX, messages.message()).await {
        Ok(message) => message,
        Err(_) => {
            let message = format!("no message came: seconds=`{}`", STREAM_IDLE_MAX.as_secs());
            Err(Fault::new(Reason::OperationTimedOut, message).into())
        }
    }
}

async fn first_message(
    messages: &mut Streaming<proto::ImportEntitiesRequest>,
) -> Result<Spec, Status> {
    let Some(message) = next_message(messages).await? else {
        return Err(misplaced("spec", "required: the first message").into());
    };
    let Some(Message::Spec(spec)) = message.message else {
        return Err(misplaced("spec", "required in the first message").into());
    };
    let mut violations = Violations::default();
    let table = TableName::parse(spec.table, "spec.table", &mut violations);
    let mode = spec.mode.and_then(|mode| parse::mode(mode, "spec.mode", &mut violations));
    let table = parse::finish(violations, table)?;
    Ok(Spec { table, mode })
}

/// The operations of the entities that are in order, each with its place in the results; the results already tell
/// what is wrong with the others.
type Parsed = (Vec<(usize, Operation)>, Vec<proto::ImportResult>);

fn parse_chunk(spec: &Spec, chunk: proto::ImportChunk, first_index: u64) -> Result<Parsed, Fault> {
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
    for (place, entity) in chunk.entities.into_iter().enumerate() {
        let mut violations = Violations::default();
        let field = format!("chunk.entities[{place}]");
        let prepared = parse::prepared(Some(entity), &field, &mut violations);
        let error = match parse::finish(violations, prepared) {
            Ok(prepared) => {
                bytes += prepared.bytes();
                operations.push((place, operation(spec, prepared)));
                None
            }
            Err(fault) => Some(rpc_status(fault)),
        };
        results.push(proto::ImportResult { index: first_index + place as u64, error });
    }
    if bytes > BATCH_BYTES_MAX {
        let rule = format!("must have at most {BATCH_BYTES_MAX} bytes together: bytes=`{bytes}`");
        return Err(Fault::violation(Reason::RequestBodyTooLarge, "chunk.entities", rule));
    }
    Ok((operations, results))
}

fn operation(spec: &Spec, entity: Prepared) -> Operation {
    match spec.mode {
        None => Operation::Insert(entity),
        Some(mode) => Operation::Upsert { entity, mode },
    }
}

fn misplaced(field: &str, rule: &str) -> Fault {
    Fault::violation(Reason::PropertiesNeedValue, field, rule)
}

/// The failure of one entity in the form that a response carries.
fn rpc_status(fault: Fault) -> tonic_types::Status {
    let status = Status::from(fault);
    let details = prost::Message::decode(status.details()).unwrap_or_default();
    let tonic_types::Status { details, .. } = details;
    tonic_types::Status {
        code: status.code().into(),
        message: status.message().to_owned(),
        details,
    }
}
