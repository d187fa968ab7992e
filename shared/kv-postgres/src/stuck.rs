//! Processes that stand still while the server sends them rows.
//!
//! The server ends a session that is silent within a transaction, but none that waits until its process reads what it
//! is sent, whatever its timeouts are: that one keeps its locks for as long. So whoever waits for a lock ends those.

use tokio_postgres::Client;

use crate::failure::Failure;

/// Ends the sessions of this user and database that hold locks of domains and have waited for their process for as long
/// as one may be silent.
const END_STUCK: &str = "\
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
WHERE datname = current_database() AND usename = current_user AND wait_event = 'ClientWrite' \
AND query_start < clock_timestamp() - interval '4 s' \
AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted)";

/// Ends sessions whose process has read nothing for seconds. Those of a process that reads are not found: it takes the
/// rows of a session as they arrive.
pub(crate) async fn end_stuck(client: &Client) -> Result<(), Failure> {
    let ended: i64 = client.query_one(END_STUCK, &[]).await?.try_get(0)?;
    if ended > 0 {
        tracing::warn!(sessions = ended, "ended sessions of a process that stands still");
    }
    Ok(())
}
