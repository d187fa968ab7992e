//! Connections that read: some that all reads of one request share, and some that a snapshot has for itself. Where all
//! of these are in use, snapshots that nobody reads end for the next one: whoever holds one decides how long, such as
//! the reader of a large blob.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore},
    task::{JoinError, JoinHandle},
    time::{Instant, sleep, timeout},
};
use tokio_postgres::error::SqlState;
use trestle_kv::{EngineError, Scan, ScanLimit, Snapshot, Span, keyspace::unknown_keyspace};

use crate::{
    failure::Failure,
    place::row_of,
    scan::scan,
    schema::{self, ServerStatus},
    session::ReadSession,
    shared::Shared,
    stats::ConnectionPool,
};

/// Connections of reads of one request, which are sent without waiting for those before.
const SHARED_SESSIONS: usize = 4;
/// Most snapshots at a time; further ones wait.
const SNAPSHOTS_MAX: usize = 16;
/// How long a snapshot is not read before it ends for one that waits; less than the database ends its transaction.
const UNREAD_MAX: Duration = Duration::from_secs(2);
/// How often one that waits looks for such.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Longest time until the server says something of itself; one that is away is waited for as long.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// Sees everything that is committed before it, and later nothing.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1";

/// See the module.
pub(crate) struct Readers {
    shared: Arc<Shared>,
    sessions: [AsyncMutex<Option<Arc<ReadSession>>>; SHARED_SESSIONS],
    next: AtomicUsize,
    idle: Arc<Mutex<Vec<ReadSession>>>,
    permits: Arc<Semaphore>,
    /// The snapshots that may exist.
    held: Mutex<Vec<Weak<HeldSnapshot>>>,
}

impl Readers {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            sessions: Default::default(),
            next: AtomicUsize::new(0),
            idle: Arc::default(),
            permits: Arc::new(Semaphore::new(SNAPSHOTS_MAX)),
            held: Mutex::default(),
        }
    }

    /// The value of a key.
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let keyspace = self.shared.keyspaces.index_of(key).ok_or_else(|| unknown_keyspace(key))?;
        let row = &row_of(key);
        let read =
            |session: Arc<ReadSession>| async move { value_of(&session, keyspace, row).await };
        self.with_session(read).await
    }

    /// The entries of a range, where one request is enough.
    pub(crate) async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        if span.is_empty() {
            return Ok(Scan { entries: Vec::new(), more: false });
        }
        let keyspace = self.shared.keyspaces.index_of_span(span)?;
        let limited = self.shared.limits.of_scan(limit);
        let at_once = |session: Arc<ReadSession>| async move {
            scan(&session, keyspace, span, limited, true).await
        };
        match self.with_session(at_once).await? {
            Some(scan) => Ok(scan),
            None => self.snapshot().await?.scan(span, limit).await,
        }
    }

    /// A view of everything that is committed.
    pub(crate) async fn snapshot(&self) -> Result<PostgresSnapshot, EngineError> {
        let permit = self.permit().await?;
        loop {
            let idle = locked(&self.idle).pop();
            let (session, is_new) = match idle {
                Some(session) => (session, false),
                None => (self.shared.connect_patiently().await?, true),
            };
            let begun = session.client().batch_execute(BEGIN).await.map_err(Failure::from);
            match begun {
                Ok(()) => {
                    let (idle, runtime) = (Arc::clone(&self.idle), Handle::current());
                    let connection =
                        SnapshotConnection { returned: Some((session, permit)), idle, runtime };
                    let held = Arc::new(HeldSnapshot::new(connection));
                    self.remember(&held);
                    return Ok(PostgresSnapshot { shared: Arc::clone(&self.shared), held });
                }
                Err(Failure::Lost(_)) if !is_new => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Waits for the end of another snapshot where there are too many.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, EngineError> {
        let mut permit = pin!(Arc::clone(&self.permits).acquire_owned());
        loop {
            let closed = |_| EngineError::Unavailable { reason: "the engine is closed".into() };
            tokio::select! {
                biased;
                permit = &mut permit => return permit.map_err(closed),
                () = sleep(LOOK_EVERY) => self.end_unread(),
            }
        }
    }

    fn remember(&self, new: &Arc<HeldSnapshot>) {
        let mut held = locked(&self.held);
        held.retain(|held| held.strong_count() > 0);
        held.push(Arc::downgrade(new));
    }

    /// Ends the snapshot that nobody has read for longest, if that is long.
    fn end_unread(&self) {
        let held: Vec<_> = locked(&self.held).iter().filter_map(Weak::upgrade).collect();
        let longest =
            held.iter().filter_map(|held| Some((held.unread_since()?, held))).min_by_key(|it| it.0);
        if let Some((_, held)) = longest {
            locked(&held.state).connection = None;
        }
    }

    /// What the server says of itself now.
    pub(crate) async fn server_status(&self) -> Result<ServerStatus, EngineError> {
        let asked = self
            .with_session(|session| async move { schema::server_status(session.client()).await });
        let silent = |_| EngineError::Unavailable { reason: "the database does not answer".into() };
        let (status, _) = timeout(ANSWERED_WITHIN, asked).await.map_err(silent)??;
        Ok(status)
    }

    /// How long the oldest open snapshot has been open; zero without one.
    pub(crate) fn oldest(&self) -> Duration {
        let held: Vec<_> = locked(&self.held).iter().filter_map(Weak::upgrade).collect();
        // The server ends one that nobody reads for long.
        let is_open = |held: &&Arc<HeldSnapshot>| {
            let state = locked(&held.state);
            let connection = state.connection.as_ref();
            connection.is_some_and(|open| open.session().is_ok_and(ReadSession::is_open))
        };
        held.iter().filter(is_open).map(|held| held.begun.elapsed()).max().unwrap_or_default()
    }

    /// The connections of single reads, and of snapshots.
    pub(crate) fn connections(&self) -> [ConnectionPool; 2] {
        let is_open = |slot: &&AsyncMutex<Option<Arc<ReadSession>>>| {
            slot.try_lock().is_ok_and(|session| session.is_some())
        };
        let (open, idle) = (self.sessions.iter().filter(is_open).count(), locked(&self.idle).len());
        let held = SNAPSHOTS_MAX - self.permits.available_permits();
        let pool = |name, used, idle, max| {
            let [used, idle, max] = [used, idle, max].map(|count: usize| count as u64);
            ConnectionPool { name, used, idle, max }
        };
        [pool("reads", open, 0, SHARED_SESSIONS), pool("snapshots", held, idle, SNAPSHOTS_MAX)]
    }

    /// What is read by a connection; by a new one where it was lost before, for example because the server was
    /// restarted.
    async fn with_session<T, R: Future<Output = Result<T, Failure>>>(
        &self,
        read: impl Fn(Arc<ReadSession>) -> R,
    ) -> Result<T, EngineError> {
        loop {
            let (session, is_new) = self.session().await?;
            match read(session).await {
                Err(Failure::Lost(_)) if !is_new => {}
                read => return Ok(read?),
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connection of a snapshot, in its transaction. The next one gets it when it is dropped.
struct SnapshotConnection {
    /// None only once it is dropped.
    returned: Option<(ReadSession, OwnedSemaphorePermit)>,
    idle: Arc<Mutex<Vec<ReadSession>>>,
    runtime: Handle,
}

impl SnapshotConnection {
    fn session(&self) -> Result<&ReadSession, EngineError> {
        let session = self.returned.as_ref().map(|(session, _)| session);
        session.ok_or_else(|| EngineError::SnapshotEnded { reason: "it is dropped".into() })
    }
}

impl Drop for SnapshotConnection {
    fn drop(&mut self) {
        let Some((session, permit)) = self.returned.take() else { return };
        let idle = Arc::clone(&self.idle);
        self.runtime.spawn(async move {
            if session.is_open() && session.client().batch_execute("COMMIT").await.is_ok() {
                locked(&idle).push(session);
            }
            drop(permit);
        });
    }
}

/// What a snapshot has, until it ends.
struct HeldSnapshot {
    begun: Instant,
    state: Mutex<SnapshotState>,
}

struct SnapshotState {
    /// None once it has ended for another one.
    connection: Option<Arc<SnapshotConnection>>,
    /// When a read of it ended last.
    read_at: Instant,
}

impl HeldSnapshot {
    fn new(connection: SnapshotConnection) -> Self {
        let connection = Some(Arc::new(connection));
        let begun = Instant::now();
        Self { begun, state: Mutex::new(SnapshotState { connection, read_at: begun }) }
    }

    /// Since when nobody reads it, if that is long.
    fn unread_since(&self) -> Option<Instant> {
        let state = locked(&self.state);
        let is_read = |connection: &Arc<_>| Arc::strong_count(connection) > 1;
        let is_unread = state.connection.as_ref().is_some_and(|it| !is_read(it));
        (is_unread && state.read_at.elapsed() >= UNREAD_MAX).then_some(state.read_at)
    }
}

/// A read of a snapshot, during which that does not end for another one.
struct SnapshotRead {
    held: Arc<HeldSnapshot>,
    connection: Arc<SnapshotConnection>,
}

impl SnapshotRead {
    fn of(held: &Arc<HeldSnapshot>) -> Result<Self, EngineError> {
        let ended = || EngineError::SnapshotEnded { reason: "others waited for it".into() };
        let connection = locked(&held.state).connection.clone().ok_or_else(ended)?;
        Ok(Self { held: Arc::clone(held), connection })
    }

    fn session(&self) -> Result<&ReadSession, EngineError> {
        self.connection.session()
    }
}

impl Drop for SnapshotRead {
    fn drop(&mut self) {
        locked(&self.held.state).read_at = Instant::now();
    }
}

/// A view, in a transaction of its own.
pub(crate) struct PostgresSnapshot {
    shared: Arc<Shared>,
    held: Arc<HeldSnapshot>,
}

#[async_trait]
impl Snapshot for PostgresSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let keyspace = self.shared.keyspaces.index_of(key).ok_or_else(|| unknown_keyspace(key))?;
        let (read, key) = (SnapshotRead::of(&self.held)?, key.to_vec());
        let value =
            async move { value_of(read.session()?, keyspace, &row_of(&key)).await.map_err(ended) };
        completed(tokio::spawn(value)).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        if span.is_empty() {
            return Ok(Scan { entries: Vec::new(), more: false });
        }
        let keyspace = self.shared.keyspaces.index_of_span(span)?;
        let limit = self.shared.limits.of_scan(limit);
        let (read, span) = (SnapshotRead::of(&self.held)?, span.clone());
        let entries = async move {
            scan(read.session()?, keyspace, &span, limit, false).await.map_err(ended)
        };
        let scan = completed(tokio::spawn(entries)).await?;
        Ok(scan.unwrap_or(Scan { entries: Vec::new(), more: true }))
    }
}

/// What a task gave that took a snapshot or read one. It is a task since whoever began that may not come back for it,
/// as one that reads ahead for a client that stopped: the connection is free for others all the same.
pub(crate) async fn completed<T>(
    read: JoinHandle<Result<T, EngineError>>,
) -> Result<T, EngineError> {
    let lost = |error: JoinError| EngineError::SnapshotEnded { reason: error.to_string().into() };
    read.await.map_err(lost).flatten()
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
