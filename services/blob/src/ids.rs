//! Numbers for new containers and contents. A process takes a block of them in one change, so that creating one reads
//! and writes no row that others share.
//!
//! A block of content ids is recorded with its time before an id of it is used: an object whose id is not live a day
//! later belongs to no blob, and is deleted. So ids of a block are used for an hour only.

use std::{ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Engine, Lock, Writes, transact};
use trestle_service::clock::Ticks;

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
    /// Allocates no id until the first one is needed.
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        let empty = || tokio::sync::Mutex::new(IdBlock::EMPTY);
        Self { engine, containers: empty(), contents: empty() }
    }

    /// An id that no container ever had.
    ///
    /// # Errors
    /// A failed commit.
    pub(crate) async fn container(&self) -> Result<ContainerId, BlobError> {
        self.next(&self.containers, keys::next_container_id(), false).await.map(ContainerId)
    }

    /// An id that no content ever had.
    ///
    /// # Errors
    /// A failed commit.
    pub(crate) async fn content(&self) -> Result<ContentId, BlobError> {
        self.next(&self.contents, keys::next_content_id(), true).await.map(ContentId)
    }

    async fn next(
        &self,
        block: &tokio::sync::Mutex<IdBlock>,
        counter: Bytes,
        is_recorded: bool,
    ) -> Result<u64, BlobError> {
        let mut block = block.lock().await;
        let now = self.engine.now();
        if block.rest.is_empty() || now.since(block.allocated_at) >= BLOCK_TIME {
            let rest = self.take_block(counter, is_recorded.then_some(now)).await?;
            *block = IdBlock { rest, allocated_at: now };
        }
        block.rest.next().ok_or_else(|| BlobError::corrupt("block of ids"))
    }

    async fn take_block(
        &self,
        counter: Bytes,
        recorded_at: Option<Ticks>,
    ) -> Result<Range<u64>, BlobError> {
        // The record of the block has the first id in its key, so the id is read before it is allocated.
        let first = match self.engine.get(&counter).await? {
            Some(value) => keys::decode_number(&value, "next id")?,
            None => 1,
        };
        let end = first.saturating_add(BLOCK);
        let record = keys::content_ids(ContentId(first));
        let mut spec = ChangeSpec::new(keys::own_domain(&counter));
        spec.also(keys::own_domain(&record), Lock::Exclusive);
        let next = spec.read(counter.clone());
        let allocated = transact(&*self.engine, spec, move |reads, _| {
            let stored = reads.get(next).map(|value| keys::decode_number(value, "next id"));
            if stored.transpose()?.unwrap_or(1) != first {
                return Ok((Writes::new(), false));
            }
            let mut writes = Writes::new();
            writes.put(counter.clone(), keys::encode_number(end));
            if let Some(at) = recorded_at {
                writes.put(record.clone(), keys::encode_number(at.get()));
            }
            Ok::<_, BlobError>((writes, true))
        });
        match allocated.await?? {
            true => Ok(first..end),
            // Another process allocated this block; its client repeats the call.
            false => Err(BlobError::Busy),
        }
    }
}
