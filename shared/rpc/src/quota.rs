//! Rate limits of accounts and partitions, in tokens: one for each started KiB of an
//! entity that is written or examined, one for each call, and one for each byte of its messages. [`storage`] has the
//! limits on what an account stores.
//!
//! Everything is bounded for any number of partitions: [`KeyedBuckets`] evicts the bucket
//! nearest to full, [`HeavyHitters`] the key used least. Time is an argument, as the time since any
//! fixed moment.

pub mod bucket;
pub mod calls;
pub mod heavy_hitters;
pub mod keyed;
pub mod limits;
pub mod storage;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::{
    bucket::{Bucket, Rate},
    calls::{CallMeter, CallQuotas, CallRates},
    heavy_hitters::{HeavyHitter, HeavyHitters, Usage},
    keyed::KeyedBuckets,
    limits::{LiveQuotas, Quota, Quotas},
    storage::{
        CreationRoom, FullQuota, MEASURE_EVERY, MeasuredUsage, QuotaUsage, StorageLimit,
        StorageMax, StorageMeter, StorageOwner, StorageQuotas,
    },
};

/// Bytes of an entity that cost one token.
const TOKEN_BYTES: usize = 1024;

/// The tokens that an entity of this many bytes costs: at least one.
#[must_use]
pub fn weight(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN_BYTES).max(1) as u64
}

/// Nanoseconds since the moment that time is counted from; enough for 584 years.
fn nanos(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Locks, also after a panic: everything inside is numbers, and valid after each write.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_costs_a_token_for_each_started_kibibyte() {
        let cases = [(0, 1), (1, 1), (1024, 1), (1025, 2), (2048, 2), (1_048_576, 1024)];
        for (bytes, tokens) in cases {
            assert_eq!(weight(bytes), tokens, "{bytes} bytes");
        }
    }
}
