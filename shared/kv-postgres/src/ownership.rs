//! One process at a time on a store, where its services need that: others wait, and one takes over when it is gone.
//!
//! *Who is alive* is a lock of a session, on a connection of its own: it ends with the process, with its machine, and
//! where the process stands still for longer than [`SILENT_MAX`]. *Who may write* is a number in the store: whoever
//! gets the lock writes a new one, once every transaction of the process before has ended, and each one compares it.
//! So a process that lost the lock without knowing, because it was paused or cut off, commits nothing after that,
//! whatever the clocks show.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::sleep;
use tokio_postgres::Client;
use trestle_kv::Lock;

use crate::{
    address::PostgresAddress, failure::Failure, session::DatabaseConnection, stuck::end_stuck,
};

/// How often the lock is tried by a process that waits, and confirmed by the one that has it.
const EVERY: Duration = Duration::from_secs(1);

/// A connection that says nothing for so long is ended by the server.
const SILENT_MAX: &str = "\
SET idle_session_timeout = '5s'; SET lock_timeout = 0; SET tcp_keepalives_idle = 4; SET tcp_keepalives_interval = 2; \
SET tcp_keepalives_count = 2";

/// The lock of the process that is alive.
const TRY: &str = "SELECT pg_try_advisory_lock(hashtextextended('trestle owner', 0))";

/// The number of the lock that each transaction shares, and that a new owner takes alone. Domains have hashes: one with
/// this number waits for new owners, and for nothing else.
const FENCE: i64 = 0x7472_6573_746c_6531;

/// How each transaction of an owner holds the fence.
pub(crate) const SHARED_FENCE: (i64, Lock) = (FENCE, Lock::Shared);

/// Why the store of another owner takes no changes.
const TAKEN_OVER: &str = "another process has taken the store over";

/// What this process has.
pub(crate) struct Ownership {
    /// What the store has as long as this process owns it.
    pub(crate) number: i64,
    lost: OnceLock<Arc<str>>,
    is_closed: AtomicBool,
}

impl Ownership {
    /// Waits until no other process is alive, and takes the store over. Calls `waiting` once if it has to wait.
    pub(crate) async fn take(
        address: &PostgresAddress,
        waiting: impl FnOnce(),
    ) -> Result<(Arc<Self>, DatabaseConnection), Failure> {
        let number = rand::random_range(1..i64::MAX);
        let mut waiting = Some(waiting);
        let connection = loop {
            match taken(address, number, &mut waiting).await {
                Ok(connection) => break connection,
                // It waits on, also while the database is away.
                Err(failure) if waiting.is_none() => {
                    tracing::warn!(reason = %failure.reason(), "the store cannot be waited for");
                    sleep(EVERY).await;
                }
                Err(failure) => return Err(failure),
            }
        };
        let (lost, is_closed) = Default::default();
        Ok((Arc::new(Self { number, lost, is_closed }), connection))
    }

    /// Keeps the lock until this process loses the store, or the engine is closed.
    pub(crate) async fn keep(
        self: Arc<Self>,
        address: PostgresAddress,
        connection: DatabaseConnection,
    ) {
        let mut connection = Some(connection);
        while self.lost().is_none() && !self.is_closed.load(Relaxed) {
            sleep(EVERY).await;
            let kept = match connection.take() {
                Some(held) => held.client.batch_execute("SELECT 1").await.is_ok().then_some(held),
                None => None,
            };
            connection = match kept {
                Some(held) => Some(held),
                None => self.again(&address).await,
            };
        }
    }

    /// Locks again after the connection was lost. The database may be away for a while.
    async fn again(&self, address: &PostgresAddress) -> Option<DatabaseConnection> {
        let locked = async {
            let connection = alive(address).await?;
            let is_locked = is_locked(&connection).await?;
            // Another process may have had the store meanwhile.
            self.check(owner(&connection).await?);
            Ok::<_, Failure>(is_locked.then_some(connection))
        };
        match locked.await {
            // The server may think our own connection alive for some seconds.
            Ok(connection) => connection,
            Err(failure) => {
                tracing::debug!(reason = %failure.reason(), "the lock of the store cannot be confirmed");
                None
            }
        }
    }

    /// Compares the number that a transaction read.
    pub(crate) fn check(&self, found: Option<i64>) {
        if found != Some(self.number) {
            self.lose();
        }
    }

    /// Why the store takes no changes of this process, once it is lost.
    pub(crate) fn lost(&self) -> Option<Arc<str>> {
        self.lost.get().cloned()
    }

    pub(crate) fn close(&self) {
        self.is_closed.store(true, Relaxed);
    }

    fn lose(&self) {
        if self.lost.set(TAKEN_OVER.into()).is_ok() {
            tracing::error!("{TAKEN_OVER}");
        }
    }
}

/// A connection that has the lock, once no other one has, and whose number is in the store. Calls `waiting`, if it is
/// there, where it has to wait.
async fn taken(
    address: &PostgresAddress,
    number: i64,
    waiting: &mut Option<impl FnOnce()>,
) -> Result<DatabaseConnection, Failure> {
    let connection = alive(address).await?;
    while !is_locked(&connection).await? {
        if let Some(waiting) = waiting.take() {
            waiting();
        }
        sleep(EVERY).await;
    }
    let client = &connection.client;
    while let Err(failure) = fenced(client).await {
        client.batch_execute("ROLLBACK").await?;
        match failure.is_lock_timeout() {
            true => end_stuck(client).await?,
            false => return Err(failure),
        }
    }
    client.execute("UPDATE trestle_store SET owner = $1 WHERE one", &[&number]).await?;
    client.batch_execute("COMMIT").await?;
    Ok(connection)
}

/// Begins a transaction that waits for every one of the process before, for a while.
async fn fenced(client: &Client) -> Result<(), Failure> {
    client.batch_execute("BEGIN; SET LOCAL lock_timeout = '1s'").await?;
    client.query("SELECT pg_advisory_xact_lock($1)", &[&FENCE]).await?;
    Ok(())
}

/// A connection that lives as long as the process does.
async fn alive(address: &PostgresAddress) -> Result<DatabaseConnection, Failure> {
    let connection = DatabaseConnection::open(address).await?;
    connection.client.batch_execute(SILENT_MAX).await?;
    Ok(connection)
}

/// The number in the store.
async fn owner(connection: &DatabaseConnection) -> Result<Option<i64>, Failure> {
    let sql = "SELECT owner FROM trestle_store WHERE one";
    Ok(connection.client.query_one(sql, &[]).await?.try_get(0)?)
}

async fn is_locked(connection: &DatabaseConnection) -> Result<bool, Failure> {
    Ok(connection.client.query_one(TRY, &[]).await?.try_get(0)?)
}
