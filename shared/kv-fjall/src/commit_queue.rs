//! Changes on their way to the committer, bounded by number, in turns by owner.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::mpsc;

use super::group::PendingChange;
use trestle_kv::CommitError;
use trestle_kv::turns::{Owner, TurnQueue};

/// Changes that may wait for the committer; more are rejected.
pub(super) const QUEUE_MAX: usize = 4_096;

/// What an owner writes in a turn, in bytes: many small changes, or one large one that its next turns pay for.
const TURN_BYTES: u32 = 64 * 1024;

/// What a change costs beside the bytes that it writes.
const CHANGE_COST: usize = 256;

/// The entry of the queue.
pub(super) struct CommitSender {
    sender: mpsc::UnboundedSender<(Owner, PendingChange)>,
    waiting: Arc<AtomicUsize>,
}

/// The queue of the committer.
pub(super) struct CommitQueue {
    receiver: mpsc::UnboundedReceiver<(Owner, PendingChange)>,
    waiting: Arc<AtomicUsize>,
    turns: TurnQueue<PendingChange>,
}

/// An empty queue.
pub(super) fn commit_queue() -> (CommitSender, CommitQueue) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let queue =
        CommitQueue { receiver, waiting: Arc::clone(&waiting), turns: TurnQueue::new(TURN_BYTES) };
    (CommitSender { sender, waiting }, queue)
}

impl CommitSender {
    /// Adds a change of an owner.
    ///
    /// # Errors
    /// [`CommitError::Busy`] if the queue is full, [`CommitError::Stopped`] if its committer has ended.
    pub(super) fn send(&self, owner: Owner, change: PendingChange) -> Result<(), CommitError> {
        let fits = |waiting: usize| (waiting < QUEUE_MAX).then(|| waiting + 1);
        if self.waiting.fetch_update(Relaxed, Relaxed, fits).is_err() {
            return Err(CommitError::Busy { reason: "too many changes wait to be written".into() });
        }
        self.sender.send((owner, change)).map_err(|_| {
            self.waiting.fetch_sub(1, Relaxed);
            CommitError::Stopped { reason: "the commit thread ended".into() }
        })
    }

    /// How many changes wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }
}

impl CommitQueue {
    /// Waits until there is a change; false if there will be none any more.
    pub(super) fn wait(&mut self) -> bool {
        if self.turns.is_empty() {
            match self.receiver.blocking_recv() {
                Some((owner, change)) => self.turns.push(owner, change),
                None => return false,
            }
        }
        true
    }

    /// The change whose turn it is, of those that wait now.
    pub(super) fn next(&mut self) -> Option<(Owner, PendingChange)> {
        while let Ok((owner, change)) = self.receiver.try_recv() {
            self.turns.push(owner, change);
        }
        let next = self.turns.pop(|_| true)?;
        self.waiting.fetch_sub(1, Relaxed);
        Some(next)
    }

    /// Counts the bytes that a change of an owner wrote.
    pub(super) fn charge(&mut self, owner: Owner, bytes: usize) {
        self.turns.charge(owner, bytes.saturating_add(CHANGE_COST));
    }
}
