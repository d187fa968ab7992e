//! Connections that read: some that all reads of one request share, and some that a snapshot has for itself.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore},
};
use tokio_postgres::error::SqlState;
use trestle_kv::{EngineError, Scan, ScanLimit, Snapshot, Span, keyspace::unknown_keyspace};

use crate::{failure::Failure, place::row_of, scan::scan, session::ReadSession, shared::Shared};

/// Connections of reads of one request, which are sent without waiting for those before.
const SHARED_SESSIONS: usize = 4;
/// Most snapshots at a time; further ones wait.
const SNAPSHOTS_MAX: usize = 16;

/// Sees everything that is committed before it, and later nothing.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1";

/// See the module.
pub(crate) struct Readers {
    shared: Arc<Shared>,
    sessions: [AsyncMutex<Option<Arc<ReadSession>>>; SHARED_SESSIONS],
    next: AtomicUsize,
    idle: Arc<Mutex<Vec<ReadSession>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            sessions: Default::default(),
            next: AtomicUsize::new(0),
            idle: Arc::default(),
            permits: Arc::new(Semaphore::new(SNAPSHOTS_MAX)),
        }
    }

    /// The value of a key.
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let keyspace = self.shared.keyspaces.index_of(key).ok_or_else(|| unknown_keyspace(key))?;
        let row = row_of(key);
        loop {
            let (session, is_new) = self.session().await?;
            match value_of(&session, keyspace, &row).await {
                // The connection was lost before, for example because the server was restarted.
                Err(Failure::Lost(_)) if !is_new => {}
                read => return Ok(read?),
            }
        }
    }

    /// The entries of a range, where one request is enough.
    pub(crate) async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        if span.is_empty() {
            return Ok(Scan { entries: Vec::new(), more: false });
        }
        let keyspace = self.shared.keyspaces.index_of_span(span)?;
        let limited = self.shared.limits.of_scan(limit);
        loop {
            let (session, is_new) = self.session().await?;
            match scan(&session, keyspace, span, limited, true).await {
                Ok(Some(scan)) => return Ok(scan),
                Ok(None) => return self.snapshot().await?.scan(span, limit).await,
                Err(Failure::Lost(_)) if !is_new => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// A view of everything that is committed.
    pub(crate) async fn snapshot(&self) -> Result<PostgresSnapshot, EngineError> {
        let permits = Arc::clone(&self.permits);
        let closed = |_| EngineError::Unavailable { reason: "the engine is closed".into() };
        let permit = permits.acquire_owned().await.map_err(closed)?;
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let (session, is_new) = match idle {
                Some(session) => (session, false),
                None => (self.shared.connect_patiently().await?, true),
            };
            let begun = session.client().batch_execute(BEGIN).await.map_err(Failure::from);
            match begun {
                Ok(()) => {
                    let shared = Arc::clone(&self.shared);
                    let returns = Returns { idle: Arc::clone(&self.idle), _permit: permit };
                    let held = Some((session, returns));
                    return Ok(PostgresSnapshot { shared, held, runtime: Handle::current() });
                }
                Err(Failure::Lost(_)) if !is_new => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// A connection, and whether it was made just now.
    async fn session(&self) -> Result<(Arc<ReadSession>, bool), EngineError> {
        let index = self.next.fetch_add(1, Relaxed) % SHARED_SESSIONS;
        let slot = self.sessions.get(index).or(self.sessions.first());
        let Some(slot) = slot else {
            return Err(EngineError::Unavailable { reason: "there is no connection".into() });
        };
        let mut slot = slot.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| session.is_open()) {
            return Ok((Arc::clone(session), false));
        }
        let session = Arc::new(self.shared.connect_patiently().await?);
        *slot = Some(Arc::clone(&session));
        Ok((session, true))
    }
}

async fn value_of(
    session: &ReadSession,
    keyspace: usize,
    row: &[u8],
) -> Result<Option<Bytes>, Failure> {
    let statement = &session.of(keyspace)?.get;
    let found = session.client().query_opt(statement, &[&row]).await?;
    let value = found.map(|found| found.try_get(0).map(Bytes::copy_from_slice)).transpose()?;
    Ok(value)
}

/// Where the connection of a snapshot goes when it is dropped.
struct Returns {
    idle: Arc<Mutex<Vec<ReadSession>>>,
    _permit: OwnedSemaphorePermit,
}

/// A view, in a transaction of its own.
pub(crate) struct PostgresSnapshot {
    shared: Arc<Shared>,
    /// None only once it is dropped.
    held: Option<(ReadSession, Returns)>,
    runtime: Handle,
}

impl PostgresSnapshot {
    fn session(&self) -> Result<&ReadSession, EngineError> {
        let session = self.held.as_ref().map(|(session, _)| session);
        session.ok_or_else(|| EngineError::SnapshotEnded { reason: "it is dropped".into() })
    }
}

#[async_trait]
impl Snapshot for PostgresSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let keyspace = self.shared.keyspaces.index_of(key).ok_or_else(|| unknown_keyspace(key))?;
        value_of(self.session()?, keyspace, &row_of(key)).await.map_err(ended)
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        if span.is_empty() {
            return Ok(Scan { entries: Vec::new(), more: false });
        }
        let keyspace = self.shared.keyspaces.index_of_span(span)?;
        let limit = self.shared.limits.of_scan(limit);
        let scan = scan(self.session()?, keyspace, span, limit, false).await.map_err(ended)?;
        Ok(scan.unwrap_or(Scan { entries: Vec::new(), more: true }))
    }
}

impl Drop for PostgresSnapshot {
    fn drop(&mut self) {
        let Some((session, returns)) = self.held.take() else { return };
        self.runtime.spawn(async move {
            if session.is_open() && session.client().batch_execute("COMMIT").await.is_ok() {
                returns.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
            }
        });
    }
}

/// What a read of a snapshot failed with: without its connection, or its transaction, there is no snapshot any more.
fn ended(failure: Failure) -> EngineError {
    match failure {
        Failure::Lost(reason) => EngineError::SnapshotEnded { reason },
        Failure::Rejected { state, reason }
            if state == SqlState::IN_FAILED_SQL_TRANSACTION
                || state == SqlState::SNAPSHOT_TOO_OLD =>
        {
            EngineError::SnapshotEnded { reason }
        }
        rejected => rejected.into(),
    }
}
