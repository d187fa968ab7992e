//! Numbers for new containers and contents. A process takes a block of them in one change, so that creating one reads
//! and writes no row that others share.
//!
//! A block of content ids is recorded with its time before an id of it is used: an object whose id is not live a day
//! later belongs to no blob, and is deleted. So ids of a block are used for an hour only.
//!
//! Each start that owns an object store raises content ids to a first one of its own: two servers with copies of one
//! data directory, or of one database, never give an object the same name. Processes of one database take blocks of one
//! counter, so their ids differ too.

use std::{ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Engine, Lock, ScanLimit, Span, Writes, transact};
use trestle_model::time::Ticks;

use crate::{
    error::BlobError,
    keys,
    record::{ContainerId, ContentId},
};

/// Ids that a process allocates at once; the remaining ones are never used after its end.
pub(crate) const BLOCK: u64 = 64;
/// How long the ids of a block are used.
pub(crate) const BLOCK_TIME: Duration = Duration::from_secs(3600);

/// See the module.
pub(crate) struct Ids {
    engine: Arc<dyn Engine>,
    containers: tokio::sync::Mutex<IdBlock>,
    contents: tokio::sync::Mutex<IdBlock>,
    first_content: u64,
    mark: u64,
}

/// A counter of ids, and rows that begin with such an id.
struct NumberedRows {
    counter: Bytes,
    rows: Span,
}

/// Ids that were allocated and not used yet.
struct IdBlock {
    rest: Range<u64>,
    allocated_at: Ticks,
}

impl IdBlock {
    const EMPTY: Self = Self { rest: 0..0, allocated_at: Ticks::MIN };
}

impl Ids {
    /// Allocates no id until the first one is needed. Contents have ids from `first_content` on, and this mark.
    pub(crate) fn new(engine: Arc<dyn Engine>, first_content: u64, mark: u64) -> Self {
        let empty = || tokio::sync::Mutex::new(IdBlock::EMPTY);
        Self { engine, containers: empty(), contents: empty(), first_content, mark }
    }

    /// The mark of contents that this process writes.
    pub(crate) fn mark(&self) -> u64 {
        self.mark
    }

    /// An id that no container ever had.
    ///
    /// # Errors
    /// A failed commit.
    pub(crate) async fn container(&self) -> Result<ContainerId, BlobError> {
        let ids = NumberedRows { counter: keys::next_container_id(), rows: keys::every_blob() };
        self.next(&self.containers, ids, None).await.map(ContainerId)
    }

    /// An id that no content ever had.
    ///
    /// # Errors
    /// A failed commit.
    pub(crate) async fn content(&self) -> Result<ContentId, BlobError> {
        let ids = NumberedRows { counter: keys::next_content_id(), rows: keys::every_live() };
        self.next(&self.contents, ids, Some(self.first_content)).await.map(ContentId)
    }

    async fn next(
        &self,
        block: &tokio::sync::Mutex<IdBlock>,
        NumberedRows { counter, rows }: NumberedRows,
        recorded_from: Option<u64>,
    ) -> Result<u64, BlobError> {
        let mut block = block.lock().await;
        let now = self.engine.now();
        if block.rest.is_empty() || now.since(block.allocated_at) >= BLOCK_TIME {
            let recorded = recorded_from.map(|from| (from, now));
            let is_first = block.allocated_at == Ticks::MIN;
            let behind = if is_first { self.behind(rows).await? } else { 0 };
            let rest = self.take_block(counter, behind, recorded).await?;
            *block = IdBlock { rest, allocated_at: now };
        }
        block.rest.next().ok_or_else(|| BlobError::corrupt("block of ids"))
    }

    /// A number behind those of these rows. The counter of a store that was repaired may be lost, or an earlier one; an
    /// id that is given again would replace the content of a blob.
    async fn behind(&self, rows: Span) -> Result<u64, BlobError> {
        let scan = self.engine.scan(&rows.backward(), ScanLimit { rows: 1, bytes: 1 }).await?;
        let last = scan.entries.first().map(|row| keys::number_of(&row.key)).transpose()?;
        Ok(last.map_or(0, |last| last.saturating_add(1)))
    }

    async fn take_block(
        &self,
        counter: Bytes,
        behind: u64,
        recorded: Option<(u64, Ticks)>,
    ) -> Result<Range<u64>, BlobError> {
        // The record of the block has the first id in its key, so the id is read before it is allocated.
        let mut stored = match self.engine.get(&counter).await? {
            Some(value) => keys::decode_number(&value, "next id")?,
            None => 1,
        };
        // Where another process allocated a block meanwhile, the next one is tried.
        loop {
            match self.try_block(&counter, stored, (behind, recorded)).await? {
                Ok(block) => return Ok(block),
                Err(found) => stored = found,
            }
        }
    }

    /// A block from the number that is stored, or the other one that is.
    async fn try_block(
        &self,
        counter: &Bytes,
        stored: u64,
        (behind, recorded): (u64, Option<(u64, Ticks)>),
    ) -> Result<Result<Range<u64>, u64>, BlobError> {
        let first = recorded.map_or(stored, |(from, _)| stored.max(from)).max(behind);
        let end = first.saturating_add(BLOCK);
        let record = keys::content_ids(ContentId(first));
        let mut spec = ChangeSpec::new(keys::own_domain(counter));
        spec.also(keys::own_domain(&record), Lock::Exclusive);
        let (counter, next) = (counter.clone(), spec.read(counter.clone()));
        transact(&*self.engine, spec, move |reads, _| {
            let found = reads.get(next).map(|value| keys::decode_number(value, "next id"));
            let found = found.transpose()?.unwrap_or(1);
            if found != stored {
                return Ok((Writes::new(), Err(found)));
            }
            let mut writes = Writes::new();
            writes.put(counter.clone(), keys::encode_number(end));
            if let Some((_, at)) = recorded {
                writes.put(record.clone(), keys::encode_number(at.get()));
            }
            Ok::<_, BlobError>((writes, Ok(first..end)))
        })
        .await?
    }
}

#[cfg(test)]
mod tests {
    use trestle_kv::MemoryEngine;

    use super::*;

    #[tokio::test]
    async fn ids_go_on_behind_those_of_rows_where_the_counter_was_lost() {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(keys::KEYSPACES.to_vec()));
        let used = ContentId(500);
        let spec = ChangeSpec::new(keys::own_domain(&keys::live(used)));
        let mut writes = Writes::new();
        writes.put(keys::live(used), keys::encode_number(1));
        transact(&*engine, spec, move |_, _| Ok::<_, BlobError>((writes.clone(), ())))
            .await
            .unwrap()
            .unwrap();

        let ids = Ids::new(Arc::clone(&engine), 1, 0);

        assert_eq!(ids.content().await.unwrap(), ContentId(501));
        assert_eq!(ids.content().await.unwrap(), ContentId(502));
        assert_eq!(ids.container().await.unwrap(), ContainerId(1));
        let restarted = Ids::new(engine, 1, 0);
        assert!(restarted.content().await.unwrap() > ContentId(502));
    }

    #[tokio::test]
    async fn processes_that_allocate_at_a_time_have_ids_of_their_own() {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(keys::KEYSPACES.to_vec()));
        let processes: Vec<_> =
            (1..=8_u64).map(|start| Ids::new(Arc::clone(&engine), start << 40, start)).collect();

        let mut ids = Vec::new();
        for _ in 0..2 * BLOCK {
            let at_a_time = processes.iter().map(Ids::content);
            ids.extend(futures::future::join_all(at_a_time).await.into_iter().map(Result::unwrap));
        }

        let count = ids.len();
        ids.sort_unstable_by_key(|id| id.0);
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
