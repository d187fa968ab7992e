//! An engine that fails on purpose, by a seed, around any other.
//!
//! It fails only as the contract allows: a rejected commit wrote nothing, an unknown one wrote all
//! or nothing, a snapshot ends. The same seed and the same order of calls give the same faults.
//! Further effects are armed at the points of [`PressurePoints`] that every engine has: before the
//! journal, and before the answer.

#![deny(clippy::missing_trait_methods, reason = "a method left to its default would not fail")]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use bytes::Bytes;

use crate::limits::Limits;
use crate::pressure::{CommitPoint, Effect, PressurePoints, failed};
use crate::{
    Change, CommitError, Engine, EngineError, EngineStatus, Scan, ScanLimit, Snapshot, Span,
    Version,
};
use trestle_model::time::Ticks;

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
    /// A snapshot ends after so many reads. Default: it does not.
    pub snapshot_reads_max: Option<u32>,
}

/// An engine that fails on purpose.
pub struct FaultyEngine {
    inner: Arc<dyn Engine>,
    rates: FaultRates,
    random: Mutex<StdRng>,
    points: Arc<PressurePoints>,
    stopped: OnceLock<Arc<str>>,
}

impl FaultyEngine {
    /// Wraps an engine.
    pub fn new(inner: Arc<dyn Engine>, seed: u64, rates: FaultRates) -> Self {
        let random = Mutex::new(StdRng::seed_from_u64(seed));
        let points = PressurePoints::new();
        Self { inner, rates, random, points, stopped: OnceLock::new() }
    }

    /// The points at which more can be armed.
    #[must_use]
    pub fn points(&self) -> &Arc<PressurePoints> {
        &self.points
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

    /// Lets happen what is armed at a point.
    async fn reach(&self, point: CommitPoint) -> Result<(), CommitError> {
        match self.points.next(point) {
            None => Ok(()),
            Some(Effect::Delay(time)) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Some(Effect::Fail) => Err(CommitError::Unknown { reason: failed(point) }),
            Some(Effect::Abort) => std::process::abort(),
        }
    }

    /// Commits or not, and reports neither.
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
        let inner = self.inner.snapshot().await?;
        let Some(reads_left) = self.rates.snapshot_reads_max else { return Ok(inner) };
        Ok(Box::new(EndingSnapshot { inner, reads_left: AtomicU32::new(reads_left) }))
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
        self.reach(CommitPoint::BeforeJournal).await?;
        let version = self.inner.commit(change).await?;
        self.reach(CommitPoint::BeforeAnswer).await?;
        Ok(version)
    }

    async fn discard(&self, span: &Span) -> Result<(), EngineError> {
        self.inner.discard(span).await
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

/// A snapshot that ends after some reads.
struct EndingSnapshot {
    inner: Box<dyn Snapshot>,
    reads_left: AtomicU32,
}

impl EndingSnapshot {
    fn read(&self) -> Result<(), EngineError> {
        let left = self.reads_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        let reason = "ended on purpose";
        left.map(drop).map_err(|_| EngineError::SnapshotEnded { reason: reason.into() })
    }
}

#[async_trait]
impl Snapshot for EndingSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.read()?;
        self.inner.get(key).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        self.read()?;
        self.inner.scan(span, limit).await
    }
}
