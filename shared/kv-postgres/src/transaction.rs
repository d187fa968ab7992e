//! The two flights of a group: locks and reads; then writes and the commit.

use bytes::Bytes;
use foldhash::{HashMap, HashMapExt as _};
use futures::future::{join_all, join4};
use tokio_postgres::types::ToSql;
use trestle_kv::{Keyspaces, Lock};
use trestle_model::time::Ticks;

use crate::{
    clock::NewFloor,
    failure::Failure,
    group::{GroupWrites, RowsByKeyspace},
    pipeline::{PipelinedRequest, pipelined},
    row_changes::{RowChanges, slices},
    schema::{stored, ticks},
    session::WriteSession,
    stats::RetryReason,
};

/// From the year 1 to 1970, in microseconds.
const UNIX_MICROS: i64 = 62_135_596_800_000_000;
/// Ticks of a microsecond.
const PER_MICRO: i64 = 10;

/// What a transaction read once it had its locks.
pub(crate) struct LockedRows {
    pub(crate) values: HashMap<Bytes, Bytes>,
    /// The newest version of what was read, and of what will be written without a read.
    pub(crate) newest: Ticks,
    /// The time.
    pub(crate) time: ServerTime,
}

/// What the server has of the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerTime {
    /// Its clock.
    pub(crate) now: Ticks,
    /// The floor of versions.
    pub(crate) floor: Ticks,
}

/// Begins a transaction that holds these domains, and reads rows. Of `rewritten` only the versions are needed.
pub(crate) async fn begin(
    session: &WriteSession,
    domains: &[(i64, Lock)],
    rows: &RowsByKeyspace,
    rewritten: &RowsByKeyspace,
) -> Result<LockedRows, Failure> {
    let client = session.client();
    let numbers: Vec<i64> = domains.iter().map(|(number, _)| *number).collect();
    let exclusive: Vec<bool> = domains.iter().map(|(_, lock)| *lock == Lock::Exclusive).collect();
    let locks: [&(dyn ToSql + Sync); 2] = [&numbers, &exclusive];
    // Each statement sees what is committed when it begins: the reads see what the locks waited for.
    let (began, locked, read, time) = join4(
        client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
        client.query(&session.statements.lock, &locks),
        read_all(session, rows, rewritten),
        server_time(session),
    )
    .await;
    began?;
    locked?;
    let (values, newest) = read?;
    Ok(LockedRows { values, newest, time: time? })
}

/// The time of the server.
pub(crate) async fn server_time(session: &WriteSession) -> Result<ServerTime, Failure> {
    let row = session.client().query_one(&session.statements.clock, &[]).await?;
    let (micros, floor): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let since = micros.saturating_add(UNIX_MICROS).saturating_mul(PER_MICRO);
    let no_time = || Failure::lost("the clock of the database shows no time");
    let now = ticks(since).ok_or_else(no_time)?;
    Ok(ServerTime { now, floor: ticks(floor).ok_or_else(no_time)? })
}

async fn read_all(
    session: &WriteSession,
    rows: &RowsByKeyspace,
    rewritten: &RowsByKeyspace,
) -> Result<(HashMap<Bytes, Bytes>, Ticks), Failure> {
    let read = needed(rows).into_iter().map(|(keyspace, rows)| async move {
        let statement = &session.of(keyspace)?.read;
        Ok::<_, Failure>(session.client().query(statement, &[&rows]).await?)
    });
    let versions = needed(rewritten).into_iter().map(|(keyspace, rows)| async move {
        let statement = &session.of(keyspace)?.newest;
        Ok::<_, Failure>(
            session.client().query_one(statement, &[&rows]).await?.try_get::<_, i64>(0)?,
        )
    });
    let (read, versions) = futures::future::join(join_all(read), join_all(versions)).await;
    let (mut values, mut newest) = (HashMap::new(), 0);
    for rows in read {
        for row in rows? {
            let (key, value): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
            values.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
            newest = newest.max(row.try_get::<_, i64>(2)?);
        }
    }
    for version in versions {
        newest = newest.max(version?);
    }
    Ok((values, ticks(newest).unwrap_or(Ticks::MIN)))
}

/// The keyspaces of which there are rows, with those.
fn needed(all: &RowsByKeyspace) -> Vec<(usize, Vec<&[u8]>)> {
    let some = all.iter().enumerate().filter(|(_, rows)| !rows.is_empty());
    some.map(|(index, rows)| (index, slices(rows))).collect()
}

/// How a transaction ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It is committed, as durable as the server is configured.
    Committed,
    /// Nothing of it is stored.
    RolledBack(Failure),
    /// It is committed, or will be, or not.
    Unknown(Failure),
}

impl Ended {
    /// Whether the server takes no changes.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, Self::RolledBack(failure) if failure.is(RetryReason::ReadOnly))
    }
}

/// Writes, and commits.
pub(crate) async fn commit(
    session: &WriteSession,
    keyspaces: &Keyspaces,
    writes: &GroupWrites,
    floor: Option<NewFloor>,
) -> Ended {
    let _ = session.take_cancelled_wait();
    let rows = RowChanges::of(writes, keyspaces);
    let mut requests: Vec<PipelinedRequest<'_>> = Vec::new();
    for (keyspace, rows) in rows.iter().enumerate() {
        if let Err(failure) = rows.send(session, keyspace, &mut requests) {
            return Ended::RolledBack(failure);
        }
    }
    if let Some(floor) = floor {
        requests.push(Box::pin(raise(session, floor)));
    }
    let statements = requests.len();
    requests.push(Box::pin(async { Ok(session.client().batch_execute("COMMIT").await?) }));
    let mut results = pipelined(requests).await;
    let committed = results.split_off(statements).pop();
    // The commit of a transaction in which a statement failed succeeds, as a rollback.
    if let Some(failure) = results.into_iter().find_map(Result::err) {
        return match failure {
            Failure::Rejected { .. } => Ended::RolledBack(failure),
            Failure::Lost(_) => Ended::Unknown(failure),
        };
    }
    match committed {
        Some(Ok(())) if session.take_cancelled_wait() => Ended::Unknown(Failure::lost(
            "the wait for the standby was ended: the change is on the primary alone",
        )),
        Some(Ok(())) => Ended::Committed,
        Some(Err(failure)) if failure.is_conflict() => Ended::RolledBack(failure),
        Some(Err(failure)) => Ended::Unknown(failure),
        None => Ended::Unknown(Failure::lost("the commit was not answered")),
    }
}

/// Ends a transaction that wrote nothing, or failed.
pub(crate) async fn roll_back(session: &WriteSession) -> Result<(), Failure> {
    Ok(session.client().batch_execute("ROLLBACK").await?)
}

async fn raise(session: &WriteSession, new: NewFloor) -> Result<(), Failure> {
    let (time, elapsed, boot) = match new.checkpoint {
        Some(it) => (
            Some(stored(it.time)),
            i64::try_from(it.elapsed).ok(),
            Some(format!("{:032x}", it.boot_id)),
        ),
        None => (None, None, None),
    };
    let floor = stored(new.floor);
    session.client().execute(&session.statements.raise, &[&floor, &time, &elapsed, &boot]).await?;
    Ok(())
}
