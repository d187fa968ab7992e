//! Consumers that wait for messages.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tonic::Code;
use trestle_proto::queue::v1::{Delivery, ReceiveMessagesRequest};
use trestle_tests::{
    CallError, HANG, Queue, World, delayed, queue_scenario, receipt_of, seconds, text, texts,
};

queue_scenario!(
    a_send_wakes_a_waiting_consumer,
    due_message_wakes_a_waiting_consumer,
    released_message_wakes_a_waiting_consumer,
    waiting_receive_times_out_empty,
    waiting_receive_ends_when_the_queue_is_deleted,
    waiting_consumers_share_messages,
    a_call_near_its_deadline_leaves_a_message_to_others,
);

/// The messages of a waiting consumer, with a concurrent action.
async fn while_waiting(queue: &Queue, then: impl Future<Output = ()>) -> Waited {
    // On the heap: the calls in it are large.
    let happening = Box::pin(async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        then.await;
    });
    soon(Box::pin(async { tokio::join!(queue.wait(seconds(20)), happening) })).await.0
}

type Waited = Result<Vec<Delivery>, CallError>;

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, work).await.expect("in time")
}

async fn a_send_wakes_a_waiting_consumer(world: &World) {
    let queue = world.queue("jobs").await;
    let send = Box::pin(async { drop(queue.send(text("work")).await.unwrap()) });

    assert_eq!(texts(&while_waiting(&queue, send).await.unwrap()), ["work"]);
}

async fn due_message_wakes_a_waiting_consumer(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(delayed(text("later"), seconds(1))).await.unwrap();

    let received = soon(queue.wait(seconds(20))).await.unwrap();

    assert_eq!(texts(&received), ["later"]);
}

async fn released_message_wakes_a_waiting_consumer(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(text("work")).await.unwrap();
    let held = queue.receive(1, seconds(600)).await.unwrap();
    let receipt = receipt_of(&held[0]);
    let give_back =
        Box::pin(async { drop(queue.update(receipt, seconds(0), None).await.unwrap()) });

    let received = while_waiting(&queue, give_back).await.unwrap();
    assert_eq!(received[0].message.as_ref().unwrap().dequeue_count, 2);
}

async fn waiting_receive_times_out_empty(world: &World) {
    let queue = world.queue("jobs").await;

    let started = Instant::now();
    let received = soon(queue.wait(seconds(1))).await.unwrap();

    assert_eq!(received, []);
    assert!(started.elapsed() >= Duration::from_millis(950), "{:?}", started.elapsed());
}

async fn waiting_receive_ends_when_the_queue_is_deleted(world: &World) {
    let queue = world.queue("jobs").await;
    let delete = Box::pin(async { queue.drop_queue().await.unwrap() });

    let error = while_waiting(&queue, delete).await.unwrap_err();
    assert_eq!(error.kind(), (Code::NotFound, "QUEUE_NOT_FOUND"));
}

async fn waiting_consumers_share_messages(world: &World) {
    let queue = world.queue("jobs").await;
    let waiters = join_all((0..20).map(|_| queue.wait(seconds(20))));
    let messages = (0..20).map(|number| text(&number.to_string())).collect();
    let send = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        queue.send_all(messages).await.unwrap();
    };

    let (received, ()) = soon(async { tokio::join!(waiters, send) }).await;

    let received = received.into_iter().map(Result::unwrap);
    let mut delivered: Vec<_> = received.map(|d| texts(&d).join(",")).collect();
    delivered.sort_by_key(|text| text.parse::<u32>().unwrap());
    let expected: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    assert_eq!(delivered, expected, "one each");
}

async fn a_call_near_its_deadline_leaves_a_message_to_others(world: &World) {
    let queue = world.queue("jobs").await;
    let (visibility_timeout, wait) = (Some(seconds(3600)), Some(seconds(20)));
    let request = ReceiveMessagesRequest {
        queue: queue.name(),
        visibility_timeout,
        wait,
        ..ReceiveMessagesRequest::default()
    };
    let mut request = tonic::Request::new(request);
    request.set_timeout(Duration::from_secs(2));
    let mut client = queue.client();
    let late = Box::pin(async {
        tokio::time::sleep(Duration::from_millis(1900)).await;
        queue.send(text("work")).await.unwrap();
    });

    let (ended, ()) =
        Box::pin(async { tokio::join!(client.receive_messages(request), late) }).await;

    let code = ended.unwrap_err().code();
    assert!(matches!(code, Code::DeadlineExceeded | Code::Cancelled), "{code:?}");
    let received = soon(queue.wait(seconds(20))).await.unwrap();
    assert_eq!(received[0].message.as_ref().unwrap().dequeue_count, 1);
}
