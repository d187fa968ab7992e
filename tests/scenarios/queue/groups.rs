//! Ordering groups: one message of a group at a time, in the order in which they were sent.

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
    released_message_is_redelivered_before_the_next,
    blocked_group_message_has_no_receipt,
    delayed_message_blocks_its_group,
    dead_lettered_message_unblocks_its_group,
    expired_message_unblocks_its_group,
    many_consumers_receive_each_group_in_order,
    clear_removes_groups,
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

async fn released_message_is_redelivered_before_the_next(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send_all(vec![grouped("1", "g"), grouped("2", "g")]).await.unwrap();

    let received = take(&queue).await;
    let receipt = queue.update(receipt_of(&received[0]), seconds(0), None).await.unwrap();
    assert!(queue.delete(receipt_of(&received[0])).await.is_err(), "its receipt is void");
    let again = queue.receive(32, seconds(1)).await.unwrap();
    assert_eq!(texts(&again), ["1"]);
    assert!(queue.delete(receipt).await.is_err(), "so is that of the update now");

    tokio::time::sleep(Duration::from_millis(1200)).await;
    let lapsed = take(&queue).await;
    assert_eq!(texts(&lapsed), ["1"]);
    assert_eq!(lapsed[0].message.as_ref().unwrap().dequeue_count, 3);
    delete_all(&queue, &lapsed).await;
    assert_eq!(texts(&take(&queue).await), ["2"]);
}

async fn blocked_group_message_has_no_receipt(world: &World) {
    let settings = proto::Queue {
        name: "jobs".to_owned(),
        deduplication_window: Some(seconds(60)),
        ..Default::default()
    };
    let queue = world.queue_with(settings).await;
    let first = queue.send(grouped("1", "g")).await.unwrap();
    let second = unique(grouped("2", "g"), "id");

    let waiting = queue.send_as("r", vec![second.clone()]).await.unwrap();

    let sent = waiting[0].as_ref().unwrap();
    assert_eq!((&*sent.pop_receipt, sent.next_visible_time), ("", None));
    assert!(sent.insertion_time.is_some() && sent.expiration_time.is_some());
    assert_eq!(queue.send_as("r", vec![second.clone()]).await.unwrap(), waiting);
    let duplicate = queue.send(second).await.unwrap();
    assert!(duplicate.duplicate && duplicate.pop_receipt.is_empty());
    let error = queue.delete(receipt_of_sent(sent)).await.unwrap_err();
    assert_eq!(error.kind(), (Code::InvalidArgument, "MISSING_REQUIRED_QUERY_PARAMETER"));
    queue.delete(receipt_of_sent(&first)).await.expect("the first one has a receipt");
    assert_eq!(texts(&take(&queue).await), ["2"]);
}

async fn delayed_message_blocks_its_group(world: &World) {
    let queue = world.queue("jobs").await;
    let late = delayed(grouped("late", "g"), seconds(1));
    queue.send_all(vec![late, grouped("soon", "g")]).await.unwrap();
    assert_eq!(take(&queue).await, []);

    let received = queue.wait(seconds(10)).await.unwrap();
    assert_eq!(texts(&received), ["late"]);
    delete_all(&queue, &received).await;
    assert_eq!(texts(&queue.wait(seconds(10)).await.unwrap()), ["soon"]);
}

async fn dead_lettered_message_unblocks_its_group(world: &World) {
    let dead = world.queue("dead").await;
    let policy = DeadLetterPolicy { queue: "dead".to_owned(), max_dequeue_count: 1 };
    let settings =
        proto::Queue { name: "jobs".to_owned(), dead_letter: Some(policy), ..Default::default() };
    let queue = world.queue_with(settings).await;
    queue.send_all(vec![grouped("bad", "g"), grouped("good", "g")]).await.unwrap();
    let received = take(&queue).await;
    queue.update(receipt_of(&received[0]), seconds(0), None).await.unwrap();

    let received = queue.wait(seconds(10)).await.unwrap();

    assert_eq!(texts(&received), ["good"]);
    let dead_lettered = dead.peek(1).await.unwrap();
    assert_eq!(dead_lettered[0].ordering_group, "g", "it keeps the name");
    assert_eq!(dead.redrive("", 10).await.unwrap(), 1);
    assert_eq!(texts(&take(&queue).await), ["bad"], "and no order: the other is still held");
    assert_eq!((queue.count().await, dead.count().await), (2, 0));
}

async fn expired_message_unblocks_its_group(world: &World) {
    let queue = world.queue("jobs").await;
    let short = |body: &str| with_ttl(grouped(body, "g"), seconds(1));
    queue.send_all(vec![short("1"), short("2"), grouped("3", "g")]).await.unwrap();
    let held = queue.receive(1, seconds(1)).await.unwrap();
    assert_eq!(texts(&held), ["1"]);

    // Both are expired by then, and found one after the other.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let received = queue.wait(seconds(20)).await.unwrap();

    assert_eq!(texts(&received), ["3"]);
    assert!(queue.delete(receipt_of(&held[0])).await.is_err());
    assert_eq!(queue.count().await, 1);
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

async fn clear_removes_groups(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send_all(vec![grouped("1", "g"), grouped("2", "g")]).await.unwrap();
    take(&queue).await;

    queue.clear().await.unwrap();
    queue.send(grouped("3", "g")).await.unwrap();

    assert_eq!(texts(&take(&queue).await), ["3"]);
    assert_eq!(queue.count().await, 1);
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
