//! Expired messages are removed in time, and finding them costs about as much as their number.

use std::collections::HashMap;

use super::*;
use crate::{
    delivery::BUCKET_MESSAGES,
    fixture::{Fixture, claimed, outgoing},
    send::NewMessage,
};

/// A queue and its sweeper, and pseudo-random numbers.
struct Swept {
    fixture: Fixture,
    sweeper: Sweeper,
    random: u64,
}

impl Swept {
    async fn new() -> Self {
        let fixture = Fixture::new().await;
        let sweeper = Sweeper::new(fixture.messages.clone());
        Self { fixture, sweeper, random: 1 }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % below
    }

    /// Sends one message for each time to live and delay, in seconds; their ids and expirations.
    async fn send(&self, ttls: &[(u64, u64)]) -> Vec<(Uuid, Ticks)> {
        let with_ttl = |(ttl, delay): &(u64, u64)| NewMessage {
            time_to_live: Some(Duration::from_secs(*ttl)),
            ..outgoing(*delay)
        };
        let sent = self.fixture.send(ttls.iter().map(with_ttl).collect()).await;
        let states = sent.into_iter().map(|sent| sent.sent.state);
        states.map(|state| (state.id, state.expires_at.expect("it expires"))).collect()
    }

    /// Advances the clock and runs the sweeper; returns how many rows it read.
    async fn tick(&self, seconds: u64) -> usize {
        self.fixture.clock.advance(Duration::from_secs(seconds));
        self.fixture.engine.take();
        self.sweeper.tick(SweepScope::Store).await.expect("swept");
        self.fixture.engine.take().rows
    }

    /// The number of buckets with expired messages that are not removed.
    async fn due(&self, now: Ticks) -> usize {
        let buckets = self.fixture.messages.schedulers.expiry_buckets(self.fixture.id().await);
        buckets.with(|buckets| buckets.due(now).len())
    }

    async fn count(&self) -> u64 {
        self.fixture.count().await
    }
}

#[tokio::test]
async fn with_staggered_times_to_live_the_sweeper_reads_about_what_expired() {
    const MESSAGES: u64 = 8000;
    let swept = Swept::new().await;
    swept.tick(0).await;
    // Ten a second expire, from the thousandth second on.
    let ttls: Vec<_> = (0..MESSAGES).map(|number| (1000 + number / 10, 0)).collect();
    for ttls in ttls.chunks(100) {
        swept.send(ttls).await;
    }

    let read = swept.tick(900).await;
    assert!(read < 100, "nothing has expired since it was empty: {read}");
    assert!(swept.tick(100).await >= 8000, "the first scan covers the whole queue");
    let mut read = Vec::new();
    for tick in 1..=30 {
        read.push(swept.tick(5).await);
        assert_eq!(swept.count().await, MESSAGES - (tick * 50 + 10), "after {tick} ticks");
    }

    let all: usize = read.iter().sum();
    assert!(all < 30 * 3 * BUCKET_MESSAGES, "1,500 expired; rows read: {read:?}");
}

#[tokio::test]
async fn a_tick_removes_every_expired_message_among_random_operations() {
    let mut swept = Swept::new().await;
    let mut unexpired = HashMap::new();
    for step in 0..80 {
        let ttls = (0..100).map(|_| (20 + swept.random(2000), swept.random(4) * swept.random(60)));
        let ttls: Vec<_> = ttls.collect();
        unexpired.extend(swept.send(&ttls).await);
        for _ in 0..swept.random(4) {
            let timeout = swept.random(200);
            let received = swept.fixture.receive(32, timeout).await;
            let done: Vec<_> = received.into_iter().step_by(2).collect();
            for delivered in &done {
                unexpired.remove(&delivered.state.id).expect("it has not expired");
            }
            swept.fixture.delete(&done).await;
        }

        let seconds = swept.random(60);
        swept.tick(seconds).await;

        let now = swept.fixture.messages.engine.now();
        unexpired.retain(|_, expires_at| *expires_at > now);
        assert_eq!(swept.count().await, unexpired.len() as u64, "after step {step}");
        assert_eq!(swept.due(now).await, 0, "scanned buckets are not scanned again");
    }
    assert!(swept.due(Ticks::MAX).await > 3, "some buckets were scanned");
}

#[tokio::test]
async fn removes_expired_messages_before_delayed_ones() {
    let swept = Swept::new().await;
    swept.tick(0).await;
    for ttls in [[(10_000, 60); 100]; 3] {
        swept.send(&ttls).await;
    }
    swept.send(&[(10, 60)]).await;
    assert!(swept.tick(10).await > 300, "the first scan covers the whole queue");

    swept.send(&[(20, 0)]).await;
    swept.tick(20).await;

    assert_eq!(swept.count().await, 300);
}

#[tokio::test]
async fn short_ttls_beside_many_delayed_messages_cost_a_few_buckets_each() {
    const DELAYED: usize = 20_000;
    let swept = Swept::new().await;
    swept.tick(0).await;
    for _ in 0..DELAYED / 100 {
        swept.send(&[(100_000, 7200); 100]).await;
        swept.fixture.clock.advance(Duration::from_millis(10));
    }
    swept.send(&[(10, 0)]).await;
    assert!(swept.tick(10).await > DELAYED, "the first scan covers the whole queue");

    let mut read = 0;
    for _ in 0..50 {
        swept.send(&[(1, 0), (60, 7), (300, 9)]).await;
        read += swept.tick(10).await;
    }
    read += swept.tick(300).await;

    assert_eq!(swept.count().await, DELAYED as u64);
    assert!(read < 50 * 3 * BUCKET_MESSAGES, "{read} rows read for 150 messages that expired");
}

#[tokio::test]
async fn removes_held_messages_that_expire_where_no_other_expires() {
    let swept = Swept::new().await;
    swept.send(&[(1000, 0); 600]).await;
    // Their visibility timeout ends where no other message expires for long.
    swept.send(&[(1_000_000, 50_000); 600]).await;
    swept.tick(10).await;
    for is_updated in [false, true] {
        if is_updated {
            swept.send(&[(1000, 0); 600]).await;
            let fixture = &swept.fixture;
            let claimed = claimed(&fixture.receive(1, 10).await[0]);
            let (visibility_timeout, payload) = (Duration::from_secs(90_000), None);
            let update = crate::update::Update { claimed, visibility_timeout, payload };
            fixture.messages.update(&fixture.access, &fixture.name, update).await.expect("updated");
        } else {
            assert_eq!(swept.fixture.receive(32, 86_400).await.len(), 32);
        }
        swept.tick(900).await;
        assert_eq!(swept.count().await, 1200);

        swept.tick(100).await;

        assert_eq!(swept.count().await, 600, "invisible messages expire too: {is_updated}");
    }
}

#[tokio::test]
async fn the_next_message_of_a_group_follows_a_received_one_that_expires_without_a_listing() {
    let swept = Swept::new().await;
    let in_group = |time_to_live: Option<u64>| NewMessage {
        time_to_live: time_to_live.map(Duration::from_secs),
        group: Some("g".to_owned()),
        ..outgoing(0)
    };
    swept.fixture.send(vec![in_group(Some(10)), in_group(None)]).await;
    assert_eq!(swept.fixture.receive(32, 3600).await.len(), 1);
    swept.sweeper.expire().await.expect("removed");
    assert_eq!(swept.fixture.receive(32, 3600).await, []);

    swept.fixture.clock.advance(Duration::from_secs(10));
    swept.fixture.engine.take();
    swept.sweeper.expire().await.expect("removed");
    assert!(swept.fixture.engine.take().rows < 3, "one bucket was read");

    assert_eq!(swept.fixture.receive(32, 3600).await.len(), 1);
    assert_eq!(swept.count().await, 1);
    swept.fixture.engine.take();
    swept.sweeper.expire().await.expect("removed");
    assert_eq!(swept.fixture.engine.take().rows, 0, "nothing is due");
}
