//! An engine that fails on purpose, by a seed, around any other.
//!
//! It fails only as the contract allows: a refused commit wrote nothing, an unknown one wrote all
//! or nothing. The same seed and the same order of calls give the same faults.

#![deny(clippy::missing_trait_methods, reason = "a method left to its default would not fail")]

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use bytes::Bytes;

use crate::limits::Limits;
use crate::time::Ticks;
use crate::{
    Change, CommitError, Engine, EngineError, EngineStatus, Scan, ScanLimit, Snapshot, Span,
    Version,
};

/// How often each fault happens, from 0.0, never, to 1.0, always.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FaultRates {
    /// A snapshot or a commit is unavailable, and nothing was written.
    pub unavailable: f64,
    /// The outcome of a commit is unknown; it was written or not with equal chances.
    pub unknown: f64,
    /// A commit stops the engine for good; its own outcome is unknown.
    pub stop: f64,
    /// Longest delay before a commit. Delays are spread evenly.
    pub delay_max: Duration,
}

/// An engine that fails on purpose.
pub struct FaultyEngine {
    inner: Arc<dyn Engine>,
    rates: FaultRates,
    random: Mutex<StdRng>,
    stopped: OnceLock<Arc<str>>,
}

impl FaultyEngine {
    /// Wraps an engine.
    pub fn new(inner: Arc<dyn Engine>, seed: u64, rates: FaultRates) -> Self {
        let random = Mutex::new(StdRng::seed_from_u64(seed));
        Self { inner, rates, random, stopped: OnceLock::new() }
    }

    /// Stops the engine for good, as a failed sync does.
    pub fn stop(&self) {
        let _ = self.stopped.set("stopped on purpose".into());
    }

    fn chance(&self, rate: f64) -> bool {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).random_bool(rate)
    }

    fn delay(&self) -> Duration {
        let part = self.random.lock().unwrap_or_else(PoisonError::into_inner).random::<f64>();
        self.rates.delay_max.mul_f64(part)
    }

    /// Commits or not, and says neither.
    async fn commit_unseen(&self, change: Change) -> CommitError {
        if self.chance(0.5) {
            let _ = self.inner.commit(change).await;
        }
        CommitError::Unknown { reason: "made unknown on purpose".into() }
    }
}

#[async_trait]
impl Engine for FaultyEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        if self.chance(self.rates.unavailable) {
            return Err(EngineError::Unavailable { reason: "made unavailable on purpose".into() });
        }
        self.inner.snapshot().await
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.snapshot().await?.get(key).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        self.snapshot().await?.scan(span, limit).await
    }

    async fn commit(&self, change: Change) -> Result<Version, CommitError> {
        let delay = self.delay();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if let Some(reason) = self.stopped.get() {
            return Err(CommitError::Stopped { reason: Arc::clone(reason) });
        }
        if self.chance(self.rates.unavailable) {
            return Err(CommitError::Unavailable { reason: "made unavailable on purpose".into() });
        }
        if self.chance(self.rates.stop) {
            self.stop();
            return Err(self.commit_unseen(change).await);
        }
        if self.chance(self.rates.unknown) {
            return Err(self.commit_unseen(change).await);
        }
        self.inner.commit(change).await
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn now(&self) -> Ticks {
        self.inner.now()
    }

    fn status(&self) -> EngineStatus {
        let inner = self.inner.status();
        EngineStatus { stopped: self.stopped.get().cloned().or(inner.stopped), ..inner }
    }
}
