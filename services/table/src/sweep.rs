//! Removes the entities of deleted tables, a bounded step at a time, and resumes after a restart.

use std::{sync::Arc, time::Duration};

use trestle_kv::{
    ChangeSpec, Engine, Entry, Lock, Reads, Scan, ScanLimit, Span, Writes, after_key, transact,
};
use trestle_model::time::Ticks;

use crate::{
    error::TableError,
    keys::{self, DeletedTable, TableId},
};

/// What one step removes at most: little beside the foreground writes of one commit group.
const STEP: ScanLimit = ScanLimit { rows: 500, bytes: 1024 * 1024 };
/// Most deleted tables examined in one tick, and counted. An empty one in its grace period costs a seek.
const TABLES_MAX: usize = 10_000;
/// How long a deleted table is checked for writes that were in flight when it was deleted. Those succeed, since they
/// can be ordered before the deletion; their rows must still be removed. Longer than any call may take.
const GRACE: Duration = Duration::from_secs(120);

/// The background work on deleted tables.
#[derive(Clone)]
pub(crate) struct DeletedTableSweeper {
    engine: Arc<dyn Engine>,
}

impl DeletedTableSweeper {
    /// Sweeps the tables in `engine`.
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Takes one step on some deleted tables. True when another step should follow at once.
    ///
    /// # Errors
    /// A failed read or commit; the next tick repeats the step.
    pub(crate) async fn tick(&self) -> Result<bool, TableError> {
        let (mut more, mut failed) = (false, None);
        for entry in self.deleted().await? {
            // A table that cannot be swept must not delay the others.
            match self.step(&entry).await {
                Ok(found) => more |= found,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(more), Err)
    }

    /// How many deleted tables are still being swept, up to a bound.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn pending(&self) -> Result<usize, TableError> {
        Ok(self.deleted().await?.len())
    }

    async fn deleted(&self) -> Result<Vec<Entry>, TableError> {
        let limit = ScanLimit { rows: TABLES_MAX, bytes: usize::MAX };
        Ok(self.engine.scan(&keys::deleted_tables(), limit).await?.entries)
    }

    async fn step(&self, entry: &Entry) -> Result<bool, TableError> {
        let id = keys::deleted_table_id(&entry.key)?;
        let deleted = DeletedTable::decode(&entry.value)?;
        let over = grace_is_over(deleted.deleted_at, self.engine.now());
        let snapshot = self.engine.snapshot().await?;
        let whole = keys::entities(id);
        let rest = Span::new(deleted.resume.clone(), whole.end.clone());
        let limits = self.engine.limits();
        // Each removed row may be in a partition, and so in a domain, of its own.
        let rows = STEP.rows.min(limits.domains).min(limits.writes.saturating_sub(1));
        let step = ScanLimit { rows, ..STEP };
        let mut scan = snapshot.scan(&rest, step).await?;
        if deleted.resume == whole.start && !scan.entries.is_empty() {
            // Most of a big table is removed with its files; the steps remove the rest.
            self.engine.discard(&whole).await?;
        }
        if scan.entries.is_empty() && over && deleted.resume != whole.start {
            // The second pass: rows that writes in flight left before the resume key.
            scan = snapshot.scan(&whole, step).await?;
        }
        drop(snapshot);
        let writes = decide_step(id, &deleted, &scan, over);
        let more = !scan.entries.is_empty();
        if !writes.is_empty() {
            let spec = spec_of(id, &writes);
            let write = move |_: &Reads<'_>, _| Ok::<_, TableError>((writes.clone(), ()));
            transact(&*self.engine, spec, write).await??;
        }
        Ok(more)
    }
}

/// The writes of one step: removes the scanned rows and records the resume key. The record of an empty table is
/// removed once its grace period is over. No step puts more than it removes, so that a full disk does not stop it.
fn decide_step(id: TableId, deleted: &DeletedTable, scan: &Scan, grace_is_over: bool) -> Writes {
    let mut writes = Writes::with_capacity(scan.entries.len() + 1);
    let key = keys::deleted_table(id);
    let Some(last) = scan.entries.last() else {
        if grace_is_over {
            writes.delete(key).delete(keys::access_policies(id));
        }
        return writes;
    };
    for entry in &scan.entries {
        writes.delete(entry.key.clone());
    }
    let resume = after_key(&last.key).into();
    let progress = DeletedTable { deleted_at: deleted.deleted_at, resume };
    writes.put(key, progress.encode());
    writes
}

/// A change of these rows and of the records of the table id.
fn spec_of(id: TableId, writes: &Writes) -> ChangeSpec {
    let records = keys::domain(&keys::deleted_table(id));
    let mut spec = ChangeSpec::new(records.clone());
    for write in writes.as_slice() {
        let domain = keys::domain(write.key());
        let is_named =
            domain == records || spec.also.last().is_some_and(|(last, _)| *last == domain);
        if !is_named {
            spec.also(domain, Lock::Exclusive);
        }
    }
    spec
}

fn grace_is_over(deleted_at: Ticks, now: Ticks) -> bool {
    let passed = now.get().saturating_sub(deleted_at.get());
    u128::from(passed) * 100 >= GRACE.as_nanos()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const ID: TableId = TableId(5);

    fn deleted(resume: Bytes) -> DeletedTable {
        DeletedTable { deleted_at: Ticks::new(1).expect("in range"), resume }
    }

    fn nothing() -> Scan {
        Scan { entries: Vec::new(), more: false }
    }

    #[test]
    fn a_step_removes_the_scanned_rows_and_records_the_resume_key() {
        let start = keys::entities(ID).start;
        let row = keys::row(ID, "p", "r");
        let entries = vec![Entry { key: row.clone(), value: Bytes::new() }];

        let writes = decide_step(ID, &deleted(start), &Scan { entries, more: true }, false);

        let progress = deleted(after_key(&row).into()).encode();
        let mut expected = Writes::new();
        expected.delete(row).put(keys::deleted_table(ID), progress);
        assert_eq!(writes, expected);
    }

    #[test]
    fn the_record_of_an_empty_table_is_removed_after_the_grace_period() {
        let swept = deleted(keys::row(ID, "p", "r"));

        assert!(decide_step(ID, &swept, &nothing(), false).is_empty());
        let mut expected = Writes::new();
        expected.delete(keys::deleted_table(ID)).delete(keys::access_policies(ID));
        assert_eq!(decide_step(ID, &swept, &nothing(), true), expected);
    }

    #[tokio::test]
    async fn sweeps_every_deleted_table_even_when_one_record_is_corrupt() {
        let engine: Arc<dyn Engine> = Arc::new(trestle_kv::MemoryEngine::new(keys::KEYSPACES));
        let row = keys::row(TableId(50), "p", "r");
        let resume = |id| keys::entities(TableId(id)).start;
        let deleted = |id| DeletedTable { deleted_at: Ticks::MAX, resume: resume(id) };
        let mut writes = Writes::new();
        for id in 2..=50 {
            writes.put(keys::deleted_table(TableId(id)), deleted(id).encode());
        }
        writes.put(keys::deleted_table(TableId(1)), "broken").put(row.clone(), "");
        crate::samples::commit(&*engine, writes).await;

        let outcome = DeletedTableSweeper::new(Arc::clone(&engine)).tick().await;

        assert!(matches!(outcome, Err(TableError::Corrupt(_))), "the corrupt record is reported");
        assert_eq!(engine.get(&row).await.expect("readable"), None, "the others are swept");
    }

    #[test]
    fn the_grace_period_ends_after_two_minutes() {
        let at = |seconds| Ticks::from_unix(seconds, 0).expect("in range");
        assert!(!grace_is_over(at(0), at(119)));
        assert!(grace_is_over(at(0), at(120)));
        assert!(!grace_is_over(at(10), at(0)), "a clock that stepped back");
    }
}
