//! How fast a backup reads.

use std::time::Duration;

use tokio::{sync::Mutex, time::Instant};

/// How far a reader may fall behind and catch up, so that a pause is not made up for by a burst.
const BURST: Duration = Duration::from_millis(250);

/// A bound on the bytes a second.
pub(crate) struct ReadThrottle {
    per_second: Option<u64>,
    /// When what was counted so far is paid for.
    paid: Mutex<Instant>,
}

impl ReadThrottle {
    /// No more bytes a second than this; without a number, as many as there are.
    pub(crate) fn new(per_second: Option<u64>) -> Self {
        Self { per_second, paid: Mutex::new(Instant::now()) }
    }

    /// Counts bytes, and waits until they are paid for.
    pub(crate) async fn count(&self, bytes: usize) {
        let Some(per_second) = self.per_second else { return };
        let until = {
            let mut paid = self.paid.lock().await;
            *paid = after(*paid, Instant::now(), cost(bytes, per_second));
            *paid
        };
        tokio::time::sleep_until(until).await;
    }
}

fn cost(bytes: usize, per_second: u64) -> Duration {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / per_second.max(1))
}

fn after(paid: Instant, now: Instant, cost: Duration) -> Instant {
    paid.max(now.checked_sub(BURST).unwrap_or(now)) + cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_cost_time_and_a_pause_gives_back_a_burst_at_most() {
        let now = Instant::now() + Duration::from_secs(10);
        let second = cost(1000, 1000);
        assert_eq!(second, Duration::from_secs(1));
        assert_eq!(after(now, now, second), now + second);
        let long_ago = now - Duration::from_secs(5);
        assert_eq!(after(long_ago, now, second), now + second - BURST);
    }

    #[tokio::test(start_paused = true)]
    async fn readers_wait_for_what_they_read() {
        let throttle = ReadThrottle::new(Some(1024));
        let start = Instant::now();
        for _ in 0..4 {
            throttle.count(1024).await;
        }
        assert!(start.elapsed() >= Duration::from_millis(3_700), "{:?}", start.elapsed());

        let free = ReadThrottle::new(None);
        let start = Instant::now();
        free.count(usize::MAX).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn readers_at_the_same_time_share_the_rate() {
        let throttle = ReadThrottle::new(Some(1000));
        let start = Instant::now();
        tokio::join!(throttle.count(1000), throttle.count(1000), throttle.count(1000));
        let elapsed = start.elapsed();
        assert!(elapsed >= Duration::from_secs(3) - BURST, "{elapsed:?}");
        assert!(elapsed < Duration::from_millis(3100), "{elapsed:?}");
    }

    #[test]
    fn a_rate_of_nothing_and_more_bytes_than_fit_have_a_bounded_cost() {
        assert_eq!(cost(1, 0), Duration::from_secs(1));
        assert_eq!(cost(usize::MAX, 1), Duration::from_nanos(u64::MAX));
    }
}
