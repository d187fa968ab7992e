//! Which queues a process may own.
//!
//! A queue has one owner at a time, and only its owner delivers its messages. Ownership is safe whatever the policy:
//! the token in the head of the queue fences a former owner. The policy only decides who takes over.

use trestle_model::name::{AccountName, QueueName};

/// Decides which queues this process takes over when a call needs them.
pub(crate) trait OwnershipPolicy: Send + Sync + 'static {
    /// Whether the process may own the queue.
    fn may_own(&self, account: &AccountName, queue: &QueueName) -> bool;

    /// Whether another process may take queues over.
    fn has_others(&self) -> bool {
        true
    }
}

/// Takes over every queue that a call needs: for a process that has its store to itself.
pub(crate) struct TakeOverAlways;

impl OwnershipPolicy for TakeOverAlways {
    fn may_own(&self, _: &AccountName, _: &QueueName) -> bool {
        true
    }

    fn has_others(&self) -> bool {
        false
    }
}
