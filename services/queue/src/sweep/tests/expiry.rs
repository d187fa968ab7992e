//! What expires is removed in time, and finding it costs about as much as there is of it.

use std::{collections::HashMap, sync::Arc};

use trestle_service::{
    clock::ManualClock,
    name::{AccountName, QueueName},
};

use super::*;
use crate::{
    authorize::Access, depth::Counting, model::queue_name, receipt::Claimed, receive::Receive,
    record::QueueSettings, send::Outgoing, stored::Payload,
};

/// A queue and its sweeper, and numbers that look random.
struct Bench {
    clock: Arc<ManualClock>,
    messages: Messages,
    sweeper: Sweeper,
    engine: Counting,
    access: Access,
    name: QueueName,
    random: u64,
}

impl Bench {
    async fn new() -> Self {
        let engine = Counting::new();
        let start = Ticks::from_unix(1_700_000_000, 0).expect("in range");
        let clock = Arc::new(ManualClock::new(start));
        let random = || Uuid::now_v7().as_u128();
        let messages = Messages::new(Arc::new(engine.clone()), clock.clone(), random);
        let sweeper = Sweeper::new(messages.clone());
        let (account, name) = (AccountName::development(), queue_name("jobs"));
        let access = Access::owner(account.clone());
        let settings = QueueSettings::default();
        messages.queues.create(&account, name.clone(), settings).await.expect("created");
        Self { clock, messages, sweeper, engine, access, name, random: 1 }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) % below
    }

    /// Sends one message for each time to live and delay, in seconds; their ids and expirations.
    async fn send(&self, lives: &[(u64, u64)]) -> Vec<(Uuid, Ticks)> {
        let outgoing = lives.iter().map(|(life, delay)| {
            Ok(Outgoing {
                payload: Payload::Text(Bytes::from_static(b"work")),
                delay: Duration::from_secs(*delay),
                life: Some(Duration::from_secs(*life)),
                deduplication_id: None,
                group: None,
            })
        });
        let sent = self.messages.send(&self.access, &self.name, outgoing.collect(), None);
        let sent = sent.await.expect("decided").into_iter().map(|sent| {
            let state = sent.expect("sent").sent.state;
            (state.id, state.expires_at.expect("it expires"))
        });
        sent.collect()
    }

    /// Lets time pass and the sweeper work; how many rows it read.
    async fn tick(&self, seconds: u64) -> usize {
        self.clock.advance(Duration::from_secs(seconds));
        self.engine.take_rows();
        self.sweeper.tick().await.expect("swept");
        self.engine.take_rows()
    }

    /// In how many stretches something has expired that is not removed.
    async fn due(&self, now: Ticks) -> usize {
        let queue = self.messages.queues.open(&self.access, &self.name).await.expect("there");
        let expiries = self.messages.shelves.expiries(queue.record.id);
        expiries.with(|known| known.due(now).len())
    }

    async fn count(&self) -> u64 {
        let queue = self.messages.queues.open(&self.access, &self.name).await.expect("there");
        self.messages.stats(queue.record.id).await.expect("readable").messages
    }
}

#[tokio::test]
async fn with_staggered_times_to_live_the_sweeper_reads_about_what_expired() {
    const MESSAGES: u64 = 8000;
    let bench = Bench::new().await;
    bench.tick(0).await;
    // Ten a second expire, from the thousandth second on.
    let lives: Vec<_> = (0..MESSAGES).map(|number| (1000 + number / 10, 0)).collect();
    for lives in lives.chunks(100) {
        bench.send(lives).await;
    }

    let read = bench.tick(900).await;
    assert!(read < 100, "nothing has expired since it was empty: {read}");
    assert!(bench.tick(100).await >= 8000, "the first to expire is looked for everywhere");
    let mut read = Vec::new();
    for tick in 1..=30 {
        read.push(bench.tick(5).await);
        assert_eq!(bench.count().await, MESSAGES - (tick * 50 + 10), "after {tick} ticks");
    }

    let all: usize = read.iter().sum();
    assert!(all < 30 * 3 * STRETCH, "1,500 expired; rows read: {read:?}");
}

#[tokio::test]
async fn whatever_is_sent_received_and_deleted_what_expired_is_gone_after_a_tick() {
    let mut bench = Bench::new().await;
    let mut living = HashMap::new();
    for step in 0..80 {
        let lives = (0..100).map(|_| (20 + bench.random(2000), bench.random(4) * bench.random(60)));
        let lives: Vec<_> = lives.collect();
        living.extend(bench.send(&lives).await);
        for _ in 0..bench.random(4) {
            let hidden_for = Duration::from_secs(bench.random(200));
            let receive = Receive { max: 32, hidden_for, wait: Duration::ZERO };
            let received = bench.messages.receive(&bench.access, &bench.name, receive).await;
            let claimed = received.expect("received").into_iter().step_by(2).map(|delivered| {
                living.remove(&delivered.state.id).expect("it has not expired");
                let message_id = delivered.state.id.to_string();
                Claimed { message_id, receipt: delivered.receipt() }
            });
            let claimed = claimed.collect();
            let deleted = bench.messages.delete(&bench.access, &bench.name, claimed).await;
            assert!(deleted.expect("decided").into_iter().all(|deleted| deleted));
        }

        let seconds = bench.random(60);
        bench.tick(seconds).await;

        let now = bench.messages.clock.now();
        living.retain(|_, expires_at| *expires_at > now);
        assert_eq!(bench.count().await, living.len() as u64, "after step {step}");
        assert_eq!(bench.due(now).await, 0, "what was looked at is not looked at again");
    }
    assert!(bench.due(Ticks::MAX).await > 3, "some of it was settled");
}

#[tokio::test]
async fn what_is_sent_before_delayed_messages_does_not_escape() {
    let bench = Bench::new().await;
    bench.tick(0).await;
    for lives in [[(10_000, 60); 100]; 3] {
        bench.send(&lives).await;
    }
    bench.send(&[(10, 60)]).await;
    assert!(bench.tick(10).await > 300, "the one is looked for among all");

    bench.send(&[(20, 0)]).await;
    bench.tick(20).await;

    assert_eq!(bench.count().await, 300);
}

#[tokio::test]
async fn short_lives_beside_many_delayed_messages_cost_a_few_stretches_each() {
    const DELAYED: usize = 20_000;
    let bench = Bench::new().await;
    bench.tick(0).await;
    for _ in 0..DELAYED / 100 {
        bench.send(&[(100_000, 7200); 100]).await;
        bench.clock.advance(Duration::from_millis(10));
    }
    bench.send(&[(10, 0)]).await;
    assert!(bench.tick(10).await > DELAYED, "the first is looked for everywhere");

    let mut read = 0;
    for _ in 0..50 {
        bench.send(&[(1, 0), (60, 7), (300, 9)]).await;
        read += bench.tick(10).await;
    }
    read += bench.tick(300).await;

    assert_eq!(bench.count().await, DELAYED as u64);
    assert!(read < 50 * 3 * STRETCH, "{read} rows read for 150 messages that expired");
}

#[tokio::test]
async fn what_expires_while_it_is_held_is_removed_also_where_nothing_else_expires() {
    let bench = Bench::new().await;
    bench.send(&[(1000, 0); 600]).await;
    // They are hidden to where nothing expires for long.
    bench.send(&[(1_000_000, 50_000); 600]).await;
    bench.tick(10).await;
    let receive = async |max, hidden| {
        let (hidden_for, wait) = (Duration::from_secs(hidden), Duration::ZERO);
        let receive = Receive { max, hidden_for, wait };
        let received = bench.messages.receive(&bench.access, &bench.name, receive).await;
        received.expect("received")
    };
    for is_updated in [false, true] {
        if is_updated {
            bench.send(&[(1000, 0); 600]).await;
            let held = &receive(1, 10).await[0];
            let claimed =
                Claimed { message_id: held.state.id.to_string(), receipt: held.receipt() };
            let (hidden_for, payload) = (Duration::from_secs(90_000), None);
            let update = crate::change::Update { claimed, hidden_for, payload };
            bench.messages.update(&bench.access, &bench.name, update).await.expect("updated");
        } else {
            assert_eq!(receive(32, 86_400).await.len(), 32);
        }
        bench.tick(900).await;
        assert_eq!(bench.count().await, 1200);

        bench.tick(100).await;

        assert_eq!(bench.count().await, 600, "held ones are over too: {is_updated}");
    }
}
