//! An engine that waits before each operation until a test allows it, around any other. What comes between two
//! operations of a task is the choice of the test, and not of a scheduler.

#![deny(clippy::missing_trait_methods, reason = "a method left to its default would not wait")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};

use crate::limits::Limits;
use crate::{
    Change, CommitError, Engine, EngineError, EngineStatus, Scan, ScanLimit, Snapshot, Span,
    Version,
};
use trestle_model::time::Ticks;

/// Which operations an engine may do, and how many rows it returned.
#[derive(Debug)]
pub struct Steps {
    allowed: Semaphore,
    /// More may be allowed.
    resumed: Notify,
    /// An operation waits.
    waits: Notify,
    rows: AtomicUsize,
}

impl Steps {
    /// Polls a task until it is done, or needs more than so many operations; then returns none.
    pub async fn run<F: Future + Unpin>(
        &self,
        task: &mut F,
        operations: usize,
    ) -> Option<F::Output> {
        self.allowed.add_permits(operations);
        self.resumed.notify_waiters();
        let done = tokio::select! {
            biased;
            done = task => Some(done),
            () = self.waits.notified() => None,
        };
        self.allowed.forget_permits(Semaphore::MAX_PERMITS);
        done
    }

    /// How many rows were returned by reads of ranges so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.load(Relaxed)
    }

    /// Waits until the next operation is allowed.
    async fn next(&self) {
        loop {
            let resumed = self.resumed.notified();
            if let Ok(permit) = self.allowed.try_acquire() {
                return permit.forget();
            }
            self.waits.notify_one();
            resumed.await;
        }
    }

    fn count(&self, scan: Scan) -> Scan {
        self.rows.fetch_add(scan.entries.len(), Relaxed);
        scan
    }
}

/// An engine that waits before each operation.
pub struct SteppedEngine {
    inner: Arc<dyn Engine>,
    steps: Arc<Steps>,
}

impl SteppedEngine {
    /// Wraps an engine. No operation is allowed yet.
    pub fn new(inner: Arc<dyn Engine>) -> (Self, Arc<Steps>) {
        let steps = Arc::new(Steps {
            allowed: Semaphore::new(0),
            resumed: Notify::new(),
            waits: Notify::new(),
            rows: AtomicUsize::new(0),
        });
        (Self { inner, steps: Arc::clone(&steps) }, steps)
    }
}

#[async_trait]
impl Engine for SteppedEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        self.steps.next().await;
        let (inner, steps) = (self.inner.snapshot().await?, Arc::clone(&self.steps));
        Ok(Box::new(SteppedSnapshot { inner, steps }))
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.steps.next().await;
        self.inner.get(key).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        self.steps.next().await;
        self.inner.scan(span, limit).await.map(|scan| self.steps.count(scan))
    }

    async fn commit(&self, change: Change) -> Result<Version, CommitError> {
        self.steps.next().await;
        self.inner.commit(change).await
    }

    async fn discard(&self, span: &Span) -> Result<(), EngineError> {
        self.steps.next().await;
        self.inner.discard(span).await
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

/// A snapshot whose reads wait as well: a task may be delayed between them.
struct SteppedSnapshot {
    inner: Box<dyn Snapshot>,
    steps: Arc<Steps>,
}

#[async_trait]
impl Snapshot for SteppedSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.steps.next().await;
        self.inner.get(key).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        self.steps.next().await;
        self.inner.scan(span, limit).await.map(|scan| self.steps.count(scan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Keyspace, MemoryEngine, key_domain};

    #[tokio::test]
    async fn a_task_does_as_many_operations_as_are_allowed() {
        let keyspace = Keyspace { name: "test", kinds: 1..=1, domain: key_domain };
        let inner: Arc<dyn Engine> = Arc::new(MemoryEngine::new(vec![keyspace]));
        let (engine, steps) = SteppedEngine::new(inner);
        let done = AtomicUsize::new(0);
        let mut task = Box::pin(async {
            for _ in 0..5 {
                engine.get(&[1]).await.expect("read");
                done.fetch_add(1, Relaxed);
            }
        });

        assert!(steps.run(&mut task, 0).await.is_none());
        assert_eq!(done.load(Relaxed), 0);
        assert!(steps.run(&mut task, 3).await.is_none());
        assert!(steps.run(&mut task, 0).await.is_none());
        assert_eq!(done.load(Relaxed), 3);
        assert!(steps.run(&mut task, 100).await.is_some());
    }
}
