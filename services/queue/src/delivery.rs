//! Delivery of the messages of the queues that this process owns.
//!
//! [`schedulers`] opens the scheduler of a queue: it takes the queue over if another process owned it last
//! ([`ownership`]), and reads from the cursor on. The [`scheduler`] is the handle of the owner: it holds the [`index`]
//! of slots and the waiting consumers, allocates sequence numbers ([`sequences`]), and makes the [`fence`] with which
//! each change of the queue checks that it is still owned. [`expiry_buckets`] stores when messages expire,
//! [`checkpoint`] stores the cursor from which reading starts after a restart, and [`record_cache`] holds the records
//! of queues in use.

mod checkpoint;
mod expiry_buckets;
mod fence;
mod index;
mod ownership;
mod record_cache;
mod retained;
mod scheduler;
mod schedulers;
mod sequences;

#[cfg(test)]
pub(crate) use self::fence::Fence;
#[cfg(test)]
pub(crate) use self::scheduler::{CHECKPOINT_AFTER, LOAD};
pub(crate) use self::{
    expiry_buckets::{BUCKET_MESSAGES, IndexEntry, SharedExpiryBuckets},
    fence::{AttemptError, FenceCause, Fenced, FencedHead},
    ownership::{OwnershipPolicy, TakeOverAlways},
    record_cache::RecordCache,
    scheduler::{Claim, ClaimOutcome, Scheduler},
    schedulers::Schedulers,
};
