//! A token bucket as plain data.
//
// `governor` does not fit: a reservation larger than the burst never succeeds, nothing can be
// refunded, all keys of a limiter share one rate, and the keyed store grows until it is swept.

use std::time::Duration;

use super::nanos;

/// A limit: so many tokens a second, and so many at once when idle before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    per_second: u64,
    burst: u64,
}

impl Rate {
    /// Most tokens a second, and most at once.
    pub const MAX: u64 = 1_000_000_000;

    /// A limit; none unless both numbers are 1 to [`Rate::MAX`].
    #[must_use]
    pub fn new(per_second: u64, burst: u64) -> Option<Self> {
        let fits = |number| (1..=Self::MAX).contains(&number);
        (fits(per_second) && fits(burst)).then_some(Self { per_second, burst })
    }

    /// The part of one process, where as many share the limit; at least one token.
    #[must_use]
    pub fn shared_by(self, processes: u64) -> Self {
        let part = |tokens: u64| tokens.div_ceil(processes.max(1));
        Self { per_second: part(self.per_second), burst: part(self.burst) }
    }

    /// Tokens that are refilled each second.
    #[must_use]
    pub fn per_second(self) -> u64 {
        self.per_second
    }

    /// Tokens in a full bucket.
    #[must_use]
    pub fn burst(self) -> u64 {
        self.burst
    }

    /// How long the refill of that many tokens takes, in nanoseconds, rounded up.
    fn time_of(self, tokens: u64) -> u64 {
        // Division of 64 bits is several times cheaper, and nearly always enough.
        if let Some(scaled) = tokens.checked_mul(1_000_000_000) {
            return scaled.div_ceil(self.per_second);
        }
        let scaled = u128::from(tokens) * 1_000_000_000;
        u64::try_from(scaled.div_ceil(u128::from(self.per_second))).unwrap_or(u64::MAX)
    }
}

/// A bucket, full unless tokens were reserved: one number, the time at which it is full again.
///
/// What it admits in any interval is at most the refill, the burst, and the rest of the last reservation ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    /// In nanoseconds.
    full_at: u64,
}

impl Bucket {
    /// Reserves tokens.
    ///
    /// More than the burst are reserved ahead, as by [`Bucket::reserve_ahead`]: a bucket never has so many.
    ///
    /// # Errors
    /// How long until the tokens are available, without other reservations. Nothing was reserved.
    pub fn reserve(&mut self, rate: Rate, tokens: u64, now: Duration) -> Result<(), Duration> {
        let needed = if tokens <= rate.burst { tokens } else { 1 };
        self.reserve_with(needed, rate, tokens, now)
    }

    /// Reserves tokens as soon as one is available. Nothing else is admitted until the others are refilled as well.
    ///
    /// # Errors
    /// How long until one is available, without other reservations. Nothing was reserved.
    pub fn reserve_ahead(
        &mut self,
        rate: Rate,
        tokens: u64,
        now: Duration,
    ) -> Result<(), Duration> {
        self.reserve_with(1, rate, tokens, now)
    }

    /// How long until that many tokens are available, at most a full bucket, without other
    /// reservations.
    #[must_use]
    pub fn wait(self, rate: Rate, tokens: u64, now: Duration) -> Duration {
        let missing = self.full_at.saturating_sub(nanos(now));
        let needed = rate.time_of(tokens.min(rate.burst));
        let over = missing.saturating_add(needed).saturating_sub(rate.time_of(rate.burst));
        Duration::from_nanos(over)
    }

    fn reserve_with(
        &mut self,
        needed: u64,
        rate: Rate,
        tokens: u64,
        now: Duration,
    ) -> Result<(), Duration> {
        let wait = self.wait(rate, needed, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.debit(rate, tokens, now);
        Ok(())
    }

    /// Debits tokens that were used already, whether they are available or not.
    pub fn debit(&mut self, rate: Rate, tokens: u64, now: Duration) {
        self.full_at = self.full_at.max(nanos(now)).saturating_add(rate.time_of(tokens));
    }

    /// Refunds tokens that were reserved and not used.
    pub fn refund(&mut self, rate: Rate, tokens: u64) {
        self.full_at = self.full_at.saturating_sub(rate.time_of(tokens));
    }

    /// When it is full, in nanoseconds: the order in which buckets may be evicted.
    pub(super) fn full_at(self) -> u64 {
        self.full_at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(per_second: u64, burst: u64) -> Rate {
        Rate::new(per_second, burst).expect("in range")
    }

    #[test]
    fn rejects_rates_of_zero_and_above_the_maximum() {
        for (per_second, burst) in [(0, 1), (1, 0), (Rate::MAX + 1, 1), (1, Rate::MAX + 1)] {
            assert_eq!(Rate::new(per_second, burst), None, "{per_second}, {burst}");
        }
        assert!(Rate::new(Rate::MAX, Rate::MAX).is_some());
    }

    #[test]
    fn a_full_bucket_admits_its_burst_and_then_the_refill() {
        let (rate, mut bucket) = (rate(10, 5), Bucket::default());
        let start = Duration::from_secs(100);

        assert_eq!(bucket.reserve(rate, 5, start), Ok(()));
        assert_eq!(bucket.reserve(rate, 1, start), Err(Duration::from_millis(100)));
        assert_eq!(bucket.reserve(rate, 3, start), Err(Duration::from_millis(300)));
        assert_eq!(bucket.reserve(rate, 3, start + Duration::from_millis(300)), Ok(()));
        // However long it is idle, it has no more than its burst.
        let later = Duration::from_secs(10_000);
        assert_eq!(bucket.reserve(rate, 5, later), Ok(()));
        assert!(bucket.reserve(rate, 1, later).is_err());
    }

    #[test]
    fn a_reservation_over_the_burst_delays_the_next() {
        let (rate, mut bucket) = (rate(10, 5), Bucket::default());
        let now = Duration::ZERO;
        assert_eq!(bucket.reserve(rate, 5, now), Ok(()));

        let wait = bucket.reserve(rate, 50, now).expect_err("no token is available");
        assert_eq!(wait, Duration::from_millis(100));
        assert_eq!(bucket.reserve(rate, 50, now + wait), Ok(()));
        // 54 are reserved ahead: 4.9 s until those are refilled, 0.1 s for a token.
        let next = bucket.reserve(rate, 1, now + wait);
        assert_eq!(next, Err(Duration::from_millis(5_000)));
    }

    #[test]
    fn a_reservation_ahead_needs_one_token_and_delays_the_next() {
        let (rate, mut bucket) = (rate(10, 5), Bucket::default());
        let now = Duration::ZERO;
        assert_eq!(bucket.reserve(rate, 4, now), Ok(()));

        assert_eq!(bucket.reserve_ahead(rate, 3, now), Ok(()));
        assert_eq!(bucket.reserve_ahead(rate, 3, now), Err(Duration::from_millis(300)));
        assert_eq!(bucket.wait(rate, 1, now), Duration::from_millis(300));
        assert_eq!(bucket.wait(rate, 500, now), Duration::from_millis(700), "a full bucket");
    }

    #[test]
    fn debits_and_refunds_change_the_level() {
        let (rate, mut bucket) = (rate(10, 5), Bucket::default());
        let now = Duration::from_secs(1);

        bucket.debit(rate, 8, now);
        assert_eq!(bucket.reserve(rate, 1, now), Err(Duration::from_millis(400)));
        bucket.refund(rate, 4);
        assert_eq!(bucket.reserve(rate, 1, now), Ok(()));
        assert_eq!(bucket.reserve(rate, 1, now), Err(Duration::from_millis(100)));
    }

    /// What was admitted: when, and how much.
    fn admitted(rate: Rate, takes: &[(u64, u64)]) -> Vec<(u128, u128)> {
        let (mut bucket, mut now) = (Bucket::default(), 0);
        let mut admitted = Vec::new();
        for (wait, tokens) in takes {
            now += wait;
            if bucket.reserve(rate, *tokens, Duration::from_nanos(now)).is_ok() {
                admitted.push((u128::from(now), u128::from(*tokens)));
            }
        }
        admitted
    }

    proptest! {
        #[test]
        fn no_interval_admits_more_than_refill_burst_and_one_reservation_ahead(
            per_second in 1..5000_u64,
            burst in 1..300_u64,
            takes in proptest::collection::vec((0..50_000_000_u64, 1..400_u64), 1..200),
        ) {
            let admitted = admitted(rate(per_second, burst), &takes);
            let ahead = takes.iter().map(|(_, tokens)| *tokens).filter(|tokens| *tokens > burst);
            let ahead = u128::from(ahead.max().map_or(0, |tokens| tokens - 1));

            for (first, (start, _)) in admitted.iter().enumerate() {
                let mut sum = 0;
                for (end, tokens) in admitted.iter().skip(first) {
                    sum += tokens;
                    // Times are rounded to a nanosecond, so this much more than nothing may be over.
                    let inflow = (end - start + 1) * u128::from(per_second);
                    let bound = inflow + (u128::from(burst) + ahead) * 1_000_000_000;
                    prop_assert!(sum * 1_000_000_000 <= bound, "{sum} from {start} to {end}");
                }
            }
        }

        #[test]
        fn a_rejected_reservation_is_admitted_exactly_after_its_wait(
            per_second in 1..5000_u64,
            burst in 1..300_u64,
            takes in proptest::collection::vec((0..50_000_000_u64, 1..400_u64), 1..50),
        ) {
            let (rate, mut bucket, mut now) = (rate(per_second, burst), Bucket::default(), 0);
            for (wait, tokens) in takes {
                now += wait;
                let at = |now| Duration::from_nanos(now);
                if let Err(wait) = bucket.reserve(rate, tokens, at(now)) {
                    let wait = u64::try_from(wait.as_nanos()).expect("short");
                    prop_assert!(bucket.reserve(rate, tokens, at(now + wait - 1)).is_err());
                    now += wait;
                    prop_assert_eq!(bucket.reserve(rate, tokens, at(now)), Ok(()));
                }
            }
        }
    }
}
