//! Tables of the target: created, filled, read back.

use prost::Message as _;
use tokio::sync::mpsc;
use tonic::Code;
use trestle_command::{
    errors::CliError,
    retry::repeated,
    scan::{TableScan, decoded},
    upload::{self, AHEAD_MAX, EntityOutcome, EntityUpload, entity_hash},
};
use trestle_proto::table::v1::{
    self as proto, CreateTableRequest, Entity, QueryEntitiesRequest, SetTableAccessPoliciesRequest,
    StreamEntitiesRequest, WriteMode,
};

use super::{
    ImportTarget,
    plan::PlannedTable,
    progress::{Skipped, SourcePosition, Tracker},
};
use crate::digest::{Digest, Hash};

/// Entities with a larger encoding, in bytes, exceed the limit of 1 MiB as Azure counts, whatever
/// their content, and are not sent.
const ENTITY_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Entities to send together, each with its hash; the source continues at the end.
pub(super) type TableChunk = upload::UploadChunk<Hash, String, SourcePosition>;

/// A chunk builder.
#[derive(Default)]
pub(super) struct TableBatch(upload::ChunkBuilder<Hash, String>);

impl TableBatch {
    /// Adds an entity, or the error of an unreadable one; returns the chunk before it if both do not
    /// fit.
    pub(super) fn add(
        &mut self,
        entity: Result<Entity, (String, String)>,
        before: Option<SourcePosition>,
    ) -> Option<TableChunk> {
        let (which, why) = match entity {
            Ok(entity) if entity.encoded_len() <= ENTITY_BYTES_MAX => {
                return self.0.add(entity_hash(&entity), entity, before);
            }
            Ok(entity) => (key_of(&entity), "the entity is larger than 1 MiB".to_owned()),
            Err(malformed) => malformed,
        };
        self.0.reject(which, why, before)
    }

    /// The last chunk before a position, even if it is empty.
    pub(super) fn finish(&mut self, end: SourcePosition) -> TableChunk {
        self.0.finish(Some(end))
    }
}

/// The key of an entity, for people.
fn key_of(entity: &Entity) -> String {
    format!("PartitionKey=`{}` RowKey=`{}`", entity.partition_key, entity.row_key)
}

/// The name of a table in lower case, since it is case-insensitive.
pub(super) fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// The table of a name, for people.
pub(super) fn whose(name: &str) -> String {
    format!("table `{name}`")
}

/// Passes chunks from the source to the upload.
pub(super) struct ChunkSender(mpsc::Sender<Result<TableChunk, CliError>>);

impl ChunkSender {
    /// Fails if the upload has failed, which reports its own error.
    pub(super) async fn send(&self, chunk: TableChunk) -> Result<(), CliError> {
        self.0.send(Ok(chunk)).await.map_err(|_| CliError::Protocol("the import ended".to_owned()))
    }
}

impl ImportTarget<'_> {
    /// Whether a table exists and is not empty.
    pub(super) async fn is_filled(&self, name: &str) -> Result<bool, CliError> {
        let request = QueryEntitiesRequest {
            table: name.to_owned(),
            page_size: Some(1),
            ..QueryEntitiesRequest::default()
        };
        let mut client = self.session.table();
        match repeated(async || client.query_entities(request.clone()).await).await {
            Ok(answer) => {
                let answer = answer.into_inner();
                // A page may end early, before it contains an entity.
                Ok(!answer.entities.is_empty() || !answer.next_page_token.is_empty())
            }
            Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => {
                Ok(false)
            }
            Err(status) => Err(status.into()),
        }
    }

    /// Creates a table that does not exist, and sets its policies; returns what the server rejects.
    pub(super) async fn open_table(
        &self,
        table: &PlannedTable,
    ) -> Result<Option<Skipped>, CliError> {
        let mut client = self.session.table();
        let name = table.name.clone();
        let request =
            CreateTableRequest { table: Some(proto::Table { name, ..proto::Table::default() }) };
        let created = repeated(async || client.create_table(request.clone()).await).await;
        let created = match created {
            Err(status) if status.code() == Code::AlreadyExists => Ok(()),
            created => created.map(drop),
        };
        let rejected =
            Skipped::rejected(created, &[Code::InvalidArgument], whose(&table.name), "")?;
        if rejected.is_some() || table.policies.is_empty() {
            return Ok(rejected);
        }
        let (name, policies) = (table.name.clone(), table.policies.clone());
        let request = SetTableAccessPoliciesRequest { table: name, policies };
        let set = repeated(async || client.set_table_access_policies(request.clone()).await);
        let codes = [Code::InvalidArgument, Code::PermissionDenied];
        Skipped::rejected(set.await, &codes, whose(&table.name), "access policies")
    }

    /// Writes every chunk of a table, or of a range of it, that is read over existing entities, and records
    /// the progress.
    pub(super) async fn fill(
        &self,
        name: &str,
        range: Option<usize>,
        read: impl AsyncFnOnce(ChunkSender) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let (sender, chunks) = mpsc::channel(AHEAD_MAX);
        let reading = async {
            // Dropping the senders ends the upload.
            let errors = sender.clone();
            if let Err(error) = read(ChunkSender(sender)).await {
                let _ = errors.send(Err(error)).await;
            }
        };
        let pending = PendingRows::default();
        let mut recorder = TableRecorder { tracker: self.tracker, name, range, pending };
        let mut upload =
            EntityUpload::new(self.session, name.to_owned(), Some(WriteMode::Replace), chunks);
        let uploading = async {
            let uploaded = upload.run(&mut recorder).await;
            // Ends the reading of a failed upload.
            drop(upload);
            uploaded
        };
        let (uploaded, ()) = tokio::join!(uploading, reading);
        uploaded?.map_or(Ok(()), Err)
    }

    /// The content of a table now.
    pub(super) async fn read_back(&self, name: &str) -> Result<Digest, CliError> {
        let request =
            StreamEntitiesRequest { table: name.to_owned(), ..StreamEntitiesRequest::default() };
        let (mut scan, mut digest) = (TableScan::new(self.session, request), Digest::default());
        while let Some(message) = scan.next().await? {
            decoded(&message)?.iter().for_each(|entity| digest.add(entity_hash(entity)));
        }
        Ok(digest)
    }
}

/// Records the outcomes of the chunks of one table, or of a range of it.
struct TableRecorder<'a> {
    tracker: &'a Tracker,
    name: &'a str,
    range: Option<usize>,
    pending: PendingRows,
}

/// The answered part after the last position from which the source can continue.
#[derive(Default)]
struct PendingRows {
    read: u64,
    written: Vec<Hash>,
    rejected: Vec<(String, String)>,
}

impl upload::Recorder<TableChunk> for TableRecorder<'_> {
    fn record(&mut self, chunk: TableChunk, outcomes: Vec<EntityOutcome>) {
        let pending = &mut self.pending;
        let seen = outcomes.len().saturating_add(chunk.rejected.len());
        pending.read += u64::try_from(seen).unwrap_or(u64::MAX);
        // Decoded again only if one of them failed.
        let mut entities = None;
        for (at, (outcome, hash)) in outcomes.into_iter().zip(&chunk.labels).enumerate() {
            let EntityOutcome::Failed(why) = outcome else {
                pending.written.push(*hash);
                continue;
            };
            let entities = entities.get_or_insert_with(|| chunk.entities());
            pending.rejected.push((entities.get(at).map(key_of).unwrap_or_default(), why));
        }
        pending.rejected.extend(chunk.rejected);
        let Some(end) = chunk.end else { return };
        let pending = std::mem::take(pending);
        self.tracker.change(|progress| {
            let table = progress.tables.entry(folded(self.name)).or_default();
            pending.written.into_iter().for_each(|hash| table.written.add(hash));
            table.read += pending.read;
            table.rejected += u64::try_from(pending.rejected.len()).unwrap_or(u64::MAX);
            table.advance(self.range, end);
            for (which, why) in pending.rejected {
                progress.skip(Skipped::new(whose(self.name), which, why));
            }
        });
    }
}
