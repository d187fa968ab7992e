//! The engine of several machines, over PostgreSQL: processes share a store by its address.
//!
//! A change goes to a queue, and one of several workers commits it, with others that wait, over a connection of its
//! own: one flight of requests locks the domains of the group and reads, one writes and commits. Locks are those that
//! PostgreSQL has for applications, by numbers: they are taken in one order, before anything is read, so groups of
//! several processes neither deadlock nor fail and repeat. `scheduler` says what is committed together, `group` runs
//! the decisions, `transaction` has the two flights, `worker` what follows from each failure.
//!
//! A keyspace is a relation. A row of an index is shorter than a key may be: `place` has the rows of long keys, `scan`
//! reads through them. `clock` makes times and versions, `schema` the relations.
//!
//! What is acknowledged is as durable as the server: [`ServerStatus`] says whether it syncs, and whether a standby has
//! it. A commit whose answer is lost, or whose wait for a standby is ended by an operator, is unknown.

mod address;
mod clock;
mod domain_queues;
mod failure;
mod group;
mod pipeline;
mod place;
mod readers;
mod row_changes;
mod scan;
mod scheduler;
mod schema;
mod session;
mod shared;
mod statements;
mod stats;
mod stuck;
#[cfg(feature = "testing")]
pub mod testing;
mod transaction;
mod worker;

use std::sync::{Arc, atomic::Ordering::Relaxed};

use async_trait::async_trait;
use bytes::Bytes;
use trestle_kv::{
    Change, CommitError, Durability, Engine, EngineError, EngineStatus, GroupObserver, Keyspace,
    Keyspaces, Limits, PointHook, Scan, ScanLimit, Snapshot, Span, Version,
};
use trestle_model::time::{Clock, Ticks};

pub use crate::{
    address::PostgresAddress,
    schema::ServerStatus,
    stats::{ConnectionPool, PostgresStats, RetryReason},
};
use crate::{
    clock::EngineClock,
    failure::Failure,
    readers::{Readers, completed},
    scheduler::{ChangeScheduler, WaitingChange},
    session::{DatabaseConnection, WriteSession},
    shared::Shared,
    statements::Sql,
    stats::WorkerCounters,
    worker::GroupWorker,
};

/// Workers of a process: more add nothing where groups are as long as the flights of others.
const WORKERS: usize = 8;

/// How to open a [`PostgresEngine`].
#[derive(Clone)]
pub struct PostgresOptions {
    /// Where the database is.
    pub address: PostgresAddress,
    /// Every keyspace. New ones may be added later.
    pub keyspaces: Vec<Keyspace>,
    /// Where versions and time come from, for tests. Default: the clock of the server.
    pub clock: Option<Arc<dyn Clock>>,
    /// Observes groups. Default: nothing.
    pub on_group: GroupObserver,
    /// Steps in at points of a commit, for tests. Default: none.
    pub on_point: Option<PointHook>,
}

impl PostgresOptions {
    /// The defaults for an address.
    #[must_use]
    pub fn new(address: PostgresAddress, keyspaces: impl Into<Vec<Keyspace>>) -> Self {
        let (keyspaces, on_group) = (keyspaces.into(), Arc::new(|_| {}));
        Self { address, keyspaces, clock: None, on_group, on_point: None }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PostgresError {
    /// The address is not one.
    #[error("the address of the database {rule}")]
    Address {
        /// What is wrong with it.
        rule: String,
    },
    /// The server is not one that the engine works on.
    #[error("the database server {rule}: found=`{version}`")]
    Server {
        /// What it must be.
        rule: String,
        /// What it says of itself.
        version: String,
    },
    /// The database has relations of something else.
    #[error(
        "the database must be empty or a store: it has another relation, relation=`{relation}`"
    )]
    Shared {
        /// One of them.
        relation: String,
    },
    /// The store was written by another version of Trestle.
    #[error("the store has another format: found=`{found}`, known=`{known}`")]
    Format {
        /// Its format.
        found: i32,
        /// The format of this program.
        known: i32,
    },
    /// The keyspaces are a defect of the program.
    #[error("{reason}")]
    Keyspaces {
        /// What is wrong with them.
        reason: String,
    },
    /// The database cannot be reached, or fails.
    #[error("the database is unavailable: {reason}")]
    Unavailable {
        /// Why.
        reason: Arc<str>,
    },
}

impl From<Failure> for PostgresError {
    fn from(failure: Failure) -> Self {
        Self::Unavailable { reason: failure.reason() }
    }
}

/// A handle on a store in PostgreSQL. Its workers end, after what waits, when it is dropped.
pub struct PostgresEngine {
    shared: Arc<Shared>,
    readers: Arc<Readers>,
    server: ServerStatus,
    floor: Ticks,
}

impl PostgresEngine {
    /// Opens a store, and creates what it needs in an empty database. Must be called on the runtime that its
    /// connections are to live on.
    ///
    /// # Errors
    /// Every kind of [`PostgresError`].
    pub async fn open(options: PostgresOptions) -> Result<Self, PostgresError> {
        let PostgresOptions { address, keyspaces, clock, on_group, on_point } = options;
        let keyspaces =
            Keyspaces::new(keyspaces).map_err(|reason| PostgresError::Keyspaces { reason })?;
        let statements: Vec<Sql> = keyspaces.list().iter().map(Sql::of).collect();
        let connection = DatabaseConnection::open(&address).await?;
        let server = schema::prepare(&connection, &statements).await?;
        let store = schema::read(&connection).await?;
        let session = WriteSession::prepare(connection, &statements).await?;
        let mut now = transaction::server_time(&session).await?.now;
        if let Some(wait) = clock::wait_for_floor(&store, now).filter(|_| clock.is_none()) {
            tokio::time::sleep(wait).await;
            now = transaction::server_time(&session).await?.now;
        }
        let shared = Arc::new(Shared {
            address,
            keyspaces,
            statements,
            limits: Limits::default(),
            clock: EngineClock::open(&store, now, clock),
            scheduler: ChangeScheduler::default(),
            on_group,
            on_point,
            counters: WorkerCounters::default(),
            down: shared::DownSince::default(),
        });
        let sessions = std::iter::once(session).map(Some).chain(std::iter::repeat_with(|| None));
        for session in sessions.take(WORKERS) {
            tokio::spawn(GroupWorker::new(Arc::clone(&shared), session).run());
        }
        let readers = Arc::new(Readers::new(Arc::clone(&shared)));
        Ok(Self { readers, shared, server, floor: store.floor })
    }

    /// What a server says of itself. Nothing is changed.
    ///
    /// # Errors
    /// [`PostgresError::Server`], [`PostgresError::Unavailable`].
    pub async fn probe(address: &PostgresAddress) -> Result<ServerStatus, PostgresError> {
        let connection = DatabaseConnection::open(address).await?;
        schema::check_server(&connection.client).await
    }

    /// Whether there is a store in a database. Nothing is changed.
    ///
    /// # Errors
    /// [`PostgresError::Shared`] for a database of something else, [`PostgresError::Server`],
    /// [`PostgresError::Unavailable`].
    pub async fn exists(address: &PostgresAddress) -> Result<bool, PostgresError> {
        let connection = DatabaseConnection::open(address).await?;
        schema::check_server(&connection.client).await?;
        schema::is_store(&schema::relations(&connection.client).await?)
    }

    /// The floor of versions when the store was opened: no change before has a greater version.
    #[must_use]
    pub fn version_floor(&self) -> Ticks {
        self.floor
    }

    /// Raises the floor of versions to a time, unless it is there: every change from now on has a greater version, and
    /// service time is not before it in processes that open the store from now on.
    ///
    /// # Errors
    /// [`PostgresError::Unavailable`].
    pub async fn raise_floor(&self, floor: Ticks) -> Result<(), PostgresError> {
        let connection = DatabaseConnection::open(&self.shared.address).await?;
        schema::raise_floor(&connection.client, floor).await?;
        self.shared.clock.versions().raise(floor);
        Ok(())
    }

    /// What the server says of itself now.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] for a database that is away, or is silent for ten seconds.
    pub async fn server_now(&self) -> Result<ServerStatus, EngineError> {
        self.readers.server_status().await
    }

    /// What the engine did and has. Asks the database nothing.
    #[must_use]
    pub fn stats(&self) -> PostgresStats {
        let counters = &self.shared.counters;
        let [reads, snapshots] = self.readers.connections();
        let commits = ConnectionPool {
            name: "commits",
            used: counters.busy.load(Relaxed),
            idle: counters.idle.load(Relaxed),
            max: WORKERS as u64,
        };
        PostgresStats {
            queue_depth: self.shared.scheduler.waiting() as u64,
            shed: counters.shed.load(Relaxed),
            bytes: counters.bytes.load(Relaxed),
            retries: counters.retries(),
            unknown: counters.unknown.load(Relaxed),
            oldest_snapshot: self.readers.oldest(),
            connections: [commits, reads, snapshots],
        }
    }

    /// What the server said of itself when the store was opened.
    #[must_use]
    pub fn server(&self) -> &ServerStatus {
        &self.server
    }
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        self.shared.scheduler.close();
    }
}

#[async_trait]
impl Engine for PostgresEngine {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        let readers = Arc::clone(&self.readers);
        let taken = tokio::spawn(async move { readers.snapshot().await });
        Ok(Box::new(completed(taken).await?))
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        self.readers.get(key).await
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        self.readers.scan(span, limit).await
    }

    async fn commit(&self, mut change: Change) -> Result<Version, CommitError> {
        change.spec.check(&self.shared.keyspaces, &self.shared.limits)?;
        let (pending, answered) = WaitingChange::new(change);
        let pushed = self.shared.scheduler.push(pending);
        if let Err(CommitError::Busy { .. }) = pushed {
            self.shared.counters.shed.fetch_add(1, Relaxed);
        }
        pushed?;
        let lost = |_| CommitError::Unknown { reason: "the change was not answered".into() };
        answered.await.map_err(lost)?
    }

    fn limits(&self) -> Limits {
        self.shared.limits
    }

    fn now(&self) -> Ticks {
        self.shared.clock.now()
    }

    fn status(&self) -> EngineStatus {
        EngineStatus {
            name: "postgres",
            durability: if self.server.is_durable() { Durability::Always } else { Durability::Os },
            stopped: None,
            disk: None,
            is_read_only: false,
            clock_offset_ms: self.shared.clock.offset_ms(),
        }
    }
}
