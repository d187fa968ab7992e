//! How much work an account and a partition may ask for, in tokens: one for each KiB, begun, of an
//! entity that is written or examined.
//!
//! Everything is bounded whatever the number of partitions: [`KeyedBuckets`] forgets what is
//! nearest to full, [`Hot`] what is used least. Time comes from the caller, as the time since any
//! fixed moment.

pub mod bucket;
pub mod hot;
pub mod keyed;
pub mod limits;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::{
    bucket::{Bucket, Rate},
    hot::{Hot, HotKey, Use},
    keyed::KeyedBuckets,
    limits::{LiveQuotas, Quota, Quotas},
};

/// Bytes of an entity that one token pays for.
const TOKEN_BYTES: usize = 1024;

/// The tokens that an entity of this many bytes takes: at least one.
#[must_use]
pub fn weight(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN_BYTES).max(1) as u64
}

/// Nanoseconds since the moment that time is counted from; enough for 584 years.
fn nanos(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Locks what no panic leaves half done: everything inside is numbers, written one by one.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_weighs_a_token_for_each_kibibyte_begun() {
        let cases = [(0, 1), (1, 1), (1024, 1), (1025, 2), (2048, 2), (1_048_576, 1024)];
        for (bytes, tokens) in cases {
            assert_eq!(weight(bytes), tokens, "{bytes} bytes");
        }
    }
}
