//! Numbers for messages: each greater than the one before, none used twice, also not after a restart.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use tokio::sync::OnceCell;
use trestle_kv::{Engine, Write, transact};

use crate::{error::QueueError, keys};

/// Numbers of one start of the process: about a trillion.
const EPOCH_BITS: u32 = 40;

/// See the module. A start takes an epoch, once and durably; within it, numbers are counted in memory.
pub(crate) struct Sequences {
    engine: Arc<dyn Engine>,
    epoch: OnceCell<u64>,
    next: AtomicU64,
}

/// The numbers of this start.
#[derive(Clone, Copy)]
pub(crate) struct Counter<'a> {
    first: u64,
    next: &'a AtomicU64,
}

impl Sequences {
    /// Starts when it is first asked.
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, epoch: OnceCell::new(), next: AtomicU64::new(0) }
    }

    /// Where numbers come from.
    ///
    /// # Errors
    /// A failed commit of the epoch.
    pub(crate) async fn counter(&self) -> Result<Counter<'_>, QueueError> {
        let epoch = *self.epoch.get_or_try_init(|| self.begin()).await?;
        Ok(Counter { first: epoch << EPOCH_BITS, next: &self.next })
    }

    async fn begin(&self) -> Result<u64, QueueError> {
        let key = keys::epoch();
        transact(&*self.engine, vec![key.clone()], move |current| {
            let epoch = decide_epoch(current.first().and_then(Option::as_ref))?;
            let value = keys::encode_number(epoch);
            Ok::<_, QueueError>((vec![Write::Put { key: key.clone(), value }], epoch))
        })
        .await?
    }
}

fn decide_epoch(stored: Option<&Bytes>) -> Result<u64, QueueError> {
    let last = stored.map(|value| keys::decode_number(value, "epoch")).transpose()?;
    Ok(last.unwrap_or(0) + 1)
}

impl Counter<'_> {
    /// The first of `count` numbers that are the caller's alone.
    pub(crate) fn take(self, count: usize) -> u64 {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.first + self.next.fetch_add(count, Ordering::SeqCst)
    }

    /// No number that was not taken yet is lower.
    pub(crate) fn peek(self) -> u64 {
        self.first + self.next.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests;
