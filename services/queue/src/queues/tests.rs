//! The cached record of a queue matches the stored one, whatever happens between a read and a change.

use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use async_trait::async_trait;
use tokio::sync::watch;
use trestle_kv::{
    Change, CommitError, EngineError, EngineStatus, Limits, MemoryEngine, Scan, ScanLimit,
    Snapshot, Span, Version,
};
use trestle_model::time::{ManualClock, Ticks};

use super::*;
use crate::{
    delivery::{AttemptError, FenceCause, TakeOverAlways},
    head::OwnerId,
    keys::KEYSPACES,
    model::queue_name,
    record::{DeadLetter, QueueSettings},
};

/// Blocks the first operation that arrives while it is closed.
struct Gate {
    is_open: watch::Sender<bool>,
    came: watch::Sender<u32>,
}

impl Gate {
    fn new() -> Self {
        Self { is_open: watch::Sender::new(true), came: watch::Sender::new(0) }
    }

    async fn pass(&self) {
        self.came.send_modify(|came| *came += 1);
        if *self.came.borrow() > 1 {
            return;
        }
        self.is_open.subscribe().wait_for(|is_open| *is_open).await.expect("the gate exists");
    }

    fn close(&self) {
        self.came.send_replace(0);
        self.is_open.send_replace(false);
    }

    fn open(&self) {
        self.is_open.send_replace(true);
    }

    /// Waits until an operation is blocked.
    async fn blocked(&self) {
        let mut came = self.came.subscribe();
        let arrived =
            tokio::time::timeout(Duration::from_secs(60), came.wait_for(|came| *came > 0));
        arrived.await.expect("an operation arrives").expect("the gate exists");
    }
}

/// A store whose reads wait at a gate after the read, and whose commits wait before the commit.
struct Gated {
    inner: MemoryEngine,
    read: Arc<Gate>,
    commit: Arc<Gate>,
    /// Commits are applied, and report an unknown outcome.
    is_unknown: AtomicBool,
}

struct GatedSnapshot(Box<dyn Snapshot>, Arc<Gate>);

#[async_trait]
impl Engine for Gated {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        Ok(Box::new(GatedSnapshot(self.inner.snapshot().await?, Arc::clone(&self.read))))
    }

    async fn commit(&self, change: Change) -> Result<Version, CommitError> {
        self.commit.pass().await;
        let version = self.inner.commit(change).await?;
        match self.is_unknown.load(SeqCst) {
            true => Err(CommitError::Unknown { reason: "of the test".into() }),
            false => Ok(version),
        }
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn now(&self) -> Ticks {
        self.inner.now()
    }

    fn status(&self) -> EngineStatus {
        self.inner.status()
    }
}

#[async_trait]
impl Snapshot for GatedSnapshot {
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let value = self.0.get(key).await;
        self.1.pass().await;
        value
    }

    async fn scan(&self, span: &Span, limit: ScanLimit) -> Result<Scan, EngineError> {
        self.0.scan(span, limit).await
    }
}

/// Two services on one store: the one under test, and a new one for each lookup.
struct Fixture {
    engine: Arc<Gated>,
    clock: Arc<ManualClock>,
    queues: Queues,
    account: AccountName,
    name: QueueName,
}

fn queues(engine: &Arc<Gated>, clock: &Arc<ManualClock>) -> Queues {
    let engine: Arc<dyn Engine> = Arc::clone(engine) as _;
    let schedulers =
        Arc::new(Schedulers::new(Arc::clone(&engine), OwnerId(1), Arc::new(TakeOverAlways)));
    Queues::new(engine, Arc::clone(clock) as _, schedulers)
}

fn settings(value: u32) -> QueueSettings {
    let metadata = vec![("value".to_owned(), value.to_string())];
    QueueSettings { metadata, ..QueueSettings::default() }
}

impl Fixture {
    /// With a queue of that name, whose record is cached.
    async fn new() -> Self {
        let start = Ticks::from_unix(1_700_000_000, 0).expect("in range");
        let clock = Arc::new(ManualClock::new(start));
        let engine = Arc::new(Gated {
            inner: MemoryEngine::with_clock(KEYSPACES, Arc::clone(&clock) as _),
            read: Arc::new(Gate::new()),
            commit: Arc::new(Gate::new()),
            is_unknown: AtomicBool::new(false),
        });
        let queues = queues(&engine, &clock);
        let (account, name) = (AccountName::development(), queue_name("jobs"));
        let fixture = Self { engine, clock, queues, account, name };
        fixture.change(1).await;
        assert!(fixture.found().await.is_some());
        fixture
    }

    /// The record that the service returns; for an operation that does not wait at the gate, the cached one.
    async fn found(&self) -> Option<QueueRecord> {
        let found = self.queues.find(&self.account, &self.name).await.expect("readable");
        found.map(|queue| Arc::unwrap_or_clone(queue.record))
    }

    /// The stored record.
    async fn stored(&self) -> Option<QueueRecord> {
        let cold = queues(&self.engine, &self.clock);
        let found = cold.find(&self.account, &self.name).await.expect("readable");
        found.map(|queue| Arc::unwrap_or_clone(queue.record))
    }

    /// One of the possible changes, by its number, which also serves as a written value.
    async fn change(&self, number: u32) {
        let (queues, account, name) = (&self.queues, &self.account, self.name.clone());
        let changed = match number % 6 {
            1 => queues.create(account, name, settings(number)).await.map(drop),
            2 => {
                let update = queues.update(account, name, move |record| {
                    record.settings = settings(number);
                    Ok(())
                });
                update.await.map(drop)
            }
            3 => {
                let update = queues.update(account, name, |record| {
                    record.policies = Bytes::from_static(b"policies");
                    Ok(())
                });
                update.await.map(drop)
            }
            4 => {
                let update = queues.update(account, name, |record| {
                    let queue = queue_name("dead");
                    record.settings.dead_letter = Some(DeadLetter { queue, dequeue_count_max: 3 });
                    Ok(())
                });
                update.await.map(drop)
            }
            5 => queues.clear(account, name).await,
            _ => queues.delete(account, name).await,
        };
        let is_unknown = self.engine.is_unknown.load(SeqCst);
        assert_eq!(changed.is_err(), is_unknown, "change {number}: {changed:?}");
    }
}

#[tokio::test]
async fn the_cached_record_matches_the_stored_one_after_every_change() {
    let fixture = Fixture::new().await;
    let mut seen = Vec::new();

    for number in 2..=13 {
        fixture.change(number).await;

        let stored = fixture.stored().await;
        assert_eq!(fixture.found().await, stored, "after change {number}");
        assert_eq!(fixture.found().await, stored, "and when it was cached, after change {number}");
        assert!(!seen.contains(&stored) || stored.is_none(), "change {number} changed something");
        seen.push(stored);
    }
}

#[tokio::test]
async fn a_change_of_unknown_outcome_leaves_no_outdated_record() {
    let fixture = Fixture::new().await;
    fixture.engine.is_unknown.store(true, SeqCst);

    for number in 2..=13 {
        let before = fixture.found().await;
        fixture.change(number).await;

        let stored = fixture.stored().await;
        assert_ne!(stored, before, "change {number} was made");
        assert_eq!(fixture.found().await, stored, "after change {number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_ends_after_a_change_leaves_no_outdated_record() {
    for number in 2..=6 {
        let fixture = Arc::new(Fixture::new().await);
        // So that the next lookup reads the store.
        fixture.queues.cache.changing(&fixture.account, &fixture.name);
        fixture.engine.read.close();
        let looking = tokio::spawn({
            let fixture = Arc::clone(&fixture);
            async move { fixture.found().await }
        });
        fixture.engine.read.blocked().await;

        fixture.change(number).await;
        fixture.engine.read.open();
        let before = looking.await.expect("no panic");

        let stored = fixture.stored().await;
        assert_ne!(before, stored, "it was read before change {number}");
        assert_eq!(fixture.found().await, stored, "after change {number}");
    }
}

/// Otherwise a consumer would wait there for messages that are sent to another scheduler.
#[tokio::test(start_paused = true)]
async fn a_scheduler_that_is_opened_while_its_queue_is_replaced_is_closed() {
    for (number, what) in [(5, "cleared"), (6, "deleted")] {
        let fixture = Fixture::new().await;
        let queue = fixture.queues.find(&fixture.account, &fixture.name).await;
        let queue = queue.expect("readable").expect("exists");
        let id = queue.record.id;
        fixture.engine.read.close();
        let schedulers = Arc::clone(&fixture.queues.schedulers);
        let opening = tokio::spawn(async move { schedulers.open(&queue).await });
        fixture.engine.read.blocked().await;

        fixture.change(number).await;
        fixture.engine.read.open();

        let Err(AttemptError::Fenced(fenced)) = opening.await.expect("no panic") else {
            panic!("open, though the queue was {what}");
        };
        assert_eq!((fenced.id, fenced.cause), (id, FenceCause::QueueReplaced), "{what}");
        assert!(fixture.queues.schedulers.find(id).is_none(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_during_a_change_leaves_no_outdated_record_even_when_the_change_is_cancelled() {
    for (number, is_cancelled) in (2..=6).flat_map(|number| [(number, false), (number, true)]) {
        let fixture = Arc::new(Fixture::new().await);
        fixture.engine.commit.close();
        let changing = tokio::spawn({
            let fixture = Arc::clone(&fixture);
            async move { fixture.change(number).await }
        });
        fixture.engine.commit.blocked().await;
        if is_cancelled {
            changing.abort();
            // The clock is that of the test: every other task is idle by then.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }

        let during = fixture.found().await;
        fixture.engine.commit.open();
        tokio::time::sleep(Duration::from_secs(1)).await;

        let stored = fixture.stored().await;
        assert_ne!(during, stored, "it was read before change {number} was made");
        assert_eq!(
            fixture.found().await,
            stored,
            "after change {number}, cancelled: {is_cancelled}"
        );
    }
}
