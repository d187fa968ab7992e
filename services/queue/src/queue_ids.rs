//! Ids for new queues. A process takes a block of them in one change, so that creating a queue reads and writes no row
//! of other queues of the store.

use std::{ops::Range, sync::Arc};

use trestle_kv::{ChangeSpec, Engine, Writes, transact};

use crate::{
    error::QueueError,
    keys::{self, QueueId},
};

/// Ids that a process allocates at once; the remaining ones are never used after its end.
const BLOCK: u64 = 64;

/// See the module.
pub(crate) struct QueueIds {
    engine: Arc<dyn Engine>,
    /// Ids that were allocated and not used yet.
    block: tokio::sync::Mutex<Range<u64>>,
}

impl QueueIds {
    /// Allocates no id until the first one is needed.
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, block: tokio::sync::Mutex::new(0..0) }
    }

    /// An id that no queue ever had.
    ///
    /// # Errors
    /// A failed commit.
    pub(crate) async fn next(&self) -> Result<QueueId, QueueError> {
        let mut block = self.block.lock().await;
        if block.is_empty() {
            *block = self.take_block().await?;
        }
        let id = block.next().ok_or_else(|| QueueError::corrupt("block of queue ids"))?;
        Ok(QueueId(id))
    }

    async fn take_block(&self) -> Result<Range<u64>, QueueError> {
        let key = keys::next_queue_id();
        let mut spec = ChangeSpec::new(keys::own_domain(&key));
        // One row for many ids: a queue is cleared, under a new id, while disk space is short too.
        spec.gives_back_space();
        let next_id = spec.read(key.clone());
        transact(&*self.engine, spec, move |reads, _version| {
            let stored =
                reads.get(next_id).map(|value| keys::decode_number(value, "next queue id"));
            let first = stored.transpose()?.unwrap_or(1);
            let end = first.saturating_add(BLOCK);
            let mut writes = Writes::new();
            writes.put(key.clone(), keys::encode_number(end));
            Ok::<_, QueueError>((writes, first..end))
        })
        .await?
    }
}
