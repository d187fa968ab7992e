//! Messages: send, receive, update, delete, expire.

mod lifetime;

use std::time::Duration;

use tonic::Code;
use trestle_proto::queue::v1::{Message, OutgoingMessage, PeekMessagesRequest, message::Body};
use trestle_tests::{
    Queue, World, data, delayed, queue_scenario, receipt_of, receipt_of_sent, seconds, text,
    text_of, texts, with_ttl, without_expiry,
};

queue_scenario!(
    received_message_has_the_attributes_it_was_sent_with,
    received_message_is_invisible_until_its_timeout_and_counted,
    messages_are_received_oldest_first,
    receive_from_an_empty_queue_returns_nothing,
    peek_changes_nothing_and_returns_visible_messages_only,
    every_message_is_peeked_at_page_by_page,
    a_page_token_continues_its_own_peek_only,
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

/// A queue with visible messages, and others that are received, delayed, and behind another one of their group.
async fn mixed(world: &World) -> Queue {
    let queue = world.queue("jobs").await;
    for name in ["a", "b", "c"] {
        queue.send(text(name)).await.unwrap();
    }
    queue.receive(1, seconds(3600)).await.unwrap();
    queue.send(delayed(text("late"), seconds(7200))).await.unwrap();
    for name in ["x", "y", "z"] {
        let grouped = OutgoingMessage { ordering_group: "g".to_owned(), ..text(name) };
        queue.send(grouped).await.unwrap();
    }
    queue
}

/// The messages of every page.
async fn pages(queue: &Queue, max: u32, include_invisible: bool) -> Vec<Message> {
    let (mut messages, max_messages) = (Vec::new(), Some(max));
    let mut request =
        PeekMessagesRequest { max_messages, include_invisible, ..PeekMessagesRequest::default() };
    loop {
        let page = queue.peek_as(request.clone()).await.unwrap();
        assert!(page.messages.len() <= max as usize, "{page:?}");
        messages.extend(page.messages);
        if page.next_page_token.is_empty() {
            return messages;
        }
        request.page_token = page.next_page_token;
    }
}

async fn every_message_is_peeked_at_page_by_page(world: &World) {
    let queue = mixed(world).await;

    for max in [1, 2, 3, 32] {
        let visible = pages(&queue, max, false).await;
        assert_eq!(visible.iter().map(text_of).collect::<Vec<_>>(), ["b", "c", "x"]);
        assert!(visible.iter().all(|message| message.visible_time.is_none()));

        let every = pages(&queue, max, true).await;
        let found: Vec<_> = every.iter().map(text_of).collect();
        assert_eq!(found, ["b", "c", "x", "a", "late", "y", "z"]);
        let behind = every.iter().filter(|message| message.visible_time.is_none());
        assert_eq!(behind.map(text_of).collect::<Vec<_>>(), ["y", "z"]);
        let times: Vec<_> = every.iter().filter_map(|message| message.visible_time).collect();
        assert!(
            times
                .windows(2)
                .all(|pair| (pair[0].seconds, pair[0].nanos) <= (pair[1].seconds, pair[1].nanos))
        );
    }
    assert_eq!(queue.count().await, 7, "nothing is received");
}

async fn a_page_token_continues_its_own_peek_only(world: &World) {
    const WRONG: (Code, &str) = (Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE");
    let queue = mixed(world).await;
    let page = |page_token: &str, include_invisible| {
        let page_token = page_token.to_owned();
        queue.peek_as(PeekMessagesRequest {
            page_token,
            include_invisible,
            ..PeekMessagesRequest::default()
        })
    };
    let of_visible = page("", false).await.unwrap().next_page_token;
    let of_every = page("", true).await.unwrap().next_page_token;

    for (token, include_invisible) in [(&*of_visible, true), (&of_every, false), ("x", false)] {
        let error = page(token, include_invisible).await.unwrap_err();
        assert_eq!(error.kind(), WRONG, "{token} {include_invisible}");
    }
    queue.clear().await.unwrap();
    assert_eq!(page(&of_visible, false).await.unwrap_err().kind(), WRONG);
    assert_eq!(page("", true).await.unwrap().messages, []);
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
