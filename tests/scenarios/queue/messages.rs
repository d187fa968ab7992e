//! Messages: send, receive, update, delete, expire.

use std::time::Duration;

use trestle_proto::queue::v1::message::Body;
use trestle_tests::{
    World, data, delayed, queue_scenario, receipt_of, receipt_of_sent, seconds, text, text_of,
    texts, with_ttl, without_expiry,
};

queue_scenario!(
    received_message_has_the_attributes_it_was_sent_with,
    received_message_is_invisible_until_its_timeout_and_counted,
    messages_are_received_oldest_first,
    receive_from_an_empty_queue_returns_nothing,
    peek_changes_nothing_and_returns_visible_messages_only,
    delayed_message_is_counted_and_invisible_until_due,
    update_keeps_attributes_and_restarts_the_visibility_timeout,
    expired_message_is_not_found_by_any_call,
    default_ttl_is_seven_days,
    text_and_binary_bodies_round_trip,
    clear_removes_invisible_messages_too,
    stats_report_the_age_of_the_oldest_message,
);

async fn received_message_has_the_attributes_it_was_sent_with(world: &World) {
    let queue = world.queue("jobs").await;

    let sent = queue.send(text("work")).await.unwrap();
    let received = queue.receive(1, seconds(30)).await.unwrap();

    let message = received[0].message.clone().unwrap();
    assert_eq!(text_of(&message), "work");
    assert_eq!(message.message_id, sent.message_id);
    assert_eq!(message.insertion_time, sent.insertion_time);
    assert_eq!(message.expiration_time, sent.expiration_time);
    assert_eq!(message.dequeue_count, 1);
    assert_eq!(message.dead_letter_origin, None);
    assert_ne!(received[0].pop_receipt, sent.pop_receipt);
    assert!(!sent.duplicate);
    let is_id = |c: char| c == '-' || c.is_ascii_digit() || ('a'..='f').contains(&c);
    assert!(sent.message_id.len() == 36 && sent.message_id.chars().all(is_id));
    let visible_at = received[0].next_visible_time.unwrap().seconds;
    let inserted = message.insertion_time.unwrap().seconds;
    assert!((25..=60).contains(&(visible_at - inserted)), "{visible_at} after {inserted}");
}

async fn received_message_is_invisible_until_its_timeout_and_counted(world: &World) {
    let queue = world.queue("jobs").await;
    queue.send(text("work")).await.unwrap();

    let first = queue.receive(1, seconds(1)).await.unwrap();
    assert_eq!(queue.receive(1, seconds(1)).await.unwrap(), []);
    let second = queue.wait(seconds(10)).await.unwrap();

    assert_eq!(texts(&second), ["work"]);
    assert_eq!(second[0].message.as_ref().unwrap().dequeue_count, 2);
    assert_ne!(first[0].pop_receipt, second[0].pop_receipt);
    let insertion = |d: &[trestle_proto::queue::v1::Delivery]| d[0].message.clone().unwrap();
    assert_eq!(insertion(&first).insertion_time, insertion(&second).insertion_time);
}

async fn messages_are_received_oldest_first(world: &World) {
    let queue = world.queue("jobs").await;
    for number in 0..10 {
        queue.send(text(&number.to_string())).await.unwrap();
    }

    let first = queue.receive(4, seconds(30)).await.unwrap();
    let second = queue.receive(32, seconds(30)).await.unwrap();

    assert_eq!(texts(&first), ["0", "1", "2", "3"]);
    assert_eq!(texts(&second), ["4", "5", "6", "7", "8", "9"]);
    let mut receipts: Vec<_> = first.iter().chain(&second).map(|d| &d.pop_receipt).collect();
    receipts.sort();
    receipts.dedup();
    assert_eq!(receipts.len(), 10, "each message has a receipt of its own");
}

async fn receive_from_an_empty_queue_returns_nothing(world: &World) {
    let queue = world.queue("jobs").await;

    assert_eq!(queue.receive(32, seconds(30)).await.unwrap(), []);
    assert_eq!(queue.peek(32).await.unwrap(), []);
    assert_eq!(queue.count().await, 0);
}

async fn peek_changes_nothing_and_returns_visible_messages_only(world: &World) {
    let queue = world.queue("jobs").await;
    for name in ["a", "b", "c"] {
        queue.send(text(name)).await.unwrap();
    }
    queue.receive(1, seconds(30)).await.unwrap();

    for _ in 0..2 {
        let peeked = queue.peek(32).await.unwrap();
        assert_eq!(peeked.iter().map(text_of).collect::<Vec<_>>(), ["b", "c"]);
        assert!(peeked.iter().all(|message| message.dequeue_count == 0));
    }
    assert_eq!(queue.peek(1).await.unwrap().len(), 1);
    assert_eq!(queue.count().await, 3, "invisible ones included");
}

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
        assert_eq!(late.kind(), (tonic::Code::NotFound, "MESSAGE_NOT_FOUND"));
        let late = queue.update(receipt, seconds(1), None).await.unwrap_err();
        assert_eq!(late.kind(), (tonic::Code::NotFound, "MESSAGE_NOT_FOUND"));
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

async fn text_and_binary_bodies_round_trip(world: &World) {
    let queue = world.queue("jobs").await;
    let odd = " <a>&amp;\r\n\t\u{1F600}\u{0} ";
    for message in [text(odd), text(""), data(vec![0, 255, 128]), data(Vec::new())] {
        queue.send(message).await.unwrap();
    }

    let received = queue.receive(4, seconds(30)).await.unwrap();

    let bodies: Vec<_> = received.into_iter().map(|d| d.message.unwrap().body.unwrap()).collect();
    let expected = [
        Body::Text(odd.to_owned()),
        Body::Text(String::new()),
        Body::Data(vec![0, 255, 128].into()),
        Body::Data(bytes::Bytes::new()),
    ];
    assert_eq!(bodies, expected);
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
    assert_eq!(late.kind(), (tonic::Code::NotFound, "MESSAGE_NOT_FOUND"));
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
