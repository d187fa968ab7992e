//! Delivery of the messages of queues, as one process does it: which slots are due ([`index`]), who gets them
//! ([`scheduler`]), what expires when ([`expiry_buckets`]), where reading starts after a restart ([`checkpoint`]), which
//! numbers messages get ([`sequences`]), what time it is ([`monotonic_clock`]), and the records of queues in use
//! ([`record_cache`]). [`schedulers`] opens the scheduler of a queue.

mod checkpoint;
mod expiry_buckets;
mod index;
mod monotonic_clock;
mod record_cache;
mod scheduler;
mod schedulers;
mod sequences;

#[cfg(test)]
pub(crate) use self::scheduler::{CHECKPOINT_AFTER, LOAD};
pub(crate) use self::{
    expiry_buckets::{BUCKET_MESSAGES, IndexEntry, SharedExpiryBuckets},
    monotonic_clock::MonotonicClock,
    record_cache::RecordCache,
    scheduler::{Claim, ClaimOutcome, Scheduler},
    schedulers::Schedulers,
    sequences::Sequences,
};
