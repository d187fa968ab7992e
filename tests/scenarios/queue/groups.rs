//! Ordering groups: one message of a group at a time, in the order in which they were sent.

mod unblocked;

use std::time::Duration;

use tonic::Code;
use trestle_proto::queue::v1::{self as proto, DeadLetterPolicy, Delivery, OutgoingMessage};
use trestle_tests::{
    Queue, World, delayed, queue_scenario, receipt_of, receipt_of_sent, seconds, text, texts,
    unique, with_ttl,
};

queue_scenario!(
    group_messages_are_delivered_one_at_a_time_in_order,
    groups_are_independent,
    many_consumers_receive_each_group_in_order,
    group_id_is_limited_in_length,
);

fn grouped(body: &str, group: &str) -> OutgoingMessage {
    OutgoingMessage { ordering_group: group.to_owned(), ..text(body) }
}

async fn take(queue: &Queue) -> Vec<Delivery> {
    queue.receive(32, seconds(60)).await.unwrap()
}

async fn delete_all(queue: &Queue, deliveries: &[Delivery]) {
    for delivery in deliveries {
        queue.delete(receipt_of(delivery)).await.unwrap();
    }
}

async fn group_messages_are_delivered_one_at_a_time_in_order(world: &World) {
    let queue = world.queue("jobs").await;
    let batch = ["1", "2", "3"].map(|body| grouped(body, "g"));
    queue.send_all(batch.to_vec()).await.unwrap();
    queue.send(grouped("4", "g")).await.unwrap();
    assert_eq!(queue.peek(32).await.unwrap().len(), 1);
    assert_eq!(queue.count().await, 4);

    for expected in ["1", "2", "3", "4"] {
        let received = take(&queue).await;
        assert_eq!(texts(&received), [expected]);
        let message = received[0].message.as_ref().unwrap();
        assert_eq!((&*message.ordering_group, message.dequeue_count), ("g", 1));
        assert_eq!(take(&queue).await, [], "one in flight");
        delete_all(&queue, &received).await;
    }
    assert_eq!((take(&queue).await, queue.count().await), (Vec::new(), 0));
    queue.send(grouped("5", "g")).await.unwrap();
    assert_eq!(texts(&take(&queue).await), ["5"], "a group that was empty");
}

async fn groups_are_independent(world: &World) {
    let queue = world.queue("jobs").await;
    let batch = vec![
        grouped("a1", "a"),
        grouped("a2", "a"),
        grouped("b1", "b"),
        text("free"),
        grouped("b2", "b"),
        text("free too"),
    ];
    queue.send_all(batch).await.unwrap();

    let first = take(&queue).await;
    assert_eq!(texts(&first), ["a1", "b1", "free", "free too"]);
    queue.delete_all(first.iter().map(receipt_of).collect()).await.unwrap();

    let mut second = take(&queue).await;
    second.sort_by_key(|delivery| texts(std::slice::from_ref(delivery))[0].to_owned());
    assert_eq!(texts(&second), ["a2", "b2"]);
}

async fn many_consumers_receive_each_group_in_order(world: &World) {
    const GROUPS: usize = 5;
    const EACH: usize = 20;
    let queue = world.queue("jobs").await;
    for number in 0..EACH {
        let batch = (0..GROUPS).map(|g| grouped(&format!("{g} {number:02}"), &g.to_string()));
        queue.send_all(batch.collect()).await.unwrap();
    }
    let delivered = std::sync::Mutex::new(Vec::new());
    let consumer = async || {
        loop {
            let received = queue.receive(2, seconds(60)).await.unwrap();
            if received.is_empty() {
                if delivered.lock().unwrap().len() == GROUPS * EACH {
                    return;
                }
                // In one process an empty response is ready at once: this lets the other tasks run.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            delivered.lock().unwrap().extend(texts(&received).into_iter().map(str::to_owned));
            for delivery in &received {
                tokio::time::sleep(Duration::from_millis(1)).await;
                queue.delete(receipt_of(delivery)).await.unwrap();
            }
        }
    };

    futures::future::join_all((0..8).map(|_| consumer())).await;

    let delivered = delivered.into_inner().unwrap();
    for group in 0..GROUPS {
        let prefix = format!("{group} ");
        let order: Vec<_> = delivered.iter().filter(|text| text.starts_with(&prefix)).collect();
        assert_eq!(order.len(), EACH);
        assert!(order.is_sorted(), "{order:?}");
    }
    assert_eq!(queue.count().await, 0);
}

async fn group_id_is_limited_in_length(world: &World) {
    let queue = world.queue("jobs").await;

    queue.send(grouped("a", &"é".repeat(64))).await.unwrap();
    let error = queue.send(grouped("b", &"x".repeat(129))).await.unwrap_err();

    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(error.fields, ["messages[0].ordering_group"]);
    let received = take(&queue).await;
    assert_eq!(received[0].message.as_ref().unwrap().ordering_group, "é".repeat(64));
}
