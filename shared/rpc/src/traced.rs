//! Observability of an engine: a span and a duration for each operation that can take time.

use std::{future::Future, sync::Arc, time::Instant};

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::{
    KeyValue,
    metrics::{BoundHistogram, Counter, Histogram, Meter},
};
use tracing::{Instrument as _, Span as Traced, debug_span, field::Empty};
use trestle_kv::{
    Change, CommitError, Engine, EngineError, EngineStatus, Limits, Scan, ScanLimit, Snapshot,
    Span, Version,
};
use trestle_model::time::Ticks;

use crate::{
    exemplar::{Exemplars, Series},
    propagation, semconv,
};

/// The outcomes of commits that the store refused for its own state: the writer did nothing wrong, and nothing was
/// written.
const REFUSED: [&str; 4] = ["unavailable", "busy", "full", "stopped"];

/// An engine whose work is recorded. Adds nothing else.
#[derive(Clone)]
pub struct TracedEngine {
    inner: Arc<dyn Engine>,
    records: Arc<Records>,
}

impl TracedEngine {
    /// Records the work of `inner` into `meter`, with exemplars.
    #[must_use]
    pub fn new(inner: Arc<dyn Engine>, meter: &Meter, exemplars: Exemplars) -> Self {
        let records = Arc::new(Records::new(inner.status().name, meter, exemplars));
        Self { inner, records }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Engine for TracedEngine {
    /// Not recorded: it takes less time than the recording.
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        let inner = self.inner.snapshot().await?;
        let records = Arc::clone(&self.records);
        Ok(Box::new(TracedSnapshot { inner, records }))
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let work = self.inner.get(key);
        self.records.record(EngineOperation::Get, work, |_, _| {}, read_outcome).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        let work = self.inner.scan(span, limit);
        self.records.record(EngineOperation::Scan, work, record_rows, read_outcome).await
    }

    async fn commit(&self, change: Change) -> Result<Version, CommitError> {
        let outcome = |error: &CommitError| match error {
            CommitError::Unavailable { .. } => "unavailable",
            CommitError::Busy { .. } => "busy",
            CommitError::Full { .. } => "full",
            CommitError::Stopped { .. } => "stopped",
            CommitError::Unknown { .. } => "unknown",
            CommitError::Rejected { .. } => "rejected",
            CommitError::ReadOnly { .. } => "read-only",
            CommitError::Corrupt { .. } => "corrupt",
        };
        let work = self.inner.commit(change);
        let done = self.records.record(EngineOperation::Commit, work, |_, _| {}, outcome).await;
        if let Err(error) = &done
            && REFUSED.contains(&outcome(error))
        {
            self.records.refused.add(1, &[KeyValue::new(semconv::ERROR_TYPE, outcome(error))]);
        }
        done
    }

    /// Not recorded: it is rare, and waits for compactions.
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
        self.records.record(EngineOperation::Get, work, |_, _| {}, read_outcome).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        let work = self.inner.scan(span, limit);
        self.records.record(EngineOperation::Scan, work, record_rows, read_outcome).await
    }
}

fn record_rows(scan: &Scan, span: &Traced) {
    // Signed, because unsigned numbers would be exported as text.
    span.record(semconv::DB_ROWS, scan.entries.len() as i64);
}

fn read_outcome(error: &EngineError) -> &'static str {
    match error {
        EngineError::Unavailable { .. } => "unavailable",
        EngineError::Corrupt { .. } => "corrupt",
        EngineError::SnapshotEnded { .. } => "snapshot_ended",
        EngineError::Rejected { .. } => "rejected",
    }
}

/// The operations that are recorded, in the order of their metrics.
#[derive(Debug, Clone, Copy)]
enum EngineOperation {
    Get,
    Scan,
    Commit,
}

impl EngineOperation {
    const ALL: [Self; 3] = [Self::Get, Self::Scan, Self::Commit];

    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Scan => "scan",
            Self::Commit => "commit",
        }
    }
}

struct Records {
    system: &'static str,
    duration: Histogram<f64>,
    exemplars: Exemplars,
    refused: Counter<u64>,
    /// For operations that succeed, in the order of [`EngineOperation::ALL`]: their labels are resolved
    /// once.
    succeeded: [(BoundHistogram<f64>, Arc<Series>); 3],
}

impl Records {
    fn new(system: &'static str, meter: &Meter, exemplars: Exemplars) -> Self {
        let duration = semconv::DB_DURATION.of_fractions(meter);
        let succeeded = EngineOperation::ALL.map(|operation| {
            let labels = labels(system, operation, None);
            let series = exemplars.series(&semconv::DB_DURATION, &labels);
            (duration.bind(&labels), series)
        });
        let refused = semconv::refused_writes(meter);
        Self { system, duration, exemplars, refused, succeeded }
    }

    /// The span of an operation, in a sampled trace.
    fn span(&self, operation: EngineOperation) -> Traced {
        if !propagation::is_sampled() {
            return Traced::none();
        }
        debug_span!(
            target: semconv::SPAN_TARGET,
            "storage",
            otel.name = operation.name(),
            otel.kind = "client",
            otel.status_code = Empty,
            { semconv::DB_SYSTEM } = self.system,
            { semconv::DB_OPERATION } = operation.name(),
            { semconv::DB_ROWS } = Empty,
            { semconv::ERROR_TYPE } = Empty,
        )
    }

    async fn record<T, E>(
        &self,
        operation: EngineOperation,
        work: impl Future<Output = Result<T, E>>,
        describe: impl Fn(&T, &Traced),
        outcome: impl Fn(&E) -> &'static str,
    ) -> Result<T, E> {
        let span = self.span(operation);
        let started = Instant::now();
        let result =
            if span.is_disabled() { work.await } else { work.instrument(span.clone()).await };
        let took = started.elapsed().as_secs_f64();
        match &result {
            Ok(value) => {
                if let Some((duration, exemplars)) = self.succeeded.get(operation as usize) {
                    duration.record(took);
                    exemplars.offer(took, &span);
                }
                describe(value, &span);
            }
            Err(error) => {
                let kind = outcome(error);
                span.record(semconv::ERROR_TYPE, kind);
                span.record(semconv::SPAN_STATUS, semconv::SPAN_ERROR);
                let labels = labels(self.system, operation, Some(kind));
                self.duration.record(took, &labels);
                self.exemplars.series(&semconv::DB_DURATION, &labels).offer(took, &span);
            }
        }
        result
    }
}

fn labels(
    system: &'static str,
    operation: EngineOperation,
    error: Option<&'static str>,
) -> Vec<KeyValue> {
    let mut labels = vec![
        KeyValue::new(semconv::DB_SYSTEM, system),
        KeyValue::new(semconv::DB_OPERATION, operation.name()),
    ];
    labels.extend(error.map(|kind| KeyValue::new(semconv::ERROR_TYPE, kind)));
    labels
}
