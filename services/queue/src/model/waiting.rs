//! Waiting consumers: they are woken at once and in order, and leave no state after a cancellation.

use std::time::Instant;

use tokio_util::sync::CancellationToken;
use trestle_model::time::SystemClock;

use super::*;

/// Far less than any wait of these tests, far more than any operation takes.
const SOON: Duration = Duration::from_secs(5);
const LONG: Duration = Duration::from_secs(20);

fn start(engine: Arc<dyn Engine>) -> MessageOperations {
    let random = || uuid::Uuid::now_v7().as_u128();
    MessageOperations::new(engine, Arc::new(SystemClock), random, Arc::new(TakeOverAlways))
}

async fn queue() -> MessageOperations {
    let messages = start(Arc::new(MemoryEngine::new(KEYSPACES)));
    let settings = QueueSettings::default();
    let created = messages.queues.create(&account(), queue_name("work"), settings).await;
    created.expect("created");
    messages
}

fn account() -> AccountName {
    AccountName::development()
}

fn access() -> QueueAccess {
    QueueAccess::owner(account())
}

async fn send(messages: &MessageOperations, text: &str, delay: Duration) {
    let payload = Payload::Text(Bytes::from(text.to_owned()));
    let outgoing =
        NewMessage { payload, delay, time_to_live: None, deduplication_id: None, group: None };
    let sent = messages.send(&access(), &queue_name("work"), vec![Ok(outgoing)], None).await;
    sent.expect("sent");
}

/// A waiting consumer; returns what it receives.
fn consumer(
    messages: &MessageOperations,
    max: usize,
    wait: Duration,
) -> tokio::task::JoinHandle<Result<Vec<String>, QueueError>> {
    let messages = messages.clone();
    tokio::spawn(async move {
        let receive = Receive { max, visibility_timeout: LONG, wait, deadline: None };
        let received = messages.receive(&access(), &queue_name("work"), receive).await?;
        Ok(received.complete().iter().map(|delivered| text(&delivered.body)).collect())
    })
}

#[tokio::test]
async fn a_shutdown_ends_the_waits_of_present_and_later_consumers() {
    let messages = queue().await;
    let waits = [consumer(&messages, 1, LONG), consumer(&messages, 1, LONG)];
    waiting(&messages, 2).await;
    let began = Instant::now();

    messages.shutdown.cancel();
    for waited in waits {
        assert_eq!(waited.await.expect("no panic").expect("answered"), [""; 0]);
    }
    let late = consumer(&messages, 1, LONG).await.expect("no panic").expect("answered");
    send(&messages, "present", Duration::ZERO).await;
    let present = consumer(&messages, 1, LONG).await.expect("no panic").expect("answered");

    assert_eq!((late, present), (Vec::new(), vec!["present".to_owned()]));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    waiting(&messages, 0).await;
}

async fn waiting(messages: &MessageOperations, count: usize) {
    let queue = messages.queues.open(&access(), &queue_name("work")).await.expect("exists");
    let scheduler = messages.schedulers.open(&queue).await.expect("readable");
    let deadline = Instant::now() + SOON;
    while scheduler.waiting() != count {
        assert!(Instant::now() < deadline, "{} wait, not {count}", scheduler.waiting());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, work).await.expect("in time")
}

#[tokio::test]
async fn a_send_wakes_the_consumer_that_waited_longest() {
    let messages = queue().await;
    let first = consumer(&messages, 1, LONG);
    waiting(&messages, 1).await;
    let second = consumer(&messages, 1, LONG);
    waiting(&messages, 2).await;

    send(&messages, "a", Duration::ZERO).await;
    assert_eq!(soon(first).await.expect("ran").expect("received"), ["a"]);
    waiting(&messages, 1).await;
    send(&messages, "b", Duration::ZERO).await;
    assert_eq!(soon(second).await.expect("ran").expect("received"), ["b"]);
    waiting(&messages, 0).await;
}

#[tokio::test]
async fn a_message_that_becomes_due_wakes_a_consumer() {
    let messages = queue().await;
    let waiter = consumer(&messages, 1, LONG);
    waiting(&messages, 1).await;

    send(&messages, "later", Duration::from_millis(300)).await;

    let started = Instant::now();
    assert_eq!(soon(waiter).await.expect("ran").expect("received"), ["later"]);
    assert!(started.elapsed() >= Duration::from_millis(250), "not before it is due");
}

#[tokio::test]
async fn a_cancelled_consumer_receives_no_message_and_leaves_no_state() {
    let messages = queue().await;
    let leaver = consumer(&messages, 1, LONG);
    waiting(&messages, 1).await;
    leaver.abort();
    waiting(&messages, 0).await;
    let stayer = consumer(&messages, 1, LONG);
    waiting(&messages, 1).await;

    send(&messages, "a", Duration::ZERO).await;

    assert_eq!(soon(stayer).await.expect("ran").expect("received"), ["a"]);
}

#[tokio::test]
async fn a_wait_ends_without_messages_after_its_timeout() {
    let messages = queue().await;

    let started = Instant::now();
    let received = soon(consumer(&messages, 1, Duration::from_millis(200))).await;

    assert_eq!(received.expect("ran").expect("received"), Vec::<String>::new());
    assert!(started.elapsed() >= Duration::from_millis(190));
    waiting(&messages, 0).await;
}

#[tokio::test]
async fn deleting_the_queue_ends_the_wait_and_clearing_it_does_not() {
    let messages = queue().await;
    let waiter = consumer(&messages, 1, LONG);
    waiting(&messages, 1).await;

    messages.queues.clear(&account(), queue_name("work")).await.expect("cleared");
    waiting(&messages, 1).await;
    messages.queues.delete(&account(), queue_name("work")).await.expect("deleted");

    let outcome = soon(waiter).await.expect("ran");
    assert!(matches!(outcome, Err(QueueError::QueueNotFound(_))), "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_consumers_share_many_messages_without_loss_or_duplicates() {
    const CONSUMERS: usize = 24;
    const MESSAGES: usize = 600;
    let messages = queue().await;
    let ended = CancellationToken::new();
    let consumers: Vec<_> = (0..CONSUMERS)
        .map(|number| {
            let messages = messages.clone();
            tokio::spawn(async move {
                let mut seen = Vec::new();
                loop {
                    let received = consumer(&messages, 1 + number % 3, Duration::from_secs(2));
                    let received = received.await.expect("ran").expect("received");
                    if received.is_empty() {
                        return seen;
                    }
                    seen.extend(received);
                }
            })
        })
        .collect();
    // Some consumers cancel repeatedly, at any point of the call.
    let cancelling: Vec<_> = (0..4)
        .map(|_| {
            let (messages, ended) = (messages.clone(), ended.clone());
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while !ended.is_cancelled() {
                    let call = consumer(&messages, 2, LONG);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    call.abort();
                    if let Ok(received) = call.await {
                        seen.extend(received.expect("received"));
                    }
                }
                seen
            })
        })
        .collect();
    for number in 0..MESSAGES {
        send(&messages, &number.to_string(), Duration::ZERO).await;
    }

    ended.cancel();
    let mut seen = Vec::new();
    for consumer in cancelling.into_iter().chain(consumers) {
        seen.extend(tokio::time::timeout(LONG, consumer).await.expect("ends").expect("ran"));
    }
    let received = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), received, "no consumer received a message that another one holds");
    assert_eq!(received, MESSAGES, "what cancelled calls received is visible again at once");
    let queue = messages.queues.open(&access(), &queue_name("work")).await.expect("exists");
    let stats = messages.stats(&queue).await.expect("readable");
    assert_eq!(stats.messages, u64::try_from(MESSAGES).expect("fits"));
}
