//! What the workers, the readers and the handles of an engine share.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use trestle_kv::{CommitPoint, GroupObserver, Keyspaces, Limits, PointHook};

use crate::{
    address::PostgresAddress,
    clock::EngineClock,
    failure::Failure,
    scheduler::ChangeScheduler,
    session::{DatabaseConnection, PreparedSession, PreparedStatements, ReadSession},
    statements::Sql,
    stats::WorkerCounters,
};

/// Changes wait for a database that is away, for example while another server takes over. After that they are rejected
/// at once until it is back.
const DOWN_LONG: Duration = Duration::from_secs(10);

/// Pause before a read connects again.
const AGAIN: Duration = Duration::from_millis(100);

/// See the module.
pub(crate) struct Shared {
    pub(crate) address: PostgresAddress,
    pub(crate) keyspaces: Keyspaces,
    pub(crate) statements: Vec<Sql>,
    pub(crate) limits: Limits,
    pub(crate) clock: EngineClock,
    pub(crate) scheduler: ChangeScheduler,
    pub(crate) on_group: GroupObserver,
    pub(crate) on_point: Option<PointHook>,
    pub(crate) counters: WorkerCounters,
    pub(crate) down: DownSince,
}

/// Since when the database cannot be connected to.
#[derive(Default)]
pub(crate) struct DownSince(Mutex<Option<(Instant, Arc<str>)>>);

impl Shared {
    /// A new connection with its statements.
    pub(crate) async fn connect<S: PreparedStatements>(
        &self,
    ) -> Result<PreparedSession<S>, Failure> {
        let connected = match DatabaseConnection::open(&self.address).await {
            Ok(connection) => PreparedSession::prepare(connection, &self.statements).await,
            Err(failure) => Err(failure),
        };
        self.down.note(connected.as_ref().err());
        connected
    }

    /// The same for a read, which waits for a database that is away, as changes do.
    pub(crate) async fn connect_patiently(&self) -> Result<ReadSession, Failure> {
        loop {
            match self.connect().await {
                Err(Failure::Lost(_)) if !self.is_down_for_long() => sleep(AGAIN).await,
                connected => return connected,
            }
        }
    }

    /// Whether the database cannot be connected to for so long that no change waits for it.
    pub(crate) fn is_down_for_long(&self) -> bool {
        self.down.get().is_some_and(|(since, _)| since.elapsed() >= DOWN_LONG)
    }

    /// Reaches a point of a commit.
    pub(crate) fn at(&self, point: CommitPoint) -> Result<(), Arc<str>> {
        self.on_point.as_ref().map_or(Ok(()), |hook| hook(point))
    }
}

impl DownSince {
    /// Since when, and why.
    pub(crate) fn get(&self) -> Option<(Instant, Arc<str>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes whether the database answered.
    pub(crate) fn note(&self, failure: Option<&Failure>) {
        let mut down = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (failure, &mut *down) {
            (None, down) => *down = None,
            (Some(failure), Some((_, reason))) => *reason = failure.reason(),
            (Some(failure), down @ None) => {
                let reason = failure.reason();
                tracing::warn!(%reason, "the database cannot be connected to");
                *down = Some((Instant::now(), reason));
            }
        }
    }
}
