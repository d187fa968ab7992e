//! Makes the work of an engine visible: a span and a duration for each operation that can take
//! time.

use std::{future::Future, sync::Arc, time::Instant};

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::{
    KeyValue,
    metrics::{Histogram, Meter},
};
use tracing::{Instrument as _, debug_span, field::Empty};
use trestle_kv::{
    Change, CommitError, Engine, EngineError, EngineStatus, Scan, ScanLimit, Snapshot, Span,
};

use crate::semconv;

/// An engine whose work is recorded. Adds nothing else.
#[derive(Clone)]
pub struct TracedEngine {
    inner: Arc<dyn Engine>,
    records: Arc<Records>,
}

impl TracedEngine {
    /// Records the work of `inner` into `meter`.
    #[must_use]
    pub fn new(inner: Arc<dyn Engine>, meter: &Meter) -> Self {
        let system = inner.status().name;
        let records = Arc::new(Records { system, duration: semconv::db_duration(meter) });
        Self { inner, records }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Engine for TracedEngine {
    /// Not recorded: it takes less time than recording it would.
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        let inner = self.inner.snapshot().await?;
        let records = Arc::clone(&self.records);
        Ok(Box::new(TracedSnapshot { inner, records }))
    }

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        let outcome = |error: &CommitError| match error {
            CommitError::Unavailable { .. } => "unavailable",
            CommitError::Busy { .. } => "busy",
            CommitError::Full { .. } => "full",
            CommitError::Stopped { .. } => "stopped",
            CommitError::Unknown { .. } => "unknown",
            CommitError::Refused { .. } => "refused",
            CommitError::Corrupt { .. } => "corrupt",
        };
        let work = self.inner.commit(change);
        self.records.record("commit", work, outcome).await
    }

    fn status(&self) -> EngineStatus {
        self.inner.status()
    }
}

struct TracedSnapshot {
    inner: Box<dyn Snapshot>,
    records: Arc<Records>,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Snapshot for TracedSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let work = self.inner.get(key);
        self.records.record("get", work, read_outcome).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        let work = self.inner.scan(span, limit);
        self.records.record("scan", work, read_outcome).await
    }
}

fn read_outcome(error: &EngineError) -> &'static str {
    match error {
        EngineError::Unavailable { .. } => "unavailable",
        EngineError::Corrupt { .. } => "corrupt",
    }
}

struct Records {
    system: &'static str,
    duration: Histogram<f64>,
}

impl Records {
    async fn record<T, E>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, E>>,
        outcome: impl Fn(&E) -> &'static str,
    ) -> Result<T, E> {
        let span = debug_span!(
            target: semconv::SPAN_TARGET,
            "storage",
            otel.name = operation,
            otel.kind = "client",
            otel.status_code = Empty,
            { semconv::DB_SYSTEM } = self.system,
            { semconv::DB_OPERATION } = operation,
            { semconv::ERROR_TYPE } = Empty,
        );
        let started = Instant::now();
        let result =
            if span.is_disabled() { work.await } else { work.instrument(span.clone()).await };
        let took = started.elapsed().as_secs_f64();
        let operation = KeyValue::new(semconv::DB_OPERATION, operation);
        match &result {
            Ok(_) => self.duration.record(took, &[operation]),
            Err(error) => {
                let kind = outcome(error);
                span.record(semconv::ERROR_TYPE, kind);
                span.record("otel.status_code", "ERROR");
                let kind = KeyValue::new(semconv::ERROR_TYPE, kind);
                self.duration.record(took, &[operation, kind]);
            }
        }
        result
    }
}
