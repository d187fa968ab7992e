//! From the due time of a message to its end.

use super::*;

queue_scenario!(
    delayed_message_is_counted_and_invisible_until_due,
    update_keeps_attributes_and_restarts_the_visibility_timeout,
    expired_message_is_not_found_by_any_call,
    default_ttl_is_seven_days,
    clear_removes_invisible_messages_too,
    stats_report_the_age_of_the_oldest_message,
);

async fn delayed_message_is_counted_and_invisible_until_due(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(delayed(text("later"), seconds(1))).await.unwrap();

    assert_eq!(queue.peek(1).await.unwrap(), []);
    assert_eq!(queue.receive(1, seconds(30)).await.unwrap(), []);
    assert_eq!(queue.count().await, 1);
    assert_eq!(texts(&queue.wait(seconds(10)).await.unwrap()), ["later"]);
}

async fn update_keeps_attributes_and_restarts_the_visibility_timeout(world: &World) {
    let queue = world.queue("jobs").await;
    let sent = queue.send(text("a")).await.unwrap();
    let held = queue.receive(1, seconds(600)).await.unwrap();

    let receipt = queue.update(receipt_of(&held[0]), seconds(600), Some("b")).await.unwrap();
    // Not added to the remaining timeout.
    queue.update(receipt, seconds(1), None).await.unwrap();
    let again = queue.wait(seconds(20)).await.unwrap();

    assert_eq!(texts(&again), ["b"]);
    let message = again[0].message.clone().unwrap();
    assert_eq!(message.message_id, sent.message_id);
    assert_eq!(message.insertion_time, sent.insertion_time);
    assert_eq!(message.expiration_time, sent.expiration_time);
    assert_eq!(message.dequeue_count, 2, "an update counts nothing");
}

async fn expired_message_is_not_found_by_any_call(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(with_ttl(text("delayed"), seconds(1))).await.unwrap();
    // A timeout past the expiry is allowed, and the expiry applies.
    let held = queue.receive(1, seconds(600)).await.unwrap();
    let updated =
        receipt_of_sent(&queue.send(with_ttl(text("updated"), seconds(1))).await.unwrap());
    let updated = queue.update(updated, seconds(600), None).await.unwrap();
    queue.send(with_ttl(text("visible"), seconds(1))).await.unwrap();

    tokio::time::sleep(Duration::from_millis(1200)).await;

    assert_eq!(queue.peek(32).await.unwrap(), []);
    assert_eq!(queue.receive(32, seconds(30)).await.unwrap(), []);
    for receipt in [receipt_of(&held[0]), updated] {
        let late = queue.delete(receipt.clone()).await.unwrap_err();
        assert_eq!(late.kind(), (Code::NotFound, "MESSAGE_NOT_FOUND"));
        let late = queue.update(receipt, seconds(1), None).await.unwrap_err();
        assert_eq!(late.kind(), (Code::NotFound, "MESSAGE_NOT_FOUND"));
    }
}

async fn default_ttl_is_seven_days(world: &World) {
    let queue = world.queue("jobs").await;
    let ttl = |sent: &trestle_proto::queue::v1::SentMessage| {
        sent.expiration_time.map(|at| at.seconds - sent.insertion_time.unwrap().seconds)
    };

    let default = queue.send(text("a")).await.unwrap();
    let short = queue.send(with_ttl(text("b"), seconds(3600))).await.unwrap();
    let long = queue.send(with_ttl(text("c"), seconds(40 * 24 * 3600))).await.unwrap();
    let never = queue.send(without_expiry(text("d"))).await.unwrap();

    assert_eq!(ttl(&default), Some(7 * 24 * 3600));
    assert_eq!(ttl(&short), Some(3600));
    assert_eq!(ttl(&long), Some(40 * 24 * 3600));
    assert_eq!(ttl(&never), None);
    let received = queue.receive(4, seconds(30)).await.unwrap();
    assert_eq!(received[3].message.as_ref().unwrap().expiration_time, None);
}

async fn clear_removes_invisible_messages_too(world: &World) {
    let queue = world.queue("jobs").await;
    for name in ["a", "b", "c"] {
        queue.send(text(name)).await.unwrap();
    }
    let held = queue.receive(1, seconds(30)).await.unwrap();

    queue.clear().await.unwrap();

    assert_eq!(queue.count().await, 0);
    assert_eq!(queue.peek(32).await.unwrap(), []);
    let late = queue.delete(receipt_of(&held[0])).await.unwrap_err();
    assert_eq!(late.kind(), (Code::NotFound, "MESSAGE_NOT_FOUND"));
    queue.send(text("d")).await.unwrap();
    assert_eq!(texts(&queue.receive(32, seconds(30)).await.unwrap()), ["d"]);
    assert_eq!(queue.count().await, 1);
}

async fn stats_report_the_age_of_the_oldest_message(world: &World) {
    let queue = world.queue("jobs").await;
    let age = async || queue.get().await.unwrap().1.oldest_message_age;
    assert_eq!(age().await, None);

    queue.send(text("a")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    queue.send(text("b")).await.unwrap();
    assert!((1..30).contains(&age().await.unwrap().seconds));
    let held = queue.receive(1, seconds(30)).await.unwrap();
    assert!((1..30).contains(&age().await.unwrap().seconds), "an invisible message still counts");

    queue.delete(receipt_of(&held[0])).await.unwrap();
    let young = age().await.unwrap();
    let held = queue.receive(1, seconds(30)).await.unwrap();
    assert!(young.seconds < 30);
    queue.delete(receipt_of(&held[0])).await.unwrap();
    assert_eq!(age().await, None);
}
