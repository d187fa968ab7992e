//! What blocks a group, and what ends that.

use super::*;

queue_scenario!(
    released_message_is_redelivered_before_the_next,
    blocked_group_message_has_no_receipt,
    delayed_message_blocks_its_group,
    dead_lettered_message_unblocks_its_group,
    expired_message_unblocks_its_group,
    clear_removes_groups,
);

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

async fn clear_removes_groups(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send_all(vec![grouped("1", "g"), grouped("2", "g")]).await.unwrap();
    take(&queue).await;

    queue.clear().await.unwrap();
    queue.send(grouped("3", "g")).await.unwrap();

    assert_eq!(texts(&take(&queue).await), ["3"]);
    assert_eq!(queue.count().await, 1);
}
