//! Many buckets in a fixed amount of memory.

use std::{sync::Mutex, time::Duration};

use super::{
    bucket::{Bucket, Rate},
    lock,
};

/// Buckets that share a lock. A key belongs to one such set.
const SET_SLOTS: usize = 8;
/// Sets; a power of two.
const SETS: usize = 2048;

/// Most buckets that are stored. With their locks they take 280 KiB, from the start.
pub const KEYS_MAX: usize = SETS * SET_SLOTS;

/// A bucket for each of any number of keys. Keys are hashes, well spread over 64 bits.
///
/// A key that is not stored has a full bucket. Where a set is full, the bucket nearest to full is
/// evicted, so a throttled key keeps its bucket unless eight more of its set are throttled longer: a
/// key may get more than its rate then, never less.
pub struct KeyedBuckets {
    sets: Box<[Mutex<Set>]>,
}

type Set = [BucketSlot; SET_SLOTS];

#[derive(Debug, Clone, Copy, Default)]
struct BucketSlot {
    key: u64,
    bucket: Bucket,
}

impl Default for KeyedBuckets {
    fn default() -> Self {
        Self { sets: (0..SETS).map(|_| Mutex::new(Set::default())).collect() }
    }
}

impl KeyedBuckets {
    /// [`Bucket::reserve`] of the bucket of `key`.
    ///
    /// # Errors
    /// How long until the tokens are available, without other reservations. Nothing was reserved.
    pub fn reserve(
        &self,
        key: u64,
        rate: Rate,
        tokens: u64,
        now: Duration,
    ) -> Result<(), Duration> {
        self.with(key, |bucket| bucket.reserve(rate, tokens, now))
    }

    /// [`Bucket::reserve_ahead`] of the bucket of `key`.
    ///
    /// # Errors
    /// How long until a token is available, without other reservations. Nothing was reserved.
    pub fn reserve_ahead(
        &self,
        key: u64,
        rate: Rate,
        tokens: u64,
        now: Duration,
    ) -> Result<(), Duration> {
        self.with(key, |bucket| bucket.reserve_ahead(rate, tokens, now))
    }

    /// [`Bucket::wait`] of the bucket of `key`.
    #[must_use]
    pub fn wait(&self, key: u64, rate: Rate, tokens: u64, now: Duration) -> Duration {
        self.with(key, |bucket| bucket.wait(rate, tokens, now))
    }

    /// [`Bucket::debit`] of the bucket of `key`.
    pub fn debit(&self, key: u64, rate: Rate, tokens: u64, now: Duration) {
        self.with(key, |bucket| bucket.debit(rate, tokens, now));
    }

    /// [`Bucket::refund`] of the bucket of `key`.
    pub fn refund(&self, key: u64, rate: Rate, tokens: u64) {
        self.with(key, |bucket| bucket.refund(rate, tokens));
    }

    fn with<T>(&self, key: u64, work: impl FnOnce(&mut Bucket) -> T) -> T {
        // The remainder is below the number of sets, which is not zero.
        let index = usize::try_from(key % SETS as u64).unwrap_or_default();
        let Some(set) = self.sets.get(index) else {
            return work(&mut Bucket::default());
        };
        let mut set = lock(set);
        if let Some(slot) = set.iter_mut().find(|slot| slot.key == key) {
            return work(&mut slot.bucket);
        }
        let mut slot = BucketSlot { key, bucket: Bucket::default() };
        let result = work(&mut slot.bucket);
        // A full bucket equals a new one, and unused slots are full.
        if let Some(fullest) = set.iter_mut().min_by_key(|slot| slot.bucket.full_at()) {
            *fullest = slot;
        }
        result
    }

    /// How many buckets are not full at `now`.
    #[must_use]
    pub fn busy(&self, now: Duration) -> usize {
        let now = super::nanos(now);
        let busy = |set: &Set| set.iter().filter(|slot| slot.bucket.full_at() > now).count();
        self.sets.iter().map(|set| busy(&lock(set))).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        hash::{BuildHasher as _, RandomState},
    };

    use proptest::prelude::*;

    use super::*;

    fn rate(per_second: u64, burst: u64) -> Rate {
        Rate::new(per_second, burst).expect("in range")
    }

    #[test]
    fn a_million_partitions_use_constant_memory_and_a_hot_one_remains_throttled() {
        let (buckets, hasher, rate) = (KeyedBuckets::default(), RandomState::new(), rate(1, 100));
        let now = Duration::from_secs(7);
        let hot = hasher.hash_one("hot");
        assert_eq!(buckets.reserve(hot, rate, 100, now), Ok(()));

        for partition in 0..1_000_000_u32 {
            let cold = hasher.hash_one(partition);
            assert_eq!(buckets.reserve(cold, rate, 1, now), Ok(()), "cold partition {partition}");
        }

        assert_eq!(buckets.busy(now), KEYS_MAX);
        assert_eq!(buckets.reserve(hot, rate, 1, now), Err(Duration::from_secs(1)));
        let slots = SETS * size_of::<Mutex<Set>>();
        assert!(slots <= 280 * 1024, "{slots} bytes");
    }

    #[test]
    fn buckets_that_are_full_again_are_not_busy() {
        let (buckets, hasher, rate) = (KeyedBuckets::default(), RandomState::new(), rate(1, 2));
        for key in 0..10_u32 {
            assert_eq!(buckets.reserve(hasher.hash_one(key), rate, 2, Duration::ZERO), Ok(()));
        }

        assert_eq!(buckets.busy(Duration::from_millis(1999)), 10);
        assert_eq!(buckets.busy(Duration::from_secs(2)), 0);
    }

    proptest! {
        /// Eviction may only help a key, and without an eviction each key has exactly the bucket
        /// that it would have alone.
        #[test]
        fn no_key_is_throttled_because_of_another(
            takes in proptest::collection::vec((0..40_u64, 0..20_000_000_u64, 1..8_u64), 1..400),
            crowded: bool,
        ) {
            let (buckets, rate) = (KeyedBuckets::default(), rate(100, 10));
            let mut alone: HashMap<u64, Bucket> = HashMap::new();
            let mut now = Duration::ZERO;
            for (key, wait, tokens) in takes {
                now += Duration::from_nanos(wait);
                // Forty keys of one set, or each in a set of its own.
                let key = if crowded { (key + 1) * SETS as u64 } else { key + 1 };
                let bucket = alone.entry(key).or_default();
                let mut expected = *bucket;
                let alone = expected.reserve(rate, tokens, now);
                let shared = buckets.reserve(key, rate, tokens, now);
                if crowded {
                    prop_assert!(shared.is_ok() || alone.is_err());
                } else {
                    prop_assert_eq!(shared, alone);
                }
                // Admitted reservations count in the separate bucket as well, so that both have the
                // same state.
                if shared.is_ok() {
                    bucket.debit(rate, tokens, now);
                }
            }
        }
    }
}
