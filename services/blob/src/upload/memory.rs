//! The memory that uploads in progress share: bounded over all of them, with a part of it that no peer holds alone.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trestle_service::peer::PeerKey;

use crate::error::BlobError;

/// Most memory of all uploads together, in KiB.
const MEMORY_KIB: usize = 128 * 1024;
/// Most memory of the uploads of one peer, in KiB: those that it begins and never ends leave the rest to others.
const PEER_KIB: usize = MEMORY_KIB / 4 * 3;
/// Peers above which the shares of those without uploads are removed.
const PEERS_MIN: usize = 64;
/// Most uploads of a peer that wait for memory: each holds a message.
const WAITING_MAX: usize = 64;
/// Longest wait for memory, before the call is rejected with a retry delay.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// See the module. Clones share it.
#[derive(Clone)]
pub(crate) struct UploadMemory {
    all: Arc<Semaphore>,
    shares: Arc<Mutex<UploadShares>>,
    /// That of the peer; none for what the server uploads itself.
    share: Option<Arc<PeerShare>>,
}

/// A share for each peer that has uploads. One that several peers had in common, by a hash of theirs, would let one of
/// them take all memory of another.
struct UploadShares {
    by_peer: HashMap<PeerKey, Arc<PeerShare>>,
    /// How many peers there are when shares are removed next.
    peers_max: usize,
}

/// What the uploads of a peer may have.
struct PeerShare {
    memory: Arc<Semaphore>,
    waiting: Semaphore,
}

/// Memory that an upload holds.
#[derive(Debug)]
pub(super) struct HeldMemory {
    all: OwnedSemaphorePermit,
    share: Option<OwnedSemaphorePermit>,
}

impl Default for UploadMemory {
    fn default() -> Self {
        let shares = UploadShares { by_peer: HashMap::new(), peers_max: PEERS_MIN };
        let all = Arc::new(Semaphore::new(MEMORY_KIB));
        Self { all, shares: Arc::new(Mutex::new(shares)), share: None }
    }
}

impl UploadMemory {
    /// The same memory for the uploads of a peer.
    pub(crate) fn of_peer(&self, peer: PeerKey) -> Self {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        Self { share: Some(shares.of_peer(peer)), ..self.clone() }
    }

    /// What no upload holds, in KiB.
    #[cfg(test)]
    pub(super) fn free_kib(&self) -> usize {
        self.all.available_permits()
    }

    /// Reserves memory, with that which is `held` already.
    ///
    /// # Errors
    /// [`BlobError::Busy`] where there is none for too long.
    pub(super) async fn reserve(
        &self,
        held: Option<HeldMemory>,
        kib: usize,
    ) -> Result<HeldMemory, BlobError> {
        let kib = u32::try_from(kib).map_err(|_| BlobError::Busy)?;
        let acquire = async {
            let share = match &self.share {
                Some(share) => Some(share.reserve(kib).await?),
                None => None,
            };
            let all = Arc::clone(&self.all).acquire_many_owned(kib).await;
            Ok(HeldMemory { all: all.map_err(|_| BlobError::Busy)?, share })
        };
        let reserved = tokio::time::timeout(WAIT_MAX, acquire).await;
        let more = reserved.unwrap_or(Err(BlobError::Busy))?;
        Ok(match held {
            Some(held) => held.with(more),
            None => more,
        })
    }
}

impl UploadShares {
    fn of_peer(&mut self, peer: PeerKey) -> Arc<PeerShare> {
        if self.by_peer.len() >= self.peers_max {
            self.by_peer.retain(|_, share| {
                Arc::strong_count(share) > 1 || share.memory.available_permits() < PEER_KIB
            });
            // So the cost of a removal is constant for each new peer.
            self.peers_max = PEERS_MIN.max(2 * self.by_peer.len());
        }
        Arc::clone(self.by_peer.entry(peer).or_default())
    }
}

impl Default for PeerShare {
    fn default() -> Self {
        let memory = Arc::new(Semaphore::new(PEER_KIB));
        Self { memory, waiting: Semaphore::new(WAITING_MAX) }
    }
}

impl PeerShare {
    async fn reserve(&self, kib: u32) -> Result<OwnedSemaphorePermit, BlobError> {
        match Arc::clone(&self.memory).try_acquire_many_owned(kib) {
            Ok(permit) => Ok(permit),
            Err(_) => {
                let _waiting = self.waiting.try_acquire().map_err(|_| BlobError::Busy)?;
                let permit = Arc::clone(&self.memory).acquire_many_owned(kib).await;
                permit.map_err(|_| BlobError::Busy)
            }
        }
    }
}

impl HeldMemory {
    /// How much it is, in KiB.
    pub(super) fn kib(&self) -> usize {
        self.all.num_permits()
    }

    fn with(mut self, more: Self) -> Self {
        self.all.merge(more.all);
        match (&mut self.share, more.share) {
            (Some(share), Some(more)) => share.merge(more),
            (share, more) => *share = share.take().or(more),
        }
        self
    }
}
