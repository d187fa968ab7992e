//! Removes the entities of deleted tables, a bounded step at a time, and goes on where it stopped after a restart.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use trestle_kv::{Engine, Entry, Scan, ScanLimit, Span, Write, after_key, transact};
use trestle_service::clock::{Ticks, WriteClock};

use crate::{
    error::TableError,
    keys::{self, DeadTable, TableId},
};

/// What one step removes at most: small beside what foreground writes put into a group.
const STEP: ScanLimit = ScanLimit { rows: 500, bytes: 1024 * 1024 };
/// Most deleted tables looked at in one tick, and counted. Those that are empty and only watched cost a seek.
const TABLES_MAX: usize = 10_000;
/// How long a deleted table is watched for writes that were under way when it was deleted. They were answered as
/// done, lawfully, since they can be ordered before the deletion; what they left must still be removed. Longer than
/// any call may take.
const GRACE: Duration = Duration::from_secs(120);

/// The background work on deleted tables.
#[derive(Clone)]
pub(crate) struct Sweeper {
    engine: Arc<dyn Engine>,
    clock: Arc<WriteClock>,
}

impl Sweeper {
    /// Works on `engine`.
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Arc<WriteClock>) -> Self {
        Self { engine, clock }
    }

    /// Takes one step on some deleted tables. True when another step should follow at once.
    ///
    /// # Errors
    /// A failed read or commit; the next tick repeats the step.
    pub(crate) async fn tick(&self) -> Result<bool, TableError> {
        let (mut more, mut failed) = (false, None);
        for entry in self.dead().await? {
            // One table that cannot be swept must not keep the others.
            match self.step(&entry).await {
                Ok(found) => more |= found,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(more), Err)
    }

    /// How many deleted tables are still being worked on, up to a bound.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn pending(&self) -> Result<usize, TableError> {
        Ok(self.dead().await?.len())
    }

    async fn dead(&self) -> Result<Vec<Entry>, TableError> {
        let limit = ScanLimit { rows: TABLES_MAX, bytes: usize::MAX };
        let snapshot = self.engine.snapshot().await?;
        Ok(snapshot.scan(&keys::dead_tables(), limit).await?.entries)
    }

    async fn step(&self, entry: &Entry) -> Result<bool, TableError> {
        let id = keys::dead_table_id(&entry.key)?;
        let dead = DeadTable::decode(&entry.value)?;
        let over = grace_is_over(dead.deleted_at, self.clock.next());
        let snapshot = self.engine.snapshot().await?;
        let whole = keys::entities(id);
        let rest = Span::new(dead.resume.clone(), whole.end.clone());
        let mut scan = snapshot.scan(&rest, STEP).await?;
        if scan.entries.is_empty() && over && dead.resume != whole.start {
            // The second look: what writes under way left before the place where sweeping was.
            scan = snapshot.scan(&whole, STEP).await?;
        }
        drop(snapshot);
        let writes = decide_step(id, &dead, &scan, over);
        let more = !scan.entries.is_empty();
        if !writes.is_empty() {
            let write = move |_: &[Option<Bytes>]| Ok::<_, TableError>((writes.clone(), ()));
            transact(&*self.engine, Vec::new(), write).await??;
        }
        Ok(more)
    }
}

/// What one step writes: removes what the scan found and notes how far it came. A table in which nothing is left is
/// forgotten once the grace is over. No step puts more than it removes, so that a full disk does not stop it.
fn decide_step(id: TableId, dead: &DeadTable, scan: &Scan, grace_is_over: bool) -> Vec<Write> {
    let key = keys::dead_table(id);
    let Some(last) = scan.entries.last() else {
        let forget = [key, keys::access_policies(id)].map(|key| Write::Delete { key });
        return if grace_is_over { forget.into() } else { Vec::new() };
    };
    let removed = scan.entries.iter().map(|entry| Write::Delete { key: entry.key.clone() });
    let resume = after_key(&last.key).into();
    let progress = DeadTable { deleted_at: dead.deleted_at, resume };
    removed.chain([Write::Put { key, value: progress.encode() }]).collect()
}

fn grace_is_over(deleted_at: Ticks, now: Ticks) -> bool {
    let passed = now.get().saturating_sub(deleted_at.get());
    u128::from(passed) * 100 >= GRACE.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: TableId = TableId(5);

    fn dead(resume: Bytes) -> DeadTable {
        DeadTable { deleted_at: Ticks::new(1).expect("in range"), resume }
    }

    fn nothing() -> Scan {
        Scan { entries: Vec::new(), more: false }
    }

    #[test]
    fn a_step_removes_what_it_found_and_notes_where_to_go_on() {
        let start = keys::entities(ID).start;
        let row = keys::row(ID, "p", "r");
        let entries = vec![Entry { key: row.clone(), value: Bytes::new() }];

        let writes = decide_step(ID, &dead(start), &Scan { entries, more: true }, false);

        let progress = dead(after_key(&row).into()).encode();
        assert_eq!(
            writes,
            [Write::Delete { key: row }, Write::Put { key: keys::dead_table(ID), value: progress }]
        );
    }

    #[test]
    fn an_empty_table_is_forgotten_only_after_the_grace() {
        let swept = dead(keys::row(ID, "p", "r"));

        assert_eq!(decide_step(ID, &swept, &nothing(), false), []);
        let forget = [keys::dead_table(ID), keys::access_policies(ID)];
        let forget = forget.map(|key| Write::Delete { key });
        assert_eq!(decide_step(ID, &swept, &nothing(), true), forget);
    }

    #[tokio::test]
    async fn neither_many_deleted_tables_nor_a_broken_one_hold_up_the_next() {
        let engine: Arc<dyn Engine> = Arc::new(trestle_kv::MemoryEngine::new());
        let clock = Arc::new(WriteClock::new(Arc::new(trestle_service::clock::SystemClock)));
        let row = keys::row(TableId(50), "p", "r");
        let dead =
            |id| DeadTable { deleted_at: Ticks::MAX, resume: keys::entities(TableId(id)).start };
        let mut writes: Vec<_> = (2..=50)
            .map(|id| Write::Put { key: keys::dead_table(TableId(id)), value: dead(id).encode() })
            .collect();
        let broken = Bytes::from_static(b"broken");
        writes.push(Write::Put { key: keys::dead_table(TableId(1)), value: broken });
        writes.push(Write::Put { key: row.clone(), value: Bytes::new() });
        let put = move |_: &[Option<Bytes>]| Ok::<_, TableError>((writes.clone(), ()));
        transact(&*engine, Vec::new(), put).await.expect("committed").expect("decided");

        let outcome = Sweeper::new(Arc::clone(&engine), clock).tick().await;

        assert!(matches!(outcome, Err(TableError::Corrupt(_))), "the broken one is reported");
        let snapshot = engine.snapshot().await.expect("readable");
        assert_eq!(snapshot.get(&row).await.expect("readable"), None, "the others are swept");
    }

    #[test]
    fn the_grace_ends_after_its_time() {
        let at = |seconds| Ticks::from_unix(seconds, 0).expect("in range");
        assert!(!grace_is_over(at(0), at(119)));
        assert!(grace_is_over(at(0), at(120)));
        assert!(!grace_is_over(at(10), at(0)), "a clock that stepped back");
    }
}
