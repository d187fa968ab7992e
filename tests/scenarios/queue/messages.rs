//! Messages: send, receive, update, delete, expire.

mod lifetime;

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
    text_and_binary_bodies_round_trip,
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
