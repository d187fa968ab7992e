//! A store in memory that yields to other tasks around every read and commit, by a seed, and the policy of a test.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use async_trait::async_trait;
use bytes::Bytes;
use trestle_kv::{
    Change, CommitError, Engine, EngineError, EngineStatus, Limits, MemoryEngine, Scan, ScanLimit,
    Snapshot, Span, Version,
};
use trestle_model::name::{AccountName, QueueName};
use trestle_model::time::Ticks;

use crate::delivery::OwnershipPolicy;

/// Pseudo-random numbers from a seed.
#[derive(Clone)]
pub(super) struct Random(Arc<Mutex<u64>>);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)))
    }

    pub(super) fn below(&self, bound: usize) -> usize {
        let mut state = self.0.lock().expect("no panic with it");
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        usize::try_from(*state >> 33).expect("31 bits") % bound
    }
}

/// See the module.
#[derive(Clone)]
pub(super) struct Yielding {
    pub(super) inner: MemoryEngine,
    pub(super) random: Random,
}

struct YieldingSnapshot(Box<dyn Snapshot>, Yielding);

impl Yielding {
    pub(super) async fn pause(&self) {
        for _ in 0..self.random.below(4) {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl Engine for Yielding {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        self.pause().await;
        Ok(Box::new(YieldingSnapshot(self.inner.snapshot().await?, self.clone())))
    }

    async fn commit(&self, change: Change) -> Result<Version, CommitError> {
        self.pause().await;
        let version = self.inner.commit(change).await;
        self.pause().await;
        version
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
impl Snapshot for YieldingSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let value = self.0.get(key).await;
        self.1.pause().await;
        value
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        let scan = self.0.scan(span, limit).await;
        self.1.pause().await;
        scan
    }
}

/// The services that may own queues: one of them, or each that is called.
pub(super) struct Placement(pub(super) AtomicUsize);

impl Placement {
    /// Each service takes over the queues of its calls.
    pub(super) const ANY: usize = usize::MAX;
    /// The dead-letter queue is in the other service than the work queue, which is in the first or the second one.
    pub(super) const SPLIT: [usize; 2] = [2, 3];

    /// Where a queue is.
    pub(super) fn of(&self, queue: &str) -> usize {
        let placed = self.0.load(SeqCst);
        match Self::SPLIT.iter().position(|split| *split == placed) {
            Some(work) if queue == "dead" => 1 - work,
            Some(work) => work,
            None => placed,
        }
    }

    pub(super) fn set(&self, service: usize) {
        self.0.store(service, SeqCst);
    }
}

/// The policy of one service.
pub(super) struct PlacedQueues {
    pub(super) service: usize,
    pub(super) placement: Arc<Placement>,
}

impl OwnershipPolicy for PlacedQueues {
    fn may_own(&self, _: &AccountName, queue: &QueueName) -> bool {
        let placed = self.placement.of(queue.as_str());
        placed == self.service || placed == Placement::ANY
    }
}
