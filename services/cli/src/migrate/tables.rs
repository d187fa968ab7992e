//! Tables on our side: made ready, filled, read back.

use std::sync::Arc;

use tokio::sync::mpsc;
use tonic::Code;
use trestle_proto::table::v1::{
    self as proto, CreateTableRequest, Entity, QueryEntitiesRequest, SetTableAccessPoliciesRequest,
    StreamEntitiesRequest, WriteMode, stored::decode_entities,
};

use super::{
    digest::{self, Digest, Hash},
    notes::{Ledger, Left, Place},
    plan::PlannedTable,
};
use crate::{
    client::{Session, repeated},
    errors::CliError,
    scan::Scan,
    upload::{self, Book, Outcome, Upload},
};

/// Most entities of a chunk.
const ENTITIES_MAX: usize = 500;
/// Largest chunk, in bytes; a larger entity makes a chunk of its own.
const BYTES_MAX: usize = 1024 * 1024;
/// Larger entities, in bytes of their encoding, are over the limit of 1 MiB as Azure counts,
/// whatever is in them, and are not sent.
const ENTITY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Most chunks that wait to be sent.
pub(super) const AHEAD_MAX: usize = 2;

/// What a chunk says of its entities.
#[derive(Debug)]
pub(super) struct Mark {
    hashes: Vec<Hash>,
    /// Those of the same stretch of the source that cannot be sent, and why.
    refused: Vec<(String, String)>,
    /// Where the source goes on after the chunk; none inside of a page, which counts as a whole.
    place: Option<Place>,
}

/// Entities to send together.
pub(super) type Chunk = upload::Chunk<Mark>;
/// Where the chunks of a table come from; one that fails to be read is an error.
pub(super) type Chunks = mpsc::Receiver<Result<Chunk, CliError>>;

/// A chunk in the making.
#[derive(Default)]
pub(super) struct Batch {
    entities: Vec<Entity>,
    bytes: usize,
    hashes: Vec<Hash>,
    refused: Vec<(String, String)>,
}

impl Batch {
    /// Takes an entity; what was taken before, where there is no room for both.
    pub(super) fn add(&mut self, entity: Entity, before: Option<Place>) -> Option<Chunk> {
        let size = prost::Message::encoded_len(&entity);
        if size > ENTITY_BYTES_MAX {
            let rule = "the entity is larger than 1 MiB".to_owned();
            return self.refuse(key_of(&entity), rule, before);
        }
        let full = self.is_full() || self.bytes.saturating_add(size) > BYTES_MAX;
        let chunk = if full { self.take(before) } else { None };
        self.bytes = self.bytes.saturating_add(size);
        self.hashes.push(digest::of_entity(&entity));
        self.entities.push(entity);
        chunk
    }

    /// Notes something that cannot be sent.
    pub(super) fn refuse(
        &mut self,
        which: String,
        why: String,
        before: Option<Place>,
    ) -> Option<Chunk> {
        let chunk = if self.is_full() { self.take(before) } else { None };
        self.refused.push((which, why));
        chunk
    }

    fn is_full(&self) -> bool {
        self.entities.len().saturating_add(self.refused.len()) >= ENTITIES_MAX
    }

    /// What was taken so far, if there is any; the source goes on at `place`.
    pub(super) fn take(&mut self, place: Option<Place>) -> Option<Chunk> {
        let batch = std::mem::take(self);
        let any = !batch.entities.is_empty() || !batch.refused.is_empty();
        let mark = Mark { hashes: batch.hashes, refused: batch.refused, place };
        any.then(|| Chunk::new(batch.entities, mark))
    }

    /// The last chunk before a place, also where there is nothing in it.
    pub(super) fn finish(&mut self, place: Option<Place>) -> Chunk {
        let batch = std::mem::take(self);
        let mark = Mark { hashes: batch.hashes, refused: batch.refused, place };
        Chunk::new(batch.entities, mark)
    }
}

/// The key of an entity, for people.
fn key_of(entity: &Entity) -> String {
    format!("PartitionKey=`{}` RowKey=`{}`", entity.partition_key, entity.row_key)
}

/// A name as tables are told apart by.
pub(super) fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The table of a name, for people.
pub(super) fn whose(name: &str) -> String {
    format!("table `{name}`")
}

/// Whether a table is there and holds anything.
pub(super) async fn is_filled(session: &Session, name: &str) -> Result<bool, CliError> {
    let request = QueryEntitiesRequest {
        table: name.to_owned(),
        page_size: Some(1),
        ..QueryEntitiesRequest::default()
    };
    let mut client = session.table();
    match repeated(async || client.query_entities(session.request(request.clone())).await).await {
        Ok(answer) => {
            let answer = answer.into_inner();
            // A page may end early, before it found anything.
            Ok(!answer.entities.is_empty() || !answer.next_page_token.is_empty())
        }
        Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => Ok(false),
        Err(status) => Err(status.into()),
    }
}

/// Creates a table where it is not there, with its policies; why not, where the server refuses.
pub(super) async fn open(
    session: &Session,
    table: &PlannedTable,
) -> Result<Option<Left>, CliError> {
    let left = |which: &str, why: String| {
        Ok(Some(Left { whose: whose(&table.name), which: which.to_owned(), why }))
    };
    let mut client = session.table();
    let request = CreateTableRequest {
        table: Some(proto::Table { name: table.name.clone(), ..Default::default() }),
    };
    match repeated(async || client.create_table(session.request(request.clone())).await).await {
        Ok(_) => {}
        Err(status) if status.code() == Code::AlreadyExists => {}
        Err(status) if status.code() == Code::InvalidArgument => {
            return left("", status.message().to_owned());
        }
        Err(status) => return Err(status.into()),
    }
    if table.policies.is_empty() {
        return Ok(None);
    }
    let (name, policies) = (table.name.clone(), table.policies.clone());
    let request = SetTableAccessPoliciesRequest { table: name, policies };
    let set =
        repeated(async || client.set_table_access_policies(session.request(request.clone())).await);
    match set.await {
        Ok(_) => Ok(None),
        Err(status) if matches!(status.code(), Code::InvalidArgument | Code::PermissionDenied) => {
            left("access policies", status.message().to_owned())
        }
        Err(status) => Err(status.into()),
    }
}

/// Writes every chunk of a table, or of a stretch of it, entities that are there replaced, and
/// notes how far it is.
pub(super) async fn fill(
    session: &Session,
    ledger: &Arc<Ledger>,
    name: String,
    stretch: Option<usize>,
    chunks: Chunks,
) -> Result<(), CliError> {
    let (ledger, pending) = (Arc::clone(ledger), Pending::default());
    let mut book = TableBook { ledger, name: name.clone(), stretch, pending };
    let mut upload = Upload::new(session, name, Some(WriteMode::Replace), chunks);
    match upload.run(&mut book).await? {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Notes what became of the chunks of one table, or of a stretch of it.
struct TableBook {
    ledger: Arc<Ledger>,
    name: String,
    stretch: Option<usize>,
    pending: Pending,
}

/// What is answered, but not yet up to a place from where the source can go on.
#[derive(Default)]
struct Pending {
    read: u64,
    written: Vec<Hash>,
    refused: Vec<(String, String)>,
}

impl Pending {
    fn add(&mut self, chunk: &Chunk, outcomes: Vec<Outcome>) {
        let mark = &chunk.mark;
        let seen = outcomes.len().saturating_add(mark.refused.len());
        self.read = self.read.saturating_add(u64::try_from(seen).unwrap_or(u64::MAX));
        self.refused.extend(mark.refused.iter().cloned());
        // Decoded again only where one of them failed.
        let mut entities = None;
        for (at, (outcome, hash)) in outcomes.into_iter().zip(&mark.hashes).enumerate() {
            let Outcome::Failed(why) = outcome else {
                self.written.push(*hash);
                continue;
            };
            let entities = entities.get_or_insert_with(|| chunk.entities());
            self.refused.push((entities.get(at).map(key_of).unwrap_or_default(), why));
        }
    }
}

impl Book<Mark> for TableBook {
    fn is_halted(&self) -> bool {
        false
    }

    fn book(&mut self, chunk: &Chunk, outcomes: Vec<Outcome>) {
        self.pending.add(chunk, outcomes);
        let Some(place) = chunk.mark.place.clone() else { return };
        let pending = std::mem::take(&mut self.pending);
        self.ledger.change(|notes| {
            let table = notes.tables.entry(folded(&self.name)).or_default();
            pending.written.into_iter().for_each(|hash| table.written.add(hash));
            let refused = u64::try_from(pending.refused.len()).unwrap_or(u64::MAX);
            table.read = table.read.saturating_add(pending.read);
            table.refused = table.refused.saturating_add(refused);
            table.go_on(self.stretch, place);
            for (which, why) in pending.refused {
                notes.leave(Left { whose: whose(&self.name), which, why });
            }
        });
    }
}

/// What is in a table now.
pub(super) async fn read_back(session: &Session, name: &str) -> Result<Digest, CliError> {
    let request =
        StreamEntitiesRequest { table: name.to_owned(), ..StreamEntitiesRequest::default() };
    let (mut scan, mut digest) = (Scan::new(session, request), Digest::default());
    while let Some(message) = scan.next().await? {
        let entities = decode_entities(&message.entities)
            .map_err(|error| CliError::Protocol(error.to_string()))?;
        entities.iter().for_each(|entity| digest.add(digest::of_entity(entity)));
    }
    Ok(digest)
}
