//! Two services on one store, workers that call them, and the results.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicUsize},
    time::Duration,
};

use bytes::Bytes;
use trestle_kv::{Engine as _, MemoryEngine, ScanLimit};
use trestle_model::name::{AccountName, QueueName};
use trestle_model::time::{ManualClock, Ticks};

use super::{
    history::{Generation, History, MessageKey, Outcome, RecordedCall},
    store::{PlacedQueues, Placement, Random, Yielding},
};
use crate::{
    authorize::QueueAccess,
    deleted_range::QueuePart,
    error::QueueError,
    head::QueueHead,
    keys::{self, KEYSPACES, QueueId},
    messages::{Delivered, MessageOperations},
    model::{queue_name, text},
    receipt::Claimed,
    receive::Receive,
    record::{DeadLetter, QueueSettings},
    release::ReceivedBatch,
    send::NewMessage,
    stored::Payload,
    sweep::{SweepScope, Sweeper},
    update::Update,
};

/// Deliveries before a message is dead-lettered.
pub(super) const DEQUEUES_MAX: u32 = 3;
pub(super) const VISIBILITY_TIMEOUT: Duration = Duration::from_secs(5);

/// A receive of up to `max` messages that does not wait.
pub(super) fn receive(max: usize) -> Receive {
    let (visibility_timeout, wait) = (VISIBILITY_TIMEOUT, Duration::ZERO);
    Receive { max, visibility_timeout, wait, deadline: None }
}

/// A delivery that a worker holds.
#[derive(Clone)]
pub(super) struct ReceivedMessage {
    queue: usize,
    text: String,
    claimed: Claimed,
}

impl ReceivedMessage {
    fn key(&self) -> MessageKey {
        let id = uuid::Uuid::try_parse(&self.claimed.message_id).expect("an id").as_u128();
        (self.queue, self.claimed.receipt.slot.sequence, id)
    }
}

/// See the module.
pub(super) struct World {
    pub(super) store: Yielding,
    pub(super) clock: Arc<ManualClock>,
    pub(super) placement: Arc<Placement>,
    pub(super) services: [MessageOperations; 2],
    pub(super) access: QueueAccess,
    /// The work queue, and the dead-letter queue.
    pub(super) queues: [QueueName; 2],
    pub(super) history: Mutex<History>,
    settings: QueueSettings,
}

impl World {
    /// Two services, and a work queue; with a dead-letter queue, if `has_dead_letters`.
    pub(super) async fn new(seed: u64, has_dead_letters: bool) -> Arc<Self> {
        let start = Ticks::from_unix(1_700_000_000, 0).expect("in range");
        let clock = Arc::new(ManualClock::new(start));
        let inner = MemoryEngine::with_clock(KEYSPACES, Arc::clone(&clock) as _);
        let store = Yielding { inner, random: Random::new(seed) };
        let placement = Arc::new(Placement(AtomicUsize::new(0)));
        let services = [0, 1].map(|service| {
            let policy = PlacedQueues { service, placement: Arc::clone(&placement) };
            let random = || uuid::Uuid::now_v7().as_u128();
            MessageOperations::new(
                Arc::new(store.clone()),
                Arc::clone(&clock) as _,
                random,
                Arc::new(policy),
            )
        });
        let queues = [queue_name("work"), queue_name("dead")];
        let dead_letter = DeadLetter { queue: queues[1].clone(), dequeue_count_max: DEQUEUES_MAX };
        let settings = QueueSettings {
            dead_letter: has_dead_letters.then_some(dead_letter),
            deduplication_window: Some(Duration::from_secs(3600)),
            ..Default::default()
        };
        let access = QueueAccess::owner(AccountName::development());
        let history = Mutex::default();
        let world = Self { store, clock, placement, services, access, queues, history, settings };
        let plain = QueueSettings::default();
        for (name, settings) in world.queues.iter().zip([world.settings.clone(), plain]) {
            let queues = &world.services[0].queues;
            queues.create(world.access.account(), name.clone(), settings).await.expect("created");
        }
        Arc::new(world)
    }

    pub(super) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().expect("no panic with it")
    }

    /// Runs a call in a task of its own, which is cancelled at any point in one of `cancels` cases; none then.
    async fn call<T: Send + 'static>(
        &self,
        cancels: usize,
        work: impl Future<Output = T> + Send + 'static,
    ) -> (RecordedCall, Option<T>) {
        let begin = self.history().tick();
        let task = tokio::spawn(work);
        if cancels > 0 && self.store.random.below(cancels) == 0 {
            for _ in 0..self.store.random.below(40) {
                tokio::task::yield_now().await;
            }
            task.abort();
        }
        let done = match task.await {
            Ok(done) => Some(done),
            Err(error) => {
                assert!(error.is_cancelled(), "{error}");
                // Its detached tasks end meanwhile.
                for _ in 0..200 {
                    tokio::task::yield_now().await;
                }
                None
            }
        };
        (RecordedCall { begin, end: self.history().tick() }, done)
    }

    /// Sends a message to the work queue; returns the outcome.
    pub(super) async fn send(
        &self,
        service: usize,
        (text, id): (&str, Option<String>),
        (group, request_id): (Option<&str>, Option<&str>),
    ) -> Outcome {
        let messages = self.services[service].clone();
        let (access, name) = (self.access.clone(), self.queues[0].clone());
        let delay = Duration::from_secs([0, 0, 0, 4][self.store.random.below(4)]);
        let outgoing = NewMessage {
            payload: Payload::Text(Bytes::from(text.to_owned())),
            delay,
            time_to_live: None,
            deduplication_id: id.clone(),
            group: group.map(str::to_owned),
        };
        let request = request_id.map(str::to_owned);
        let cancels = if group.is_some() || id.is_some() { 0 } else { 12 };
        let work = async move { messages.send(&access, &name, vec![Ok(outgoing)], request).await };
        let (call, sent) = self.call(cancels, work).await;
        let mut history = self.history();
        let outcome = match sent {
            None => Outcome::Unknown,
            Some(Err(error)) => rejected(&error),
            Some(Ok(mut sent)) => match sent.remove(0).expect("valid").is_duplicate {
                true => Outcome::Rejected,
                false => Outcome::Done,
            },
        };
        if let (Some(id), Outcome::Done) = (id, outcome) {
            history.originals.entry(id).or_default().push((call, text.to_owned()));
        }
        if let (Some(group), Outcome::Done) = (group, outcome) {
            history.groups.entry(group.to_owned()).or_default().push(text.to_owned());
        }
        // A request that is repeated until it is acknowledged is one call.
        let begin = history.sends.get(text).map_or(call.begin, |(first, _)| first.begin);
        history.sends.insert(text.to_owned(), (RecordedCall { begin, ..call }, outcome));
        outcome
    }

    /// Receives messages of a queue.
    pub(super) async fn receive(
        &self,
        service: usize,
        queue: usize,
        max: usize,
    ) -> Vec<ReceivedMessage> {
        let messages = self.services[service].clone();
        let (access, name) = (self.access.clone(), self.queues[queue].clone());
        let work = async move {
            messages.receive(&access, &name, receive(max)).await.map(ReceivedBatch::complete)
        };
        let (_, received) = self.call(25, work).await;
        match received {
            None => Vec::new(),
            Some(Err(error)) => {
                rejected(&error);
                Vec::new()
            }
            Some(Ok(received)) => received.iter().map(|d| self.delivered(queue, d)).collect(),
        }
    }

    fn delivered(&self, queue: usize, delivered: &Delivered) -> ReceivedMessage {
        let (text, visible_at) = (text(&delivered.body), delivered.slot.visible_at);
        let at = visible_at.before(VISIBILITY_TIMEOUT);
        let new = Generation { text: text.clone(), is_delivery: true, at, visible_at };
        let key = (queue, delivered.slot.sequence, delivered.state.id.as_u128());
        self.history().add_generation(key, delivered.state.generation, &new);
        let message_id = delivered.state.id.to_string();
        ReceivedMessage {
            queue,
            text,
            claimed: Claimed { message_id, receipt: delivered.receipt() },
        }
    }

    /// Deletes a received message.
    pub(super) async fn delete(&self, service: usize, received: ReceivedMessage) -> Outcome {
        let messages = self.services[service].clone();
        let (access, name) = (self.access.clone(), self.queues[received.queue].clone());
        let claimed = received.claimed.clone();
        let work = async move { messages.delete(&access, &name, vec![claimed]).await };
        let (_, deleted) = self.call(25, work).await;
        let outcome = match deleted {
            None => Outcome::Unknown,
            Some(Err(error)) => rejected(&error),
            Some(Ok(deleted)) if deleted[0] => Outcome::Done,
            Some(Ok(_)) => Outcome::Rejected,
        };
        let (key, receipt) = (received.key(), received.claimed.receipt);
        let mut history = self.history();
        history.deletes.entry(received.text).or_default().push((key, receipt.generation, outcome));
        outcome
    }

    /// Updates a received message; returns its new receipt, if the receipt was still valid.
    pub(super) async fn update(
        &self,
        service: usize,
        received: ReceivedMessage,
    ) -> Option<ReceivedMessage> {
        let messages = self.services[service].clone();
        let (access, name) = (self.access.clone(), self.queues[received.queue].clone());
        let seconds = [0, 2, 9][self.store.random.below(3)];
        let visibility_timeout = Duration::from_secs(seconds);
        let update =
            Update { claimed: received.claimed.clone(), visibility_timeout, payload: None };
        let work = async move { messages.update(&access, &name, update).await };
        let receipt = match self.call(0, work).await.1? {
            Ok(receipt) => receipt,
            Err(QueueError::MessageNotFound(_)) => return None,
            Err(error) => {
                rejected(&error);
                return None;
            }
        };
        let (text, visible_at) = (received.text.clone(), receipt.slot.visible_at);
        let at = visible_at.before(visibility_timeout);
        let new = Generation { text, is_delivery: false, at, visible_at };
        let key = received.key();
        self.history().add_generation(key, receipt.generation, &new);
        let message_id = received.claimed.message_id.clone();
        Some(ReceivedMessage { claimed: Claimed { message_id, receipt }, ..received })
    }

    /// Moves dead letters back.
    pub(super) async fn redrive(&self, service: usize) {
        let messages = self.services[service].clone();
        let (access, dead) = (self.access.clone(), self.queues[1].clone());
        let work = async move { messages.redrive(&access, &dead, None, 10).await };
        if let (_, Some(Err(error))) = self.call(0, work).await {
            rejected(&error);
        }
    }

    /// Clears the work queue, or replaces it by a new one.
    pub(super) async fn clear(&self, service: usize, is_replaced: bool) {
        let queues = self.services[service].queues.clone();
        let (account, name) = (self.access.account().clone(), self.queues[0].clone());
        let settings = self.settings.clone();
        let work = async move {
            if !is_replaced {
                return queues.clear(&account, name).await;
            }
            queues.delete(&account, name.clone()).await?;
            queues.create(&account, name, settings).await.map(drop)
        };
        let (call, cleared) = self.call(0, work).await;
        let outcome = match cleared {
            Some(Ok(())) => Outcome::Done,
            Some(Err(error)) => rejected(&error),
            None => Outcome::Unknown,
        };
        self.history().clears.push((call, outcome));
    }

    /// One step of the background work of a service.
    pub(super) async fn sweep(&self, service: usize) {
        let sweeper = Sweeper::new(self.services[service].clone());
        sweeper.tick(SweepScope::Store).await.expect("swept");
        self.services[service].follow_owners().await.expect("followed");
    }

    /// The head of a queue.
    pub(super) async fn head(&self, queue: usize) -> (QueueId, QueueHead) {
        let queues = &self.services[0].queues;
        let stored = queues.stored(self.access.account(), &self.queues[queue]).await;
        let id = stored.expect("readable").expect("exists").id;
        let head = self.store.inner.get(&keys::head(id)).await.expect("readable");
        (id, QueueHead::decode(&head.expect("a head")).expect("readable"))
    }

    /// The service that owns a queue: whose scheduler is open under the token of its head.
    pub(super) async fn owner(&self, queue: usize) -> Option<usize> {
        let (id, head) = self.head(queue).await;
        let owns = |service: &usize| {
            let open = self.services[*service].schedulers.find(id);
            open.is_some_and(|scheduler| scheduler.token() == head.token)
        };
        [0, 1].into_iter().find(owns)
    }

    /// Receives and deletes every message through the service that owns the queues, and asserts that none remains;
    /// returns them.
    pub(super) async fn drain(&self) -> Vec<String> {
        self.clock.advance(Duration::from_secs(3600));
        let mut found = Vec::new();
        for queue in [0, 1] {
            // Without a take-over: a message that its index misses is stranded.
            let service = self.owner(queue).await.unwrap_or(0);
            self.placement.set(service);
            loop {
                let messages = &self.services[service];
                let name = &self.queues[queue];
                let received = messages.receive(&self.access, name, receive(32)).await;
                // One that was the owner before: the next call takes over.
                if matches!(received, Err(QueueError::NotOwner(_))) {
                    continue;
                }
                let received = received.expect("received").complete();
                if received.is_empty() {
                    break;
                }
                for delivered in &received {
                    let received = self.delivered(queue, delivered);
                    let claimed = vec![received.claimed];
                    let deleted = messages.delete(&self.access, name, claimed).await;
                    assert!(deleted.expect("decided")[0], "{}", received.text);
                    found.push(received.text);
                }
            }
        }
        for queue in [0, 1] {
            let (id, head) = self.head(queue).await;
            assert_eq!(head.count, 0, "{} holds nothing", self.queues[queue]);
            for part in QueuePart::ALL {
                let span = keys::part_span(id, part);
                let limit = ScanLimit { rows: 10, bytes: usize::MAX };
                let scan = self.store.inner.scan(&span, limit).await.expect("readable");
                assert!(scan.entries.is_empty(), "stranded in {part:?}: {:?}", scan.entries);
            }
        }
        found
    }
}

/// An error that means that nothing was written.
pub(super) fn rejected(error: &QueueError) -> Outcome {
    let is_expected = matches!(
        error,
        QueueError::NotOwner(_) | QueueError::KeepsChanging(_) | QueueError::QueueNotFound(_)
    );
    assert!(is_expected, "{error}");
    Outcome::Rejected
}
