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
SET lock_timeout = '10s'; \
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
pub(crate) struct PreparedSession {
    connection: DatabaseConnection,
    pub(crate) lock: Statement,
    pub(crate) clock: Statement,
    pub(crate) raise: Statement,
    keyspaces: Vec<SessionStatements>,
}

/// The statements of a keyspace.
pub(crate) struct SessionStatements {
    pub(crate) get: Statement,
    pub(crate) read: Statement,
    pub(crate) scan_up: Statement,
    pub(crate) scan_down: Statement,
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

impl PreparedSession {
    /// Prepares the statements of these keyspaces.
    pub(crate) async fn prepare(
        connection: DatabaseConnection,
        sql: &[Sql],
    ) -> Result<Self, Failure> {
        let client = &connection.client;
        let keyspaces = sql.iter().map(|sql| SessionStatements::prepare(client, sql));
        let prepared = async {
            tokio::try_join!(
                async { Ok(client.prepare(LOCK).await?) },
                async { Ok(client.prepare(CLOCK).await?) },
                async { Ok(client.prepare(RAISE).await?) },
                try_join_all(keyspaces),
            )
        };
        let (lock, clock, raise, keyspaces) = within(prepared).await?;
        Ok(Self { connection, lock, clock, raise, keyspaces })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.connection.client
    }

    /// The statements of a keyspace, by its index.
    pub(crate) fn of(&self, keyspace: usize) -> Result<&SessionStatements, Failure> {
        self.keyspaces.get(keyspace).ok_or_else(|| Failure::lost("no such keyspace"))
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

impl SessionStatements {
    async fn prepare(client: &Client, sql: &Sql) -> Result<Self, Failure> {
        let (get, read, scan_up, scan_down, newest, upsert, point, delete, unpoint) = tokio::try_join!(
            client.prepare(&sql.get),
            client.prepare(&sql.read),
            client.prepare(&sql.scan_up),
            client.prepare(&sql.scan_down),
            client.prepare(&sql.newest),
            client.prepare(&sql.upsert),
            client.prepare(&sql.point),
            client.prepare(&sql.delete),
            client.prepare(&sql.unpoint),
        )?;
        Ok(Self { get, read, scan_up, scan_down, newest, upsert, point, delete, unpoint })
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
