//! Removing deduplication records that have expired.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::future::try_join_all;
use trestle_kv::{ChangeSpec, ReadId, Reads, Writes, after_key, transact};
use trestle_model::time::Ticks;

use super::{GRACE, STEP, Sweeper};
use crate::{
    deduplication::DeduplicationRecord,
    error::QueueError,
    keys::{self, QueueId},
};

/// A row that schedules the removal of a record, and the record.
pub(super) struct ScheduledRemoval {
    pub(super) expiry_key: Bytes,
    pub(super) record: ReadId,
}

impl Sweeper {
    /// Removes deduplication records that have expired.
    pub(super) async fn sweep_deduplication(&self) -> Result<bool, QueueError> {
        let now = self.messages.engine.now();
        let start = self.with(|state| state.deduplicated_to.clone());
        // Some time after they are due: no write in flight adds a row before the position of this scan.
        let span = keys::expired_deduplications(&start, now.before(GRACE));
        let scan = self.messages.engine.scan(&span, STEP).await?;
        let Some(last) = scan.entries.last() else { return Ok(false) };
        let deduplicated_to: Bytes = after_key(&last.key).into();
        let mut by_queue: BTreeMap<QueueId, Vec<(Bytes, Bytes)>> = BTreeMap::new();
        for entry in &scan.entries {
            let (id, record_key) = keys::deduplication_of(&entry.key)?;
            by_queue.entry(id).or_default().push((entry.key.clone(), record_key));
        }
        // A change for each queue; an engine writes them together.
        let removals = by_queue.into_iter().map(|(id, rows)| self.remove_records(id, rows, now));
        let unreadable: usize = try_join_all(removals).await?.into_iter().sum();
        if unreadable > 0 {
            tracing::error!(unreadable, "deduplication records cannot be read");
        }
        self.with(|state| state.deduplicated_to = deduplicated_to);
        Ok(scan.more)
    }

    async fn remove_records(
        &self,
        id: QueueId,
        rows: Vec<(Bytes, Bytes)>,
        now: Ticks,
    ) -> Result<usize, QueueError> {
        let mut spec = ChangeSpec::new(keys::queue_domain(id));
        let scheduled = rows.into_iter().map(|(expiry_key, record_key)| ScheduledRemoval {
            expiry_key,
            record: spec.read(record_key),
        });
        let scheduled: Vec<_> = scheduled.collect();
        let removed = transact(&*self.messages.engine, spec, move |reads, _version| {
            Ok::<_, QueueError>(decide_removal(now, &scheduled, reads))
        });
        removed.await?
    }
}

/// Removes the rows that schedule a removal, and their records, unless a record was renewed since. An unreadable record
/// remains, without such a row, and is counted: it must not block the removal of the others.
pub(super) fn decide_removal(
    now: Ticks,
    scheduled: &[ScheduledRemoval],
    reads: &Reads<'_>,
) -> (Writes, usize) {
    let (mut writes, mut unreadable) = (Writes::with_capacity(scheduled.len() * 2), 0);
    for ScheduledRemoval { expiry_key, record } in scheduled {
        writes.delete(expiry_key.clone());
        let stored = reads.get(*record);
        match DeduplicationRecord::of(stored, now) {
            Ok(None) if stored.is_some() => {
                writes.delete(reads.key(*record).clone());
            }
            Ok(_) => {}
            Err(_) => unreadable += 1,
        }
    }
    (writes, unreadable)
}
