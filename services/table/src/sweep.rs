//! Removes the entities of deleted tables, a bounded step at a time, and goes on where it stopped after a restart.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use trestle_kv::{Engine, Scan, ScanLimit, Write, after_key, transact};
use trestle_service::clock::{Ticks, WriteClock};

use crate::{
    error::TableError,
    keys::{self, DeadTable, TableId},
};

/// What one step removes at most: small beside what foreground writes put into a group.
const STEP: ScanLimit = ScanLimit { rows: 500, bytes: 1024 * 1024 };
/// Deleted tables looked at in one tick.
const TABLES_PER_TICK: usize = 16;
/// Most deleted tables that are counted.
const COUNTED_MAX: usize = 10_000;
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
        let snapshot = self.engine.snapshot().await?;
        let limit = ScanLimit { rows: TABLES_PER_TICK, bytes: usize::MAX };
        let dead = snapshot.scan(&keys::dead_tables(), limit).await?;
        drop(snapshot);
        let mut more = false;
        for entry in dead.entries {
            let id = keys::dead_table_id(&entry.key)?;
            more |= self.step(id, DeadTable::decode(&entry.value)?).await?;
        }
        Ok(more)
    }

    /// How many deleted tables are still being worked on, up to a bound.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn pending(&self) -> Result<usize, TableError> {
        let snapshot = self.engine.snapshot().await?;
        let limit = ScanLimit { rows: COUNTED_MAX, bytes: usize::MAX };
        Ok(snapshot.scan(&keys::dead_tables(), limit).await?.entries.len())
    }

    async fn step(&self, id: TableId, dead: DeadTable) -> Result<bool, TableError> {
        let snapshot = self.engine.snapshot().await?;
        let mut rest = keys::entities(id);
        rest.start = dead.resume.clone();
        let scan = snapshot.scan(&rest, STEP).await?;
        drop(snapshot);
        let over = grace_is_over(dead.deleted_at, self.clock.next());
        let writes = decide_step(id, &dead, &scan, over);
        let more = !scan.entries.is_empty();
        if !writes.is_empty() {
            let write = move |_: &[Option<Bytes>]| Ok::<_, TableError>((writes.clone(), ()));
            transact(&*self.engine, Vec::new(), write).await??;
        }
        Ok(more)
    }
}

/// What one step writes: removes what the scan found and notes how far it came; at the end of the table it waits for
/// the grace to pass, looks at the whole table once more, and then forgets it.
fn decide_step(id: TableId, dead: &DeadTable, scan: &Scan, grace_is_over: bool) -> Vec<Write> {
    let key = keys::dead_table(id);
    let from_start = keys::entities(id).start;
    let Some(last) = scan.entries.last() else {
        return match (grace_is_over, dead.resume == from_start) {
            (false, _) => Vec::new(),
            (true, true) => vec![Write::Delete { key }],
            (true, false) => {
                let again = DeadTable { deleted_at: dead.deleted_at, resume: from_start };
                vec![Write::Put { key, value: again.encode() }]
            }
        };
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
    use trestle_kv::Entry;

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
    fn an_empty_table_is_forgotten_only_after_the_grace_and_a_second_look() {
        let start = keys::entities(ID).start;
        let swept = dead(keys::row(ID, "p", "r"));

        assert_eq!(decide_step(ID, &dead(start.clone()), &nothing(), false), []);
        assert_eq!(decide_step(ID, &swept, &nothing(), false), []);
        let again = Write::Put { key: keys::dead_table(ID), value: dead(start.clone()).encode() };
        assert_eq!(decide_step(ID, &swept, &nothing(), true), [again]);
        let forget = Write::Delete { key: keys::dead_table(ID) };
        assert_eq!(decide_step(ID, &dead(start), &nothing(), true), [forget]);
    }

    #[test]
    fn the_grace_ends_after_its_time() {
        let at = |seconds| Ticks::from_unix(seconds, 0).expect("in range");
        assert!(!grace_is_over(at(0), at(119)));
        assert!(grace_is_over(at(0), at(120)));
        assert!(!grace_is_over(at(10), at(0)), "a clock that stepped back");
    }
}
