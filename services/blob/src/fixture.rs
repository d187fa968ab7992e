//! A service on stores in memory, for tests.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures::TryStreamExt as _;
use trestle_kv::stepped::{SteppedEngine, Steps};
use trestle_kv::{Engine, MemoryEngine};
use trestle_model::fault::Violations;
use trestle_model::name::AccountName;
use trestle_model::time::{Clock, ManualClock, Ticks};

use crate::{
    append::{AppendCommand, Appended},
    blobs::{
        BlobChange, BlobKey, BlobState, Blobs, CopyCommand, DeleteScope, NewContent, PutCommand,
        RequestedRange, StateName,
    },
    blocks::{BlockChoice, BlockSource, NewBlock},
    conditions::Conditions,
    containers::{ContainerChange, Containers, NewContainer},
    error::BlobError,
    ids::Ids,
    keys::KEYSPACES,
    names::{BlobName, ContainerName},
    objects::Objects,
    pages::{PageCommand, SequenceConditions},
    read_memory::ReadMemory,
    record::{BlobRecord, ContainerRecord, CopyOrigin, Retention},
    sweep::BlobSweeper,
    upload::{PublishedBy, SmallContent, Upload, UploadMemory, Uploaded},
};

/// The mark of contents.
const MARK: u64 = 3;

/// Containers and blobs on stores in memory, and their clock.
pub(crate) struct BlobFixture {
    pub(crate) containers: Containers,
    pub(crate) blobs: Blobs,
    pub(crate) sweeper: BlobSweeper,
    clock: Arc<ManualClock>,
    retention: Mutex<Retention>,
}

impl BlobFixture {
    pub(crate) fn new() -> Self {
        Self::on(Objects::in_memory())
    }

    /// With this object store.
    pub(crate) fn on(objects: Objects) -> Self {
        let start = Ticks::from_unix(1_800_000_000, 0).expect("in range");
        let clock = Arc::new(ManualClock::new(start));
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let engine: Arc<dyn Engine> =
            Arc::new(MemoryEngine::with_clock(KEYSPACES, Arc::clone(&shared)));
        let ids = Arc::new(Ids::new(Arc::clone(&engine), objects.first_content(), MARK));
        let containers = Containers::new(Arc::clone(&engine), shared, Arc::clone(&ids));
        let blobs = Blobs {
            engine,
            objects,
            ids,
            memory: UploadMemory::default(),
            reads: ReadMemory::default(),
        };
        Self {
            containers,
            sweeper: BlobSweeper::new(blobs.clone()),
            blobs,
            clock,
            retention: Mutex::default(),
        }
    }

    /// The same stores for a task that goes on as the test permits: its changes, or its background work.
    pub(crate) fn stepped(&self) -> (Self, Arc<Steps>) {
        let (engine, steps) = SteppedEngine::new(Arc::clone(&self.blobs.engine));
        let blobs = Blobs { engine: Arc::new(engine), ..self.blobs.clone() };
        let stepped = Self {
            containers: self.containers.clone(),
            sweeper: BlobSweeper::new(blobs.clone()),
            blobs,
            clock: Arc::clone(&self.clock),
            retention: Mutex::new(self.retention()),
        };
        (stepped, steps)
    }

    /// What writes and deletes keep from now on.
    pub(crate) fn keep(&self, retention: Retention) {
        *self.retention.lock().expect("no test panics here") = retention;
    }

    fn retention(&self) -> Retention {
        *self.retention.lock().expect("no test panics here")
    }

    pub(crate) async fn undelete(&self, key: &BlobKey) -> Result<(), BlobError> {
        self.blobs.undelete(key.clone()).await
    }

    /// Time passes.
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub(crate) async fn container(&self, name: &str) -> ContainerRecord {
        let new = NewContainer {
            name: container_name(name),
            metadata: Vec::new(),
            public_access: Default::default(),
        };
        self.containers.create(&account(), new).await.expect("created")
    }

    pub(crate) async fn drop_container(&self, name: &str) {
        let required = (Conditions::default(), None);
        let name = container_name(name);
        let (account, delete) =
            (account(), ContainerChange::Delete(self.retention().containers_deleted_for));
        self.containers.change(&account, name, delete, required).await.expect("deleted");
    }

    /// A blob of a new container.
    pub(crate) async fn key(&self, name: &str) -> BlobKey {
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let container = self.container(&unique).await.id;
        BlobKey { container, name: BlobName::stored(name.to_owned()) }
    }

    pub(crate) async fn upload(
        &self,
        data: Bytes,
        small: SmallContent,
    ) -> Result<Uploaded, BlobError> {
        let mut upload = Upload::new(&self.blobs, small, true);
        upload.push(data).await?;
        upload.finish().await
    }

    pub(crate) async fn put(&self, key: &BlobKey, data: impl Into<Bytes>) -> BlobRecord {
        self.put_with(key, data, PutCommand::default()).await.expect("put")
    }

    pub(crate) async fn put_with(
        &self,
        key: &BlobKey,
        data: impl Into<Bytes>,
        command: PutCommand,
    ) -> Result<BlobRecord, BlobError> {
        let command = PutCommand { retention: self.retention(), ..command };
        let Uploaded { content, written, .. } =
            self.upload(data.into(), SmallContent::Inline).await?;
        written.publish(|due| self.blobs.put(key.clone(), command, content, due)).await
    }

    pub(crate) async fn stage(
        &self,
        key: &BlobKey,
        id: &'static str,
        data: impl Into<Bytes>,
    ) -> Result<(), BlobError> {
        let Uploaded { content, written, .. } =
            self.upload(data.into(), SmallContent::Object).await?;
        let NewContent::Whole(part) = content else { panic!("blocks are objects") };
        let block = NewBlock { blob: key.clone(), id: id.into(), lease_id: None };
        written.publish(|due| self.blobs.stage(block, part, due)).await
    }

    pub(crate) async fn commit(
        &self,
        key: &BlobKey,
        ids: &[&'static str],
    ) -> Result<BlobRecord, BlobError> {
        let choice = |id: &&'static str| BlockChoice {
            id: Bytes::from_static(id.as_bytes()),
            source: BlockSource::Latest,
        };
        let choices: Vec<_> = ids.iter().map(choice).collect();
        let command = PutCommand { retention: self.retention(), ..PutCommand::default() };
        self.blobs.commit_blocks(key.clone(), &choices, command).await
    }

    pub(crate) async fn create_append(
        &self,
        key: &BlobKey,
        command: PutCommand,
    ) -> Result<BlobRecord, BlobError> {
        let command = PutCommand { retention: self.retention(), ..command };
        self.blobs.put(key.clone(), command, NewContent::Append, PublishedBy::NEVER_LATE).await
    }

    /// An append without conditions.
    pub(crate) fn appending(&self, key: &BlobKey) -> AppendCommand {
        AppendCommand {
            blob: key.clone(),
            conditions: Conditions::default(),
            lease_id: None,
            position: None,
            size_max: None,
        }
    }

    pub(crate) async fn append(
        &self,
        key: &BlobKey,
        data: impl Into<Bytes>,
    ) -> Result<Appended, BlobError> {
        self.append_with(self.appending(key), data.into()).await
    }

    pub(crate) async fn append_with(
        &self,
        command: AppendCommand,
        data: Bytes,
    ) -> Result<Appended, BlobError> {
        let Uploaded { content, written, .. } = self.upload(data, SmallContent::Inline).await?;
        written.publish(|due| self.blobs.append(command, content, due)).await
    }

    pub(crate) async fn create_pages(
        &self,
        key: &BlobKey,
        size: u64,
    ) -> Result<BlobRecord, BlobError> {
        let new = NewContent::Pages { size, sequence_number: 0, copied: None };
        let command = PutCommand { retention: self.retention(), ..PutCommand::default() };
        self.blobs.put(key.clone(), command, new, PublishedBy::NEVER_LATE).await
    }

    /// A change of pages without conditions.
    pub(crate) fn paging(&self, key: &BlobKey) -> PageCommand {
        PageCommand {
            blob: key.clone(),
            conditions: Conditions::default(),
            lease_id: None,
            sequence: SequenceConditions::default(),
        }
    }

    pub(crate) async fn write_pages(
        &self,
        key: &BlobKey,
        offset: u64,
        data: impl Into<Bytes>,
    ) -> Result<BlobRecord, BlobError> {
        self.blobs.write_pages(self.paging(key), offset, data.into()).await
    }

    pub(crate) async fn clear_pages(
        &self,
        key: &BlobKey,
        range: std::ops::Range<u64>,
    ) -> Result<BlobRecord, BlobError> {
        self.blobs.clear_pages(self.paging(key), range).await
    }

    pub(crate) async fn read(&self, key: &BlobKey) -> Result<Bytes, BlobError> {
        self.read_range(key, None).await
    }

    pub(crate) async fn read_range(
        &self,
        key: &BlobKey,
        range: Option<RequestedRange>,
    ) -> Result<Bytes, BlobError> {
        self.read_state((key, BlobState::Current), range).await
    }

    pub(crate) async fn read_snapshot(&self, key: &BlobKey, at: Ticks) -> Result<Bytes, BlobError> {
        self.read_state((key, BlobState::Past(at)), None).await
    }

    pub(crate) async fn read_state(
        &self,
        (key, state): (&BlobKey, impl Into<StateName>),
        range: Option<RequestedRange>,
    ) -> Result<Bytes, BlobError> {
        let required = (&Conditions::default(), None);
        let opened = self.blobs.open((key.clone(), state), range, required).await?;
        let pieces: Vec<Bytes> = self.blobs.clone().bytes(&opened).try_collect().await?;
        Ok(pieces.concat().into())
    }

    pub(crate) async fn delete(&self, key: &BlobKey) -> Result<(), BlobError> {
        self.delete_scope(key, DeleteScope::Blob).await
    }

    pub(crate) async fn delete_scope(
        &self,
        key: &BlobKey,
        scope: DeleteScope,
    ) -> Result<(), BlobError> {
        let required = (Conditions::default(), None);
        self.blobs.delete(key.clone(), scope, required, self.retention()).await
    }

    /// Sets the metadata to one pair.
    pub(crate) async fn set_metadata(
        &self,
        key: &BlobKey,
        value: &str,
    ) -> Result<BlobRecord, BlobError> {
        let metadata = Some(vec![("a".to_owned(), value.to_owned())]);
        let versions = self.retention().versions;
        let change = BlobChange::Update { properties: None, metadata, versions };
        let required = (Conditions::default(), None);
        Ok(self.blobs.change(key.clone(), change, required).await?.record)
    }

    pub(crate) async fn snapshot(&self, key: &BlobKey) -> Result<Ticks, BlobError> {
        let required = (Conditions::default(), None);
        Ok(self.blobs.snapshot(key.clone(), None, required).await?.0)
    }

    /// Copies a state of a blob.
    pub(crate) async fn copy(
        &self,
        (source, state): (&BlobKey, impl Into<StateName>),
        target: &BlobKey,
    ) -> Result<BlobRecord, BlobError> {
        let command = CopyCommand {
            metadata: None,
            tags: None,
            conditions: Conditions::default(),
            lease_id: None,
            is_sealed: false,
            tier: None,
            properties: None,
            block_bytes_max: None,
            origin: Some(CopyOrigin { id: uuid::Uuid::nil(), source: String::new() }),
            retention: self.retention(),
        };
        let required = (&Conditions::default(), None);
        let source = (source.clone(), state);
        let opened = self.blobs.open_copy(source, required, target.clone(), command).await?;
        opened.run(|_| ()).await?.publish().await
    }

    /// How many objects are stored.
    pub(crate) async fn objects(&self) -> usize {
        let objects: Vec<_> = self.blobs.objects.list().try_collect().await.expect("listed");
        objects.len()
    }

    /// How many rows are stored beside those of containers and ids.
    pub(crate) async fn rows(&self) -> usize {
        let limit = trestle_kv::ScanLimit { rows: 10_000, bytes: usize::MAX };
        let mut rows = 0;
        for (first, end) in [(0x53_u8, 0x60_u8), (0x60, 0x68)] {
            let span = trestle_kv::Span::new(vec![first], vec![end]);
            rows += self.blobs.engine.scan(&span, limit).await.expect("read").entries.len();
        }
        rows
    }

    pub(crate) async fn sweep(&self) {
        for _ in 0..10 {
            self.sweeper.tick().await.expect("swept");
        }
    }
}

pub(crate) fn account() -> AccountName {
    AccountName::development()
}

pub(crate) fn container_name(name: &str) -> ContainerName {
    ContainerName::parse(name.to_owned(), "", &mut Violations::default()).expect("a name")
}

/// Bytes that differ from place to place.
pub(crate) fn sample(length: usize) -> Bytes {
    (0..length).map(|at| (at / 4096 + at * 31).to_le_bytes()[0]).collect::<Vec<_>>().into()
}
