//! The memory that uploads in progress share: bounded over all of them, with a share for each account and each of its
//! peers.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use trestle_rpc::layer::shares::{Holder, Share, SharePool};

use crate::error::BlobError;

/// Most memory of all uploads together, in KiB.
const MEMORY_KIB: usize = 128 * 1024;
/// Most uploads that wait for memory: each holds a message.
const WAITING_MAX: usize = 256;
/// Longest wait for memory, before the call is rejected with a retry delay.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// See the module. Clones share it.
#[derive(Clone)]
pub(crate) struct UploadMemory {
    memory: Arc<SharePool>,
    waiting: Arc<SharePool>,
    /// Wakes uploads that wait: memory was returned.
    returned: Arc<Notify>,
    holder: Holder,
}

/// Memory that an upload holds.
#[derive(Debug)]
pub(super) struct HeldMemory {
    /// None only while it is dropped.
    share: Option<Share>,
    returned: Arc<Notify>,
}

impl Default for UploadMemory {
    /// Of what the server uploads itself.
    fn default() -> Self {
        Self {
            memory: SharePool::new("KiB of uploads", MEMORY_KIB),
            waiting: SharePool::new("uploads that wait", WAITING_MAX),
            returned: Arc::default(),
            holder: Holder::account_alone(""),
        }
    }
}

impl UploadMemory {
    /// The same memory for the uploads of a holder.
    pub(crate) fn of(&self, holder: Holder) -> Self {
        Self { holder, ..self.clone() }
    }

    /// What no upload holds, in KiB.
    #[cfg(test)]
    pub(super) fn free_kib(&self) -> usize {
        self.memory.free()
    }

    /// Reserves memory, beside that which is `held` already.
    ///
    /// # Errors
    /// [`BlobError::Busy`] where there is none for too long.
    pub(super) async fn reserve(
        &self,
        held: Option<HeldMemory>,
        kib: usize,
    ) -> Result<HeldMemory, BlobError> {
        let mut held = match held {
            Some(held) => held,
            None => {
                let share = self.memory.take(self.holder, 0).map_err(|_| BlobError::Busy)?;
                HeldMemory { share: Some(share), returned: Arc::clone(&self.returned) }
            }
        };
        let whole = held.kib().saturating_add(kib);
        if held.resize(whole) {
            return Ok(held);
        }
        let _waiting = self.waiting.take(self.holder, 1).map_err(|_| BlobError::Busy)?;
        let grown = async {
            loop {
                let returned = self.returned.notified();
                if held.resize(whole) {
                    return;
                }
                returned.await;
            }
        };
        let reserved = tokio::time::timeout(WAIT_MAX, grown).await;
        reserved.map_err(|_| BlobError::Busy)?;
        Ok(held)
    }
}

impl HeldMemory {
    /// How much it is, in KiB.
    pub(super) fn kib(&self) -> usize {
        self.share.as_ref().map_or(0, Share::amount)
    }

    fn resize(&mut self, kib: usize) -> bool {
        self.share.as_mut().is_some_and(|share| share.resize(kib).is_ok())
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        // Before those who wait for it try again.
        drop(self.share.take());
        self.returned.notify_waiters();
    }
}
