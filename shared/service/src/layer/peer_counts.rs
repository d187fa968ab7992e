//! How many calls of each peer are in progress, in constant memory.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::peer::PeerKey;

/// Counters of peers. Peers with the same counter share a share, which the hash makes rare and unpredictable.
const COUNTERS: usize = 4096;

/// See the module.
#[derive(Debug)]
pub(super) struct PeerCounts {
    by_peer: Box<[AtomicUsize]>,
    hasher: RandomState,
}

/// A call that counts until this is dropped.
#[derive(Debug)]
pub(super) struct CountedCall {
    counts: Arc<PeerCounts>,
    counter: usize,
}

impl PeerCounts {
    pub(super) fn new() -> Arc<Self> {
        let by_peer = (0..COUNTERS).map(|_| AtomicUsize::new(0)).collect();
        Arc::new(Self { by_peer, hasher: RandomState::new() })
    }

    /// Counts a call. Returns how many of the peer there were before.
    pub(super) fn begin(self: &Arc<Self>, peer: PeerKey) -> (CountedCall, usize) {
        let counters = self.by_peer.len() as u64;
        let counter = usize::try_from(self.hasher.hash_one(peer) % counters).unwrap_or(0);
        let before = self.by_peer.get(counter).map_or(0, |it| it.fetch_add(1, Ordering::Relaxed));
        (CountedCall { counts: Arc::clone(self), counter }, before)
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        if let Some(counter) = self.counts.by_peer.get(self.counter) {
            counter.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
