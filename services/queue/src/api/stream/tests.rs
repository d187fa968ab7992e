//! Clients that read nothing.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Duration, sleep};
use tonic::Code;
use trestle_kv::MemoryEngine;
use trestle_service::{
    clock::{ManualClock, Ticks},
    name::AccountName,
};

use super::*;
use crate::{
    record::QueueSettings,
    send::{Attempt, Outgoing},
    stored::Payload,
};

const SENT: usize = 200;

struct Opened {
    messages: Messages,
    clock: Arc<ManualClock>,
    access: Access,
    queue: QueueName,
}

async fn opened() -> Opened {
    let start = Ticks::from_unix(1_700_000_000, 0).expect("in range");
    let clock = Arc::new(ManualClock::new(start));
    let random = || uuid::Uuid::now_v7().as_u128();
    let messages = Messages::new(Arc::new(MemoryEngine::new()), clock.clone(), random);
    let account = AccountName::development();
    let queue = crate::model::queue_name("work");
    let settings = QueueSettings::default();
    messages.queues.create(&account, queue.clone(), settings).await.expect("created");
    let access = Access::owner(account);
    let message = |_| -> Attempt {
        let payload = Payload::Text(Bytes::from_static(b"x"));
        let (delay, life) = (Duration::ZERO, None);
        Ok(Outgoing { payload, delay, life, deduplication_id: None, group: None })
    };
    let batch: Vec<_> = (0..SENT).map(message).collect();
    messages.send(&access, &queue, batch, None).await.expect("sent");
    Opened { messages, clock, access, queue }
}

impl Opened {
    async fn visible(&self) -> usize {
        self.messages.peek(&self.access, &self.queue, SENT).await.expect("readable").len()
    }
}

/// A client that opens a stream with credit for everything and says nothing more.
fn requests(
    queue: &QueueName,
) -> impl Stream<Item = Result<StreamMessagesRequest, Status>> + Send + Unpin + 'static {
    let credit = u32::try_from(SENT).expect("fits");
    let open = Open { queue: queue.as_str().to_owned(), visibility_timeout: None, credit };
    let first = StreamMessagesRequest { message: Some(Message::Open(open)) };
    Box::pin(stream::iter([Ok(first)]).chain(stream::pending()))
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_let_go_and_loses_nothing() {
    let world = opened().await;
    let requests = requests(&world.queue);
    let mut answers =
        deliveries(world.messages.clone(), world.access.clone(), requests, Facts::default());

    // The clock of the test runs by itself while everybody waits.
    sleep(STREAM_IDLE_MAX - Duration::from_secs(1)).await;
    let under_way = (WAITING_MAX + 1) * RECEIVE_MESSAGES_MAX;
    assert_eq!(world.visible().await, SENT - under_way, "no more than what is under way is held");
    sleep(Duration::from_secs(2)).await;

    let first = answers.next().await.expect("what was under way").expect("deliveries");
    assert_eq!(first.deliveries.len(), RECEIVE_MESSAGES_MAX);
    let ended = answers.next().await.expect("an end").expect_err("let go");
    assert_eq!(ended.code(), Code::DeadlineExceeded);
    assert!(answers.next().await.is_none());
    assert_eq!(world.visible().await, SENT - under_way, "and nothing more was taken");
    world.clock.advance(Duration::from_secs(31));
    assert_eq!(world.visible().await, SENT, "what it did not delete comes again");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_is_kept() {
    let world = opened().await;
    let requests = requests(&world.queue);
    let mut answers =
        deliveries(world.messages.clone(), world.access.clone(), requests, Facts::default());

    let mut delivered = 0;
    while delivered < SENT {
        sleep(STREAM_IDLE_MAX - Duration::from_secs(1)).await;
        let answer = answers.next().await.expect("more").expect("deliveries");
        delivered += answer.deliveries.len();
    }

    assert_eq!(delivered, SENT);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_says_what_it_wants_is_let_go() {
    let world = opened().await;
    let silent = stream::pending();
    let mut answers =
        deliveries(world.messages.clone(), world.access.clone(), silent, Facts::default());

    let ended = answers.next().await.expect("an end").expect_err("let go");

    assert_eq!(ended.code(), Code::DeadlineExceeded);
    assert!(ended.message().contains("no first message"), "{}", ended.message());
}
