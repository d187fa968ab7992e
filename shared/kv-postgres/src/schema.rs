//! What the database of a store has: a relation for each keyspace, and one row about the store.

use tokio_postgres::Client;
use trestle_model::time::Ticks;

use crate::{PostgresError, failure::Failure, session::DatabaseConnection, statements::Sql};
use trestle_kv::service_clock::ClockCheckpoint;

/// The format of the relations. A newer one is refused.
const FORMAT: i32 = 1;

/// HeldDomains while relations are created, by whoever opens the database.
const LOCK_SCHEMA: &str = "SELECT pg_advisory_xact_lock(hashtextextended('trestle schema', 0))";

/// The row about the store.
const CREATE: &str = "\
CREATE TABLE trestle_store (\
one boolean PRIMARY KEY DEFAULT true CHECK (one), \
format integer NOT NULL, floor bigint NOT NULL, \
clock_time bigint, clock_elapsed bigint, clock_boot uuid)";

/// Raises the floor of versions, and stores service time with it.
pub(crate) const RAISE: &str = "\
UPDATE trestle_store SET floor = greatest(floor, $1), \
clock_time = $2, clock_elapsed = $3, clock_boot = $4::text::uuid WHERE one";

/// Oldest version of the server: older ones are no longer maintained by its project.
const SERVER_MIN: i32 = 140_000;

/// What a server says of itself that speaks the protocol and has other locks.
const OTHERS: [&str; 6] =
    ["CockroachDB", "-YB-", "Yugabyte", "Redshift", "Greenplum", "Materialize"];

/// What is known of the store when it is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoreRow {
    /// No stored version is greater.
    pub(crate) floor: Ticks,
    /// Service time at that time.
    pub(crate) checkpoint: Option<ClockCheckpoint>,
}

/// How durable the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its version.
    pub version: String,
    /// Whether it writes to stable storage.
    pub fsync: bool,
    /// When it answers a commit.
    pub synchronous_commit: String,
    /// Which standbys it waits for; empty if for none.
    pub synchronous_standbys: String,
    /// Whether it takes changes.
    pub is_primary: bool,
}

impl ServerStatus {
    /// Whether an acknowledged change survives a crash of the server.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.fsync && self.synchronous_commit != "off"
    }

    /// Standbys that have a change before it is acknowledged. Those that are connected are not counted: the server
    /// shows them to privileged users only, and no change is acknowledged while there are too few.
    #[must_use]
    pub fn standbys(&self) -> u32 {
        let waits_for_none = ["off", "local"].contains(&self.synchronous_commit.as_str());
        if waits_for_none || self.synchronous_standbys.trim().is_empty() {
            return 0;
        }
        // `ANY 2 (a, b)`, `FIRST 2 (a, b)`, `2 (a, b)`; or a list, of which it waits for one.
        let counted = self.synchronous_standbys.split_once('(');
        let count = counted.and_then(|(count, _)| count.split_whitespace().last()?.parse().ok());
        count.unwrap_or(1)
    }
}

/// Checks the server, and creates what is missing.
pub(crate) async fn prepare(
    connection: &DatabaseConnection,
    statements: &[Sql],
) -> Result<ServerStatus, PostgresError> {
    let client = &connection.client;
    let server = check_server(client).await?;
    client.batch_execute("BEGIN").await.map_err(Failure::from)?;
    client.query(LOCK_SCHEMA, &[]).await.map_err(Failure::from)?;
    create(client, statements).await?;
    client.batch_execute("COMMIT").await.map_err(Failure::from)?;
    Ok(server)
}

/// What a server says of itself, and the number of its version.
pub(crate) async fn server_status(client: &Client) -> Result<(ServerStatus, i32), Failure> {
    let sql = "SELECT version(), current_setting('server_version_num')::integer, \
               current_setting('fsync') = 'on', current_setting('synchronous_commit'), \
               current_setting('synchronous_standby_names'), \
               pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'";
    let row = client.query_one(sql, &[]).await?;
    let status = ServerStatus {
        version: row.try_get(0)?,
        fsync: row.try_get(2)?,
        synchronous_commit: row.try_get(3)?,
        synchronous_standbys: row.try_get(4)?,
        is_primary: !row.try_get::<_, bool>(5)?,
    };
    Ok((status, row.try_get(1)?))
}

/// Checks what a server says of itself.
pub(crate) async fn check_server(client: &Client) -> Result<ServerStatus, PostgresError> {
    let (status, number) = server_status(client).await?;
    let version = &status.version;
    let refused =
        |rule: &str| Err(PostgresError::Server { rule: rule.to_owned(), version: version.clone() });
    if !version.starts_with("PostgreSQL") || OTHERS.iter().any(|other| version.contains(other)) {
        return refused("must be PostgreSQL: the locks of other servers are not the same");
    }
    if number < SERVER_MIN {
        return refused("must be PostgreSQL 14 or later");
    }
    if !status.is_primary {
        return refused("must be a primary, which takes changes");
    }
    Ok(status)
}

/// The relations of a database, but those of the server itself.
pub(crate) async fn relations(client: &Client) -> Result<Vec<String>, Failure> {
    let sql = "SELECT c.relname::text FROM pg_class c \
               JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') \
               AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
               AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1";
    let found = client.query(sql, &[]).await?;
    Ok(found.iter().map(|row| row.get(0)).collect())
}

/// Whether these are the relations of a store; there may be none.
///
/// # Errors
/// [`PostgresError::Shared`].
pub(crate) fn is_store(relations: &[String]) -> Result<bool, PostgresError> {
    if relations.iter().any(|name| name == "trestle_store") {
        return Ok(true);
    }
    match relations.first() {
        Some(relation) => Err(PostgresError::Shared { relation: relation.clone() }),
        None => Ok(false),
    }
}

/// Raises the floor of versions, and leaves the rest of the row as it is.
pub(crate) async fn raise_floor(client: &Client, floor: Ticks) -> Result<(), Failure> {
    let sql = "UPDATE trestle_store SET floor = greatest(floor, $1) WHERE one";
    client.execute(sql, &[&stored(floor)]).await?;
    Ok(())
}

async fn create(client: &Client, statements: &[Sql]) -> Result<(), PostgresError> {
    let found = relations(client).await?;
    if !is_store(&found)? {
        client.batch_execute(CREATE).await.map_err(Failure::from)?;
        let sql = "INSERT INTO trestle_store (format, floor) VALUES ($1, 0)";
        client.execute(sql, &[&FORMAT]).await.map_err(Failure::from)?;
    }
    for sql in statements {
        if !found.contains(&sql.relation) {
            client.batch_execute(&sql.create()).await.map_err(Failure::from)?;
        }
    }
    Ok(())
}

/// Reads what is known of the store.
pub(crate) async fn read(connection: &DatabaseConnection) -> Result<StoreRow, PostgresError> {
    let sql =
        "SELECT format, floor, clock_time, clock_elapsed, clock_boot::text FROM trestle_store";
    let row = connection.client.query_one(sql, &[]).await.map_err(Failure::from)?;
    let format: i32 = row.get(0);
    if format != FORMAT {
        return Err(PostgresError::Format { found: format, known: FORMAT });
    }
    let (time, elapsed): (Option<i64>, Option<i64>) = (row.get(2), row.get(3));
    let boot: Option<String> = row.get(4);
    let checkpoint = || {
        Some(ClockCheckpoint {
            time: ticks(time?)?,
            elapsed: u64::try_from(elapsed?).ok()?,
            boot_id: u128::from_str_radix(&boot?.replace('-', ""), 16).ok()?,
        })
    };
    let floor = ticks(row.get(1)).unwrap_or(Ticks::MIN);
    Ok(StoreRow { floor, checkpoint: checkpoint() })
}

/// A time as it is stored.
pub(crate) fn ticks(stored: i64) -> Option<Ticks> {
    Ticks::new(u64::try_from(stored).ok()?)
}

/// A time to store. Times end in the year 9999, which is far below the greatest integer.
pub(crate) fn stored(ticks: Ticks) -> i64 {
    ticks.get().cast_signed()
}
