//! What is read from the store does not grow with what waits in a queue, nor with what is hidden or delayed in it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use trestle_kv::{
    Change, CommitError, Engine, EngineError, EngineStatus, MemoryEngine, Scan, ScanLimit,
    Snapshot, Span,
};
use trestle_service::{
    clock::{ManualClock, Ticks},
    name::{AccountName, QueueName},
};

use crate::{
    authorize::Access, messages::Messages, model::queue_name, receipt::Claimed, receive::Receive,
    record::QueueSettings, send::Outgoing, stored::Payload,
};

/// A store that counts the rows that it reads in scans.
#[derive(Clone)]
pub(crate) struct Counting {
    inner: MemoryEngine,
    rows: Arc<AtomicUsize>,
}

struct CountingSnapshot(Box<dyn Snapshot>, Arc<AtomicUsize>);

impl Counting {
    /// An empty store.
    pub(crate) fn new() -> Self {
        Self { inner: MemoryEngine::new(), rows: Arc::default() }
    }

    /// How many rows were read since this was last asked.
    pub(crate) fn take_rows(&self) -> usize {
        self.rows.swap(0, SeqCst)
    }
}

#[async_trait]
impl Engine for Counting {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        Ok(Box::new(CountingSnapshot(self.inner.snapshot().await?, Arc::clone(&self.rows))))
    }

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        self.inner.commit(change).await
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
        self.1.fetch_add(scan.entries.len(), SeqCst);
        Ok(scan)
    }
}

/// A queue of this service on a store.
struct Bench {
    engine: Counting,
    clock: Arc<ManualClock>,
    messages: Messages,
    access: Access,
    name: QueueName,
}

impl Bench {
    async fn new() -> Self {
        let start = Ticks::from_unix(1_700_000_000, 0).expect("in range");
        let (engine, clock) = (Counting::new(), Arc::new(ManualClock::new(start)));
        let messages = Self::start(&engine, &clock);
        let (account, name) = (AccountName::development(), queue_name("jobs"));
        let (access, settings) = (Access::owner(account.clone()), QueueSettings::default());
        messages.queues.create(&account, name.clone(), settings).await.expect("created");
        Self { engine, clock, messages, access, name }
    }

    fn start(engine: &Counting, clock: &Arc<ManualClock>) -> Messages {
        let random = || uuid::Uuid::now_v7().as_u128();
        Messages::new(Arc::new(engine.clone()), clock.clone(), random)
    }

    /// Another process on the same store.
    fn restart(&mut self) {
        self.messages = Self::start(&self.engine, &self.clock);
        self.engine.take_rows();
    }

    async fn send(&self, count: usize, delay: u64) {
        let payload = Payload::Text(Bytes::from_static(b"work"));
        let (delay, life) = (Duration::from_secs(delay), None);
        let outgoing = Outgoing { payload, delay, life, deduplication_id: None, group: None };
        for _ in 0..count / 100 {
            let batch = vec![Ok(outgoing.clone()); 100];
            self.messages.send(&self.access, &self.name, batch, None).await.expect("sent");
        }
    }

    /// Receives and deletes messages one by one.
    async fn consume(&self, count: usize) {
        for _ in 0..count {
            let (max, hidden_for, wait) = (1, Duration::from_secs(60), Duration::ZERO);
            let receive = Receive { max, hidden_for, wait };
            let received = self.messages.receive(&self.access, &self.name, receive).await;
            let claimed = received.expect("received").into_iter().map(|delivered| Claimed {
                message_id: delivered.state.id.to_string(),
                receipt: delivered.receipt(),
            });
            let claimed: Vec<_> = claimed.collect();
            assert_eq!(claimed.len(), 1);
            self.messages.delete(&self.access, &self.name, claimed).await.expect("deleted");
        }
    }

    async fn count(&self) -> u64 {
        let queue = self.messages.queues.open(&self.access, &self.name).await.expect("there");
        self.messages.stats(queue.record.id).await.expect("readable").messages
    }
}

#[tokio::test]
async fn counting_and_receiving_after_a_restart_read_as_little_from_a_deep_queue() {
    let mut read = Vec::new();
    for depth in [5_000, 40_000] {
        let mut bench = Bench::new().await;
        bench.send(depth / 2, 0).await;
        bench.send(depth / 2, 3600).await;

        bench.restart();
        assert_eq!(bench.count().await, depth as u64);
        let counted = bench.engine.take_rows();
        assert!(counted <= 1, "{counted} rows read to count {depth}");
        bench.consume(1).await;
        let first = bench.engine.take_rows();
        bench.consume(500).await;
        read.push((first, bench.engine.take_rows()));
    }

    let bound = 4096;
    assert!(read.iter().all(|(first, _)| *first <= bound), "first receive, the others: {read:?}");
    assert!(read.iter().all(|(_, others)| *others == 0), "first receive, the others: {read:?}");
}
