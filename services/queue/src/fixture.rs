//! A queue on a store that counts its reads, for tests of the cost of operations.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use trestle_kv::{
    Change, ChangeSpec, CommitError, Direction, Engine, EngineError, EngineStatus, Limits,
    MemoryEngine, Reads, Scan, ScanLimit, Snapshot, Span, Version, Write, Writes, transact,
};
use trestle_model::name::{AccountName, QueueName};
use trestle_model::time::{ManualClock, Ticks};

use crate::{
    authorize::QueueAccess,
    deduplication::Sent,
    delivery::{Fence, TakeOverAlways},
    head::QueueHead,
    keys::{self, KEYSPACES, QueueId},
    messages::{Delivered, MessageOperations},
    model::queue_name,
    peek::{Peek, Peeked},
    receipt::Claimed,
    receive::Receive,
    record::QueueSettings,
    release::ReceivedBatch,
    send::NewMessage,
    stored::Payload,
};

/// The rows and tombstones that scans passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ScanCost {
    /// Existing rows.
    pub(crate) rows: usize,
    /// Tombstones of deleted keys: a store on disk removes them by compaction; this one never does.
    pub(crate) marks: usize,
}

/// A store that counts the rows and tombstones that its scans pass.
#[derive(Clone)]
pub(crate) struct Counting {
    inner: MemoryEngine,
    counted: Arc<Mutex<Counted>>,
    /// Locked for a commit.
    committing: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Counted {
    /// The keys that were deleted.
    marks: BTreeSet<Bytes>,
    passed: ScanCost,
}

struct CountingSnapshot(Box<dyn Snapshot>, Counting);

impl Counting {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().expect("the lock is not poisoned")
    }

    /// Commits wait until the guard is dropped.
    pub(crate) async fn hold_commits(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.committing).lock_owned().await
    }

    /// The cost since the last call.
    pub(crate) fn take(&self) -> ScanCost {
        std::mem::take(&mut self.lock().passed)
    }
}

impl Counted {
    fn write(&mut self, write: &Write) {
        match write {
            Write::Put { key, .. } => self.marks.remove(key),
            Write::Delete { key } => self.marks.insert(key.clone()),
        };
    }

    fn scan(&mut self, span: &Span, scan: &Scan) {
        self.passed.rows += scan.entries.len();
        if span.is_empty() {
            return;
        }
        assert_eq!(span.direction, Direction::Forward, "the fixture supports forward scans only");
        let last = scan.entries.last().filter(|_| scan.more).map(|last| &last.key);
        let end = last.map_or(Bound::Excluded(&span.end), Bound::Included);
        let marks = self.marks.range::<Bytes, _>((Bound::Included(&span.start), end));
        self.passed.marks += marks.count();
    }
}

#[async_trait]
impl Engine for Counting {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        Ok(Box::new(CountingSnapshot(self.inner.snapshot().await?, self.clone())))
    }

    async fn commit(&self, Change { spec, mut decide }: Change) -> Result<Version, CommitError> {
        let _committing = self.committing.lock().await;
        let counting = self.clone();
        // The store in memory decides once, and writes the decided rows.
        let decide = move |reads: &Reads<'_>, version| {
            let writes = decide(reads, version);
            let mut counted = counting.lock();
            writes.as_slice().iter().for_each(|write| counted.write(write));
            writes
        };
        self.inner.commit(Change::new(spec, decide)).await
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn now(&self) -> Ticks {
        self.inner.now()
    }

    fn status(&self) -> EngineStatus {
        self.inner.status()
    }
}

#[async_trait]
impl Snapshot for CountingSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.0.get(key).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        let scan = self.0.scan(span, limit).await?;
        self.1.lock().scan(span, &scan);
        Ok(scan)
    }
}

/// A service with one queue on such a store, at a time that the test sets. Clones share everything.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) engine: Counting,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) messages: MessageOperations,
    pub(crate) access: QueueAccess,
    pub(crate) name: QueueName,
}

impl Fixture {
    /// An empty queue.
    pub(crate) async fn new() -> Self {
        let start = Ticks::from_unix(1_700_000_000, 0).expect("in range");
        let clock = Arc::new(ManualClock::new(start));
        let inner = MemoryEngine::with_clock(KEYSPACES, Arc::clone(&clock) as _);
        let engine = Counting { inner, counted: Arc::default(), committing: Arc::default() };
        let messages = Self::start(&engine, &clock);
        let (account, name) = (AccountName::development(), queue_name("jobs"));
        let (access, settings) = (QueueAccess::owner(account.clone()), QueueSettings::default());
        messages.queues.create(&account, name.clone(), settings).await.expect("created");
        Self { engine, clock, messages, access, name }
    }

    fn start(engine: &Counting, clock: &Arc<ManualClock>) -> MessageOperations {
        let random = || uuid::Uuid::now_v7().as_u128();
        let policy = Arc::new(TakeOverAlways);
        MessageOperations::new(Arc::new(engine.clone()), clock.clone(), random, policy)
    }

    /// Another process on the same store.
    pub(crate) fn restart(&mut self) {
        self.messages = Self::start(&self.engine, &self.clock);
        self.engine.take();
    }

    /// The number of the queue.
    pub(crate) async fn id(&self) -> QueueId {
        self.messages.queues.open(&self.access, &self.name).await.expect("exists").record.id
    }

    /// Sends messages.
    pub(crate) async fn send(&self, messages: Vec<NewMessage>) -> Vec<Sent> {
        let messages = messages.into_iter().map(Ok).collect();
        let sent = self.messages.send(&self.access, &self.name, messages, None).await;
        sent.expect("decided").into_iter().map(|sent| sent.expect("sent")).collect()
    }

    /// Receives up to `max` messages with a visibility timeout in seconds.
    pub(crate) async fn receive(&self, max: usize, timeout: u64) -> Vec<Delivered> {
        self.receiving(max, timeout).await.complete()
    }

    /// The same, before the messages are handed over.
    pub(crate) async fn receiving(&self, max: usize, timeout: u64) -> ReceivedBatch {
        let (visibility_timeout, wait) = (Duration::from_secs(timeout), Duration::ZERO);
        let receive = Receive { max, visibility_timeout, wait, deadline: None };
        self.messages.receive(&self.access, &self.name, receive).await.expect("received")
    }

    /// The visible messages, at most this many.
    pub(crate) async fn peek(&self, max: usize) -> Vec<Peeked> {
        let peek = Peek { max, page_token: String::new(), is_every: false };
        let page = self.messages.peek(&self.access, &self.name, &peek).await;
        page.expect("readable").messages
    }

    /// Deletes deliveries, each by its valid receipt.
    pub(crate) async fn delete(&self, delivered: &[Delivered]) {
        let claimed = delivered.iter().map(claimed).collect();
        let deleted = self.messages.delete(&self.access, &self.name, claimed).await;
        assert!(deleted.expect("decided").into_iter().all(|deleted| deleted));
    }

    /// The number of messages in the queue.
    pub(crate) async fn count(&self) -> u64 {
        let queue = self.messages.queues.open(&self.access, &self.name).await.expect("exists");
        self.messages.stats(&queue).await.expect("readable").messages
    }

    /// Creates another queue.
    pub(crate) async fn create(&self, name: &str) {
        let (queues, account) = (&self.messages.queues, self.access.account());
        let created = queues.create(account, queue_name(name), QueueSettings::default()).await;
        assert!(created.expect("created").1);
    }

    /// Damages the value of a key.
    pub(crate) async fn damage(&self, key: Bytes) {
        let spec = ChangeSpec::new(keys::own_domain(&key));
        let write = move |_: &Reads<'_>, _: Version| {
            let mut writes = Writes::new();
            writes.put(key.clone(), Bytes::from_static(b"?"));
            Ok::<_, Infallible>((writes, ()))
        };
        let Ok(()) = transact(&self.engine, spec, write).await.expect("stored");
    }
}

/// The fence of the owner of a queue with this head.
pub(crate) fn fence(id: QueueId, head: &QueueHead) -> Fence {
    Fence { id, token: head.token, record_version: Some(head.record_version) }
}

/// A message without expiry, visible after this delay in seconds.
pub(crate) fn outgoing(delay: u64) -> NewMessage {
    NewMessage {
        payload: Payload::Text(Bytes::from_static(b"work")),
        delay: Duration::from_secs(delay),
        time_to_live: None,
        deduplication_id: None,
        group: None,
    }
}

/// The receipt of a delivery, as a client presents it.
pub(crate) fn claimed(delivered: &Delivered) -> Claimed {
    Claimed { message_id: delivered.state.id.to_string(), receipt: delivered.receipt() }
}
