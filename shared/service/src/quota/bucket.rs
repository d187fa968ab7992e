//! A token bucket as plain data.
//
// `governor` was weighed and does not fit: a take larger than the burst fails for ever, nothing can
// be given back, all keys of a limiter share one rate, and the keyed store grows until it is swept.

use std::time::Duration;

use super::nanos;

/// A limit: so many tokens a second, and so many at once after a rest.
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

    /// Tokens that flow in each second.
    #[must_use]
    pub fn per_second(self) -> u64 {
        self.per_second
    }

    /// Tokens in a full bucket.
    #[must_use]
    pub fn burst(self) -> u64 {
        self.burst
    }

    /// How long that many tokens take to flow in, in nanoseconds, rounded up.
    fn time_of(self, tokens: u64) -> u64 {
        // Division of 64 bits is several times cheaper, and nearly always enough.
        if let Some(scaled) = tokens.checked_mul(1_000_000_000) {
            return scaled.div_ceil(self.per_second);
        }
        let scaled = u128::from(tokens) * 1_000_000_000;
        u64::try_from(scaled.div_ceil(u128::from(self.per_second))).unwrap_or(u64::MAX)
    }
}

/// A bucket, which is full unless something was taken: one number, the time at which it is full
/// again.
///
/// What it admits in any interval is at most what flows in, and the burst, and what is still owed of
/// the last take that was lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    /// In nanoseconds.
    full_at: u64,
}

impl Bucket {
    /// Takes tokens.
    ///
    /// More than a full bucket holds is lent, as by [`Bucket::borrow`]: waiting for all of them
    /// would be for ever.
    ///
    /// # Errors
    /// How long until the tokens are there, if nobody else takes any. Nothing was taken.
    pub fn take(&mut self, rate: Rate, tokens: u64, now: Duration) -> Result<(), Duration> {
        let needed = if tokens <= rate.burst { tokens } else { 1 };
        self.take_with(needed, rate, tokens, now)
    }

    /// Takes tokens as soon as there is one. Nothing else is admitted until the others have flown
    /// in as well.
    ///
    /// # Errors
    /// How long until there is one, if nobody else takes any. Nothing was taken.
    pub fn borrow(&mut self, rate: Rate, tokens: u64, now: Duration) -> Result<(), Duration> {
        self.take_with(1, rate, tokens, now)
    }

    /// How long until that many tokens are there, at most a full bucket, if nobody takes any.
    #[must_use]
    pub fn wait(self, rate: Rate, tokens: u64, now: Duration) -> Duration {
        let missing = self.full_at.saturating_sub(nanos(now));
        let needed = rate.time_of(tokens.min(rate.burst));
        let over = missing.saturating_add(needed).saturating_sub(rate.time_of(rate.burst));
        Duration::from_nanos(over)
    }

    fn take_with(
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
        self.owe(rate, tokens, now);
        Ok(())
    }

    /// Takes tokens that were used already, whether they are there or not.
    pub fn owe(&mut self, rate: Rate, tokens: u64, now: Duration) {
        self.full_at = self.full_at.max(nanos(now)).saturating_add(rate.time_of(tokens));
    }

    /// Gives back tokens that were taken and not used.
    pub fn give_back(&mut self, rate: Rate, tokens: u64) {
        self.full_at = self.full_at.saturating_sub(rate.time_of(tokens));
    }

    /// When it is full, in nanoseconds: the order in which buckets may be forgotten.
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
    fn a_rate_is_refused_at_zero_and_past_its_bound() {
        for (per_second, burst) in [(0, 1), (1, 0), (Rate::MAX + 1, 1), (1, Rate::MAX + 1)] {
            assert_eq!(Rate::new(per_second, burst), None, "{per_second}, {burst}");
        }
        assert!(Rate::new(Rate::MAX, Rate::MAX).is_some());
    }

    #[test]
    fn a_full_bucket_gives_its_burst_at_once_and_then_what_flows_in() {
        let (rate, mut bucket) = (rate(10, 5), Bucket::default());
        let start = Duration::from_secs(100);

        assert_eq!(bucket.take(rate, 5, start), Ok(()));
        assert_eq!(bucket.take(rate, 1, start), Err(Duration::from_millis(100)));
        assert_eq!(bucket.take(rate, 3, start), Err(Duration::from_millis(300)));
        assert_eq!(bucket.take(rate, 3, start + Duration::from_millis(300)), Ok(()));
        // However long it rests, it holds no more than its burst.
        let later = Duration::from_secs(10_000);
        assert_eq!(bucket.take(rate, 5, later), Ok(()));
        assert!(bucket.take(rate, 1, later).is_err());
    }

    #[test]
    fn a_take_larger_than_the_burst_is_lent_and_paid_back_before_the_next() {
        let (rate, mut bucket) = (rate(10, 5), Bucket::default());
        let now = Duration::ZERO;
        assert_eq!(bucket.take(rate, 5, now), Ok(()));

        let wait = bucket.take(rate, 50, now).expect_err("not one token is there");
        assert_eq!(wait, Duration::from_millis(100));
        assert_eq!(bucket.take(rate, 50, now + wait), Ok(()));
        // 5 and 50 less 1 are owed: 4.9 s until there is nothing owed, 0.1 s for a token.
        let owed = bucket.take(rate, 1, now + wait);
        assert_eq!(owed, Err(Duration::from_millis(5_000)));
    }

    #[test]
    fn what_is_borrowed_needs_one_token_and_is_paid_back_before_the_next() {
        let (rate, mut bucket) = (rate(10, 5), Bucket::default());
        let now = Duration::ZERO;
        assert_eq!(bucket.take(rate, 4, now), Ok(()));

        assert_eq!(bucket.borrow(rate, 3, now), Ok(()));
        assert_eq!(bucket.borrow(rate, 3, now), Err(Duration::from_millis(300)));
        assert_eq!(bucket.wait(rate, 1, now), Duration::from_millis(300));
        assert_eq!(bucket.wait(rate, 500, now), Duration::from_millis(700), "a full bucket");
    }

    #[test]
    fn what_was_owed_or_given_back_counts() {
        let (rate, mut bucket) = (rate(10, 5), Bucket::default());
        let now = Duration::from_secs(1);

        bucket.owe(rate, 8, now);
        assert_eq!(bucket.take(rate, 1, now), Err(Duration::from_millis(400)));
        bucket.give_back(rate, 4);
        assert_eq!(bucket.take(rate, 1, now), Ok(()));
        assert_eq!(bucket.take(rate, 1, now), Err(Duration::from_millis(100)));
    }

    /// What was admitted: when, and how much.
    fn admitted(rate: Rate, takes: &[(u64, u64)]) -> Vec<(u128, u128)> {
        let (mut bucket, mut now) = (Bucket::default(), 0);
        let mut admitted = Vec::new();
        for (wait, tokens) in takes {
            now += wait;
            if bucket.take(rate, *tokens, Duration::from_nanos(now)).is_ok() {
                admitted.push((u128::from(now), u128::from(*tokens)));
            }
        }
        admitted
    }

    proptest! {
        #[test]
        fn no_interval_admits_more_than_flows_in_and_the_burst_and_a_take_that_is_larger(
            per_second in 1..5000_u64,
            burst in 1..300_u64,
            takes in proptest::collection::vec((0..50_000_000_u64, 1..400_u64), 1..200),
        ) {
            let admitted = admitted(rate(per_second, burst), &takes);
            let lent = takes.iter().map(|(_, tokens)| *tokens).filter(|tokens| *tokens > burst);
            let lent = u128::from(lent.max().map_or(0, |tokens| tokens - 1));

            for (first, (start, _)) in admitted.iter().enumerate() {
                let mut sum = 0;
                for (end, tokens) in admitted.iter().skip(first) {
                    sum += tokens;
                    // Times are rounded to a nanosecond, so this much more than nothing may be over.
                    let inflow = (end - start + 1) * u128::from(per_second);
                    let bound = inflow + (u128::from(burst) + lent) * 1_000_000_000;
                    prop_assert!(sum * 1_000_000_000 <= bound, "{sum} from {start} to {end}");
                }
            }
        }

        #[test]
        fn a_refused_take_is_admitted_after_the_wait_it_was_told_and_not_before(
            per_second in 1..5000_u64,
            burst in 1..300_u64,
            takes in proptest::collection::vec((0..50_000_000_u64, 1..400_u64), 1..50),
        ) {
            let (rate, mut bucket, mut now) = (rate(per_second, burst), Bucket::default(), 0);
            for (wait, tokens) in takes {
                now += wait;
                let at = |now| Duration::from_nanos(now);
                if let Err(wait) = bucket.take(rate, tokens, at(now)) {
                    let wait = u64::try_from(wait.as_nanos()).expect("short");
                    prop_assert!(bucket.take(rate, tokens, at(now + wait - 1)).is_err());
                    now += wait;
                    prop_assert_eq!(bucket.take(rate, tokens, at(now)), Ok(()));
                }
            }
        }
    }
}
