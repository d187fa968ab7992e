//! Removing the rows of deleted and cleared queues.

use std::collections::HashSet;

use trestle_kv::{
    ChangeSpec, Entry, Reads, Scan, ScanLimit, Span, Version, Writes, after_key, transact,
};

use super::{GRACE, STEP, Sweeper};
use crate::{
    deleted_range::{DeletedRange, QueuePart},
    error::QueueError,
    keys::{self, QueueId},
};

/// Most ranges of deleted queues examined in one tick.
const DELETED_MAX: usize = 10_000;

impl Sweeper {
    /// How many deleted queues are not removed yet, up to a bound.
    ///
    /// # Errors
    /// A failed read.
    pub(crate) async fn pending(&self) -> Result<usize, QueueError> {
        let ranges = self.deleted_ranges().await?;
        let ids = ranges.iter().map(|entry| keys::deleted_range_of(&entry.key).map(|(id, _)| id));
        let ids = ids.collect::<Result<HashSet<_>, _>>()?;
        Ok(ids.len())
    }

    async fn deleted_ranges(&self) -> Result<Vec<Entry>, QueueError> {
        let limit = ScanLimit { rows: DELETED_MAX, bytes: usize::MAX };
        Ok(self.messages.engine.scan(&keys::all_deleted(), limit).await?.entries)
    }

    /// Runs a step in every range of a deleted queue.
    pub(super) async fn sweep_deleted(&self) -> Result<bool, QueueError> {
        let (mut more, mut failed) = (false, None);
        for entry in self.deleted_ranges().await? {
            // A queue that cannot be swept must not block the others.
            match self.sweep_range(&entry).await {
                Ok(found) => more |= found,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(more), Err)
    }

    /// Drops what this process retained of deleted queues, whose rows another one removes. Each is there for
    /// [`GRACE`] at least, so that every process sees it.
    pub(super) async fn forget_deleted(&self) -> Result<bool, QueueError> {
        for entry in self.deleted_ranges().await? {
            let (id, _) = keys::deleted_range_of(&entry.key)?;
            self.messages.schedulers.forget(id);
        }
        Ok(false)
    }

    async fn sweep_range(&self, entry: &Entry) -> Result<bool, QueueError> {
        let (id, part) = keys::deleted_range_of(&entry.key)?;
        let range = DeletedRange::decode(&entry.value)?;
        let is_over = self.messages.engine.now().since(range.deleted_at) >= GRACE;
        let whole = keys::part_span(id, part);
        let rest = Span::new(range.resume.clone(), whole.end.clone());
        let snapshot = self.messages.engine.snapshot().await?;
        let mut scan = snapshot.scan(&rest, STEP).await?;
        if range.resume == whole.start && !scan.entries.is_empty() {
            // Most of a big part goes with its files; the steps remove the rest.
            self.messages.engine.discard(&whole).await?;
        }
        if scan.entries.is_empty() && is_over && range.resume != whole.start {
            // The second pass: rows of writes in flight in ranges that were already swept.
            scan = snapshot.scan(&whole, STEP).await?;
        }
        drop(snapshot);
        let more = !scan.entries.is_empty();
        self.write(id, decide_sweep((id, part), &range, &scan, is_over)).await?;
        self.messages.schedulers.forget(id);
        Ok(more)
    }

    async fn write(&self, id: QueueId, writes: Writes) -> Result<(), QueueError> {
        if writes.is_empty() {
            return Ok(());
        }
        let spec = ChangeSpec::new(keys::queue_domain(id));
        let write = move |_: &Reads<'_>, _: Version| Ok::<_, QueueError>((writes.clone(), ()));
        transact(&*self.messages.engine, spec, write).await?
    }
}

/// The writes of one step: removes the rows that the scan returned and stores where to continue. An empty range is
/// dropped after the grace period. No step puts more than it removes, so that a full disk does not stop it.
pub(super) fn decide_sweep(
    (id, part): (QueueId, QueuePart),
    range: &DeletedRange,
    scan: &Scan,
    grace_is_over: bool,
) -> Writes {
    let (key, mut writes) = (keys::deleted(id, part), Writes::new());
    let Some(last) = scan.entries.last() else {
        if grace_is_over {
            writes.delete(key);
        }
        return writes;
    };
    for entry in &scan.entries {
        writes.delete(entry.key.clone());
    }
    let resume = after_key(&last.key).into();
    writes.put(key, DeletedRange { deleted_at: range.deleted_at, resume }.encode());
    writes
}
