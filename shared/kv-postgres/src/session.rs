//! A connection to the database, with its prepared statements.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::future::try_join_all;
use tokio_postgres::{AsyncMessage, Client, Config, Statement, error::DbError};

use crate::{
    address::PostgresAddress,
    failure::Failure,
    schema::RAISE,
    statements::{CLOCK, LOCK, Sql},
};

/// What a session is set to, whatever the server's defaults are.
///
/// A process that is stopped inside of a transaction holds its locks for five seconds. Plans are those for any values:
/// a table that was analysed while it was empty would keep plans that read it whole.
const SETTINGS: &str = "\
SET idle_in_transaction_session_timeout = '5s'; \
SET lock_timeout = '5s'; \
SET statement_timeout = 0; \
SET client_min_messages = 'warning'; \
SET default_transaction_isolation = 'read committed'; \
SET plan_cache_mode = 'force_generic_plan'; \
SET jit = off; \
SET enable_seqscan = off; \
SET enable_bitmapscan = off";

/// The function of the server that waits for a standby: its warnings are known by it, as their text is translated.
const WAIT_FOR_STANDBY: &str = "SyncRepWaitForLSN";

/// Longest time until a new connection to a host can be used.
const OPENED_WITHIN: Duration = Duration::from_secs(6);

/// A connection. It ends when this is dropped.
pub(crate) struct DatabaseConnection {
    pub(crate) client: Client,
    /// Whether a commit returned although no standby has it: an operator, or a shutdown, ended the wait.
    is_wait_cancelled: Arc<AtomicBool>,
}

/// A connection with its prepared statements.
pub(crate) struct PreparedSession<S> {
    connection: DatabaseConnection,
    pub(crate) statements: S,
}

/// A connection of reads, with the statements of each keyspace.
pub(crate) type ReadSession = PreparedSession<Vec<ReadStatements>>;

/// A connection of a worker.
pub(crate) type WriteSession = PreparedSession<GroupStatements>;

/// What is prepared for a connection.
pub(crate) trait PreparedStatements: Sized + Send {
    /// Prepares it for these keyspaces.
    fn prepare(client: &Client, sql: &[Sql]) -> impl Future<Output = Result<Self, Failure>> + Send;
}

/// Those that read a keyspace.
pub(crate) struct ReadStatements {
    pub(crate) get: Statement,
    pub(crate) scan_up: Statement,
    pub(crate) scan_down: Statement,
}

/// Those of a group.
pub(crate) struct GroupStatements {
    pub(crate) lock: Statement,
    pub(crate) clock: Statement,
    pub(crate) raise: Statement,
    keyspaces: Vec<WriteStatements>,
}

/// Those that a group has for a keyspace.
pub(crate) struct WriteStatements {
    pub(crate) read: Statement,
    pub(crate) newest: Statement,
    pub(crate) upsert: Statement,
    pub(crate) point: Statement,
    pub(crate) delete: Statement,
    pub(crate) unpoint: Statement,
}

impl DatabaseConnection {
    /// Connects to the first host that is a primary.
    pub(crate) async fn open(address: &PostgresAddress) -> Result<Self, Failure> {
        let mut failure = Failure::lost("the address names no host");
        for host in address.hosts() {
            match within(Self::open_at(&host, address)).await {
                Ok(connection) => return Ok(connection),
                Err(failed) => failure = failed,
            }
        }
        Err(failure)
    }

    async fn open_at(host: &Config, address: &PostgresAddress) -> Result<Self, Failure> {
        let (client, mut connection) = host.connect(address.tls()?).await?;
        let is_wait_cancelled = Arc::new(AtomicBool::new(false));
        let noticed = Arc::clone(&is_wait_cancelled);
        // It ends with the client.
        tokio::spawn(async move {
            while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
                match message {
                    Ok(AsyncMessage::Notice(notice)) if is_cancelled_wait(&notice) => {
                        noticed.store(true, Relaxed);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "a connection to the database ended");
                        return;
                    }
                }
            }
        });
        client.batch_execute(SETTINGS).await?;
        Ok(Self { client, is_wait_cancelled })
    }
}

impl<S: PreparedStatements> PreparedSession<S> {
    /// Prepares the statements of these keyspaces.
    pub(crate) async fn prepare(
        connection: DatabaseConnection,
        sql: &[Sql],
    ) -> Result<Self, Failure> {
        let statements = within(S::prepare(&connection.client, sql)).await?;
        Ok(Self { connection, statements })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.connection.client
    }

    /// Whether the connection is there, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        !self.client().is_closed()
    }

    /// Whether a wait for the standby was ended since this was called last.
    pub(crate) fn take_cancelled_wait(&self) -> bool {
        self.connection.is_wait_cancelled.swap(false, Relaxed)
    }
}

impl ReadSession {
    /// The statements of a keyspace, by its index.
    pub(crate) fn of(&self, keyspace: usize) -> Result<&ReadStatements, Failure> {
        self.statements.get(keyspace).ok_or_else(no_keyspace)
    }
}

impl WriteSession {
    /// The statements of a keyspace, by its index.
    pub(crate) fn of(&self, keyspace: usize) -> Result<&WriteStatements, Failure> {
        self.statements.keyspaces.get(keyspace).ok_or_else(no_keyspace)
    }
}

fn no_keyspace() -> Failure {
    Failure::lost("no such keyspace")
}

impl PreparedStatements for Vec<ReadStatements> {
    async fn prepare(client: &Client, sql: &[Sql]) -> Result<Self, Failure> {
        let prepared = sql.iter().map(async |sql| {
            let (get, scan_up, scan_down) = tokio::try_join!(
                client.prepare(&sql.get),
                client.prepare(&sql.scan_up),
                client.prepare(&sql.scan_down),
            )?;
            Ok(ReadStatements { get, scan_up, scan_down })
        });
        try_join_all(prepared).await
    }
}

impl PreparedStatements for GroupStatements {
    async fn prepare(client: &Client, sql: &[Sql]) -> Result<Self, Failure> {
        let keyspaces = sql.iter().map(|sql| WriteStatements::prepare(client, sql));
        let (lock, clock, raise, keyspaces) = tokio::try_join!(
            client.prepare(LOCK),
            client.prepare(CLOCK),
            client.prepare(RAISE),
            try_join_all(keyspaces),
        )?;
        Ok(Self { lock, clock, raise, keyspaces })
    }
}

impl WriteStatements {
    async fn prepare(client: &Client, sql: &Sql) -> Result<Self, tokio_postgres::Error> {
        let (read, newest, upsert, point, delete, unpoint) = tokio::try_join!(
            client.prepare(&sql.read),
            client.prepare(&sql.newest),
            client.prepare(&sql.upsert),
            client.prepare(&sql.point),
            client.prepare(&sql.delete),
            client.prepare(&sql.unpoint),
        )?;
        Ok(Self { read, newest, upsert, point, delete, unpoint })
    }
}

/// Bounds what a server may take for a new connection: one that stands still accepts it and says nothing.
async fn within<T>(made: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let timed = tokio::time::timeout(OPENED_WITHIN, made).await;
    timed.unwrap_or_else(|_| Err(Failure::lost("the database accepts a connection and is silent")))
}

fn is_cancelled_wait(notice: &DbError) -> bool {
    notice.routine() == Some(WAIT_FOR_STANDBY)
}

#[cfg(test)]
mod tests;
