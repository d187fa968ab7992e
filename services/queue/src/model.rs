//! Any sequence of commands has the results of a plain model of a queue, on every engine, with crashes and a clock that
//! jumps both ways in between.

mod ownership;
mod plain;
mod waiting;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use proptest::{prelude::*, test_runner::TestCaseError};
use trestle_kv::{Engine, MemoryEngine};
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_model::fault::Violations;
use trestle_model::name::{AccountName, QueueName};
use trestle_model::time::{ManualClock, Ticks};

use self::plain::{DEQUEUES_MAX, Message, Plain, WINDOW};
use crate::{
    authorize::QueueAccess,
    delivery::TakeOverAlways,
    error::QueueError,
    keys::KEYSPACES,
    messages::MessageOperations,
    peek::{Peek, Peeked},
    receipt::Claimed,
    receive::Receive,
    record::{DeadLetter, QueueSettings},
    send::NewMessage,
    stored::{Body, Payload},
    sweep::{SweepScope, Sweeper},
    update::Update,
};

#[derive(Debug, Clone)]
enum ModelCommand {
    Send { delay: u64, time_to_live: Option<u64>, id: Option<u8>, group: Option<u8> },
    Receive { max: usize, timeout: u64 },
    Delete(usize),
    Update { receipt: usize, timeout: u64, replace: bool },
    Redrive,
    Clear,
    Advance(u64),
    StepBack(u64),
    Sweep,
    Reopen,
}

fn command() -> impl Strategy<Value = ModelCommand> {
    let time_to_live = proptest::option::of(10..60_u64);
    let id = proptest::option::weighted(0.3, 0..3_u8);
    let group = proptest::option::weighted(0.6, 0..3_u8);
    prop_oneof![
        6 => (0..9_u64, time_to_live, id, group)
            .prop_map(|(delay, time_to_live, id, group)| ModelCommand::Send { delay, time_to_live, id, group }),
        6 => (1..4_usize, 1..9_u64).prop_map(|(max, timeout)| ModelCommand::Receive { max, timeout }),
        4 => (0..1000_usize).prop_map(ModelCommand::Delete),
        2 => (0..1000_usize, 0..9_u64, any::<bool>())
            .prop_map(|(receipt, timeout, replace)| ModelCommand::Update { receipt, timeout, replace }),
        1 => Just(ModelCommand::Redrive),
        1 => (0..10_u8).prop_map(|n| if n == 0 { ModelCommand::Clear } else { ModelCommand::Advance(3) }),
        4 => (0..12_u64).prop_map(ModelCommand::Advance),
        1 => (0..40_u64).prop_map(ModelCommand::StepBack),
        2 => Just(ModelCommand::Sweep),
        1 => Just(ModelCommand::Reopen),
    ]
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn queue_name(text: &str) -> QueueName {
    QueueName::parse(text.to_owned(), "queue", &mut Violations::default()).expect("a name")
}

/// The engine of a test.
enum Store {
    Memory(MemoryEngine),
    Disk(tempfile::TempDir),
}

impl Store {
    fn open(&self, clock: &Arc<ManualClock>) -> Arc<dyn Engine> {
        match self {
            Self::Memory(engine) => Arc::new(engine.clone()),
            Self::Disk(directory) => {
                let mut options = FjallOptions::new(directory.path(), KEYSPACES.to_vec());
                options.clock = Arc::clone(clock) as _;
                Arc::new(FjallEngine::open(options).expect("the store opens"))
            }
        }
    }
}

fn in_memory(clock: &Arc<ManualClock>) -> Store {
    Store::Memory(MemoryEngine::with_clock(KEYSPACES, Arc::clone(clock) as _))
}

/// The service under test, and the receipts that it returned.
struct Real {
    store: Store,
    clock: Arc<ManualClock>,
    messages: MessageOperations,
    sweeper: Sweeper,
    access: QueueAccess,
    work: QueueName,
    dead: QueueName,
    receipts: Vec<Claimed>,
}

fn service(engine: Arc<dyn Engine>, clock: &Arc<ManualClock>) -> (MessageOperations, Sweeper) {
    let random = || uuid::Uuid::now_v7().as_u128();
    let messages = MessageOperations::new(engine, clock.clone(), random, Arc::new(TakeOverAlways));
    let sweeper = Sweeper::new(messages.clone());
    (messages, sweeper)
}

impl Real {
    async fn new(store: impl FnOnce(&Arc<ManualClock>) -> Store) -> Self {
        let start = Ticks::from_unix(1_700_000_000, 0).expect("in range");
        let clock = Arc::new(ManualClock::new(start));
        let store = store(&clock);
        let (messages, sweeper) = service(store.open(&clock), &clock);
        let (work, dead) = (queue_name("work"), queue_name("dead"));
        let account = AccountName::development();
        let access = QueueAccess::owner(account.clone());
        let settings = QueueSettings {
            dead_letter: Some(DeadLetter { queue: dead.clone(), dequeue_count_max: DEQUEUES_MAX }),
            deduplication_window: Some(WINDOW),
            ..Default::default()
        };
        let queues = &messages.queues;
        queues.create(&account, work.clone(), settings).await.expect("created");
        let plain = QueueSettings::default();
        queues.create(&account, dead.clone(), plain).await.expect("created");
        let receipts = Vec::new();
        Self { store, clock, messages, sweeper, access, work, dead, receipts }
    }

    /// Ends the service without a shutdown, and starts it again.
    async fn reopen(&mut self) {
        if matches!(self.store, Store::Disk(_)) {
            // The directory is locked until its last reference is dropped.
            let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(KEYSPACES));
            (self.messages, self.sweeper) = service(engine, &self.clock);
        }
        (self.messages, self.sweeper) = service(self.store.open(&self.clock), &self.clock);
        for name in [&self.work, &self.dead] {
            let queue = self.messages.queues.open(&self.access, name).await.expect("exists");
            self.messages.schedulers.open(&queue).await.expect("readable");
        }
    }

    fn now(&self) -> Ticks {
        self.messages.engine.now()
    }

    async fn count(&self, name: &QueueName) -> u64 {
        let queue = self.messages.queues.open(&self.access, name).await.expect("exists");
        self.messages.stats(&queue).await.expect("readable").messages
    }

    /// Sweeps until nothing is removed. A message that becomes the first of its group is removed by the same tick where
    /// it lies in a later part of the queue, and otherwise by the next one.
    async fn sweep(&self) {
        let counts = async || [self.count(&self.work).await, self.count(&self.dead).await];
        loop {
            let before = counts().await;
            while self.sweeper.tick(SweepScope::Store).await.expect("swept") {}
            if counts().await == before {
                return;
            }
        }
    }

    /// The visible messages, or every one, in pages of two.
    async fn peek(&self, name: &QueueName, is_every: bool) -> Vec<Peeked> {
        let mut peek = Peek { max: 2, page_token: String::new(), is_every };
        let mut messages = Vec::new();
        loop {
            let page = self.messages.peek(&self.access, name, &peek).await.expect("readable");
            messages.extend(page.messages);
            let Some(next) = page.next_page_token else { return messages };
            peek.page_token = next;
        }
    }

    /// Sends a message; returns false for a duplicate.
    async fn send(&mut self, message: NewMessage) -> bool {
        let sent = self.messages.send(&self.access, &self.work, vec![Ok(message)], None).await;
        let sent = sent.expect("decided").remove(0).expect("sent");
        if let Some(receipt) = sent.receipt().filter(|_| !sent.is_duplicate) {
            let message_id = sent.sent.state.id.to_string();
            self.receipts.push(Claimed { message_id, receipt });
        }
        !sent.is_duplicate
    }

    async fn receive(
        &mut self,
        max: usize,
        visibility_timeout: Duration,
    ) -> Vec<(String, u32, Ticks)> {
        let wait = Duration::ZERO;
        let receive = Receive { max, visibility_timeout, wait, deadline: None };
        let received = self.messages.receive(&self.access, &self.work, receive).await;
        let received = received.expect("received").complete();
        for delivered in &received {
            let message_id = delivered.state.id.to_string();
            self.receipts.push(Claimed { message_id, receipt: delivered.receipt() });
        }
        let seen = |d: &crate::messages::Delivered| {
            (text(&d.body), d.state.dequeue_count, d.slot.visible_at)
        };
        received.iter().map(seen).collect()
    }

    async fn delete(&self, receipt: usize) -> bool {
        let claimed = vec![self.receipts[receipt].clone()];
        self.messages.delete(&self.access, &self.work, claimed).await.expect("decided")[0]
    }

    async fn update(
        &mut self,
        receipt: usize,
        visibility_timeout: Duration,
        text: Option<String>,
    ) -> bool {
        let claimed = self.receipts[receipt].clone();
        let message_id = claimed.message_id.clone();
        let payload = text.map(|text| Payload::Text(Bytes::from(text)));
        let update = Update { claimed, visibility_timeout, payload };
        match self.messages.update(&self.access, &self.work, update).await {
            Ok(receipt) => {
                self.receipts.push(Claimed { message_id, receipt });
                true
            }
            Err(QueueError::MessageNotFound(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }
}

fn text(body: &Body) -> String {
    match &body.payload {
        Payload::Text(bytes) | Payload::Data(bytes) => {
            String::from_utf8(bytes.to_vec()).expect("text")
        }
    }
}

/// Runs a command on both and compares the results.
async fn run(
    real: &mut Real,
    plain: &mut Plain,
    number: usize,
    command: &ModelCommand,
) -> Result<(), TestCaseError> {
    let now = real.now();
    match command {
        ModelCommand::Send { delay, time_to_live, id, group } => {
            let (delay, time_to_live) = (seconds(*delay), time_to_live.map(seconds));
            let (text, id) = (format!("m{number}"), id.map(|id| format!("id{id}")));
            let expected =
                plain.send(text.clone(), (delay, time_to_live), (id.as_deref(), *group), now);
            let group = group.map(|group| format!("group {group}"));
            let payload = Payload::Text(Bytes::from(text));
            let message = NewMessage { payload, delay, time_to_live, deduplication_id: id, group };
            prop_assert_eq!(real.send(message).await, expected);
        }
        ModelCommand::Receive { max, timeout } => {
            let expected = plain.receive(*max, seconds(*timeout), now).into_iter();
            let expected: Vec<_> =
                expected.map(|m| (m.text, m.dequeue_count, m.visible_at)).collect();
            prop_assert_eq!(real.receive(*max, seconds(*timeout)).await, expected);
        }
        ModelCommand::Delete(receipt) if plain.receipts > 0 => {
            let receipt = receipt % plain.receipts;
            prop_assert_eq!(real.delete(receipt).await, plain.delete(receipt, now));
        }
        ModelCommand::Update { receipt, timeout, replace } if plain.receipts > 0 => {
            let (receipt, timeout) = (receipt % plain.receipts, seconds(*timeout));
            let text = replace.then(|| format!("u{number}"));
            let expected = plain.update(receipt, timeout, text.clone(), now);
            prop_assert_eq!(real.update(receipt, timeout, text).await, expected);
        }
        ModelCommand::Delete(_) | ModelCommand::Update { .. } => {}
        ModelCommand::Redrive => {
            let moved = real.messages.redrive(&real.access, &real.dead, None, 1000).await;
            prop_assert_eq!(moved.expect("moved"), plain.redrive(now));
        }
        ModelCommand::Clear => {
            let cleared =
                real.messages.queues.clear(real.access.account(), real.work.clone()).await;
            cleared.expect("cleared");
            plain.clear();
        }
        ModelCommand::Advance(by) => real.clock.advance(seconds(*by)),
        ModelCommand::StepBack(by) => {
            real.clock.set(trestle_model::time::Clock::now(&*real.clock).before(seconds(*by)));
        }
        ModelCommand::Sweep => {
            real.sweep().await;
            plain.sweep(now);
        }
        ModelCommand::Reopen => real.reopen().await,
    }
    Ok(())
}

async fn compare(real: &Real, plain: &Plain) -> Result<(), TestCaseError> {
    let now = real.now();
    for (name, messages) in [(&real.work, &plain.work), (&real.dead, &plain.dead)] {
        let expected: Vec<_> = Plain::peek(messages, now).iter().map(seen).collect();
        let found = async |is_every| -> Vec<_> {
            let found = real.peek(name, is_every).await;
            found.iter().map(|it| (text(&it.body), it.state.dequeue_count)).collect()
        };
        prop_assert_eq!(found(false).await, expected, "{}", name);
        let unexpired = messages.iter().filter(|message| !message.has_expired(now));
        let (mut expected, mut found): (Vec<_>, _) =
            (unexpired.map(seen).collect(), found(true).await);
        expected.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, expected, "{}", name);
        let count = u64::try_from(messages.len()).expect("fits");
        prop_assert_eq!(real.count(name).await, count, "{}", name);
    }
    Ok(())
}

fn seen(message: &Message) -> (String, u32) {
    (message.text.clone(), message.dequeue_count)
}

async fn follow(
    store: impl FnOnce(&Arc<ManualClock>) -> Store,
    commands: &[ModelCommand],
) -> Result<(), TestCaseError> {
    let (mut real, mut plain) = (Real::new(store).await, Plain::default());
    for (number, command) in commands.iter().enumerate() {
        run(&mut real, &mut plain, number, command).await?;
        compare(&real, &plain).await?;
    }
    Ok(())
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// A case in which random commands once differed from the model: a sweep removes the first message of a group, and the
/// second, which has expired too, lies in a later part of the queue.
#[tokio::test]
async fn a_sweep_removes_expired_messages_that_become_the_first_of_their_group() {
    let send = |time_to_live, group| ModelCommand::Send { delay: 0, time_to_live, id: None, group };
    for between in 0..20 {
        let mut commands = vec![send(Some(10), Some(0))];
        commands.extend((0..between).map(|_| send(None, None)));
        commands.extend([send(Some(10), Some(0)), send(None, None)]);
        commands.extend([ModelCommand::Advance(10), ModelCommand::Sweep]);

        follow(in_memory, &commands).await.expect("the same");
    }
}

/// A case in which random commands once differed from the model: the second message of the group has expired when the
/// first one is dead-lettered.
#[tokio::test]
async fn a_dead_letter_leaves_an_expired_message_of_its_group_for_the_next_consumer() {
    let send = |time_to_live, group| ModelCommand::Send { delay: 0, time_to_live, id: None, group };
    let commands = [
        send(None, Some(1)),
        send(Some(10), Some(1)),
        ModelCommand::Receive { max: 1, timeout: 1 },
        ModelCommand::Advance(3),
        ModelCommand::Receive { max: 1, timeout: 1 },
        send(Some(10), None),
        send(None, None),
        ModelCommand::Advance(12),
        ModelCommand::Receive { max: 3, timeout: 1 },
        ModelCommand::Advance(3),
        ModelCommand::Receive { max: 3, timeout: 1 },
    ];

    follow(in_memory, &commands).await.expect("the same");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_commands_do_what_the_model_does_in_memory(
        commands in proptest::collection::vec(command(), 1..80),
    ) {
        block_on(follow(in_memory, &commands))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_commands_do_what_the_model_does_on_disk(
        commands in proptest::collection::vec(command(), 1..60),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        block_on(follow(|_| Store::Disk(directory), &commands))?;
    }
}
