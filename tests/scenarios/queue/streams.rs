//! Delivery streams, limited by their credit.

use std::time::Duration;

use futures::StreamExt as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};
use trestle_proto::queue::v1::{
    CreditGrant, StreamMessagesRequest, StreamMessagesResponse, StreamOpen,
    stream_messages_request::Message,
};
use trestle_tests::{CallError, HANG, Queue, World, queue_scenario, receipt_of, seconds, text};

queue_scenario!(
    stream_delivers_up_to_its_credit,
    stream_delivers_later_messages,
    half_closed_stream_delivers_its_credit_and_ends,
    rejects_a_stream_without_a_valid_first_message,
    a_stream_ends_when_its_queue_is_deleted,
    slow_consumer_holds_only_messages_in_flight,
    disconnected_consumer_receives_nothing_more,
);

struct Stream {
    grants: mpsc::Sender<StreamMessagesRequest>,
    answers: Streaming<StreamMessagesResponse>,
}

fn open(queue: &str, credit: u32) -> Message {
    let visibility_timeout = Some(seconds(600));
    Message::Open(StreamOpen { queue: queue.to_owned(), visibility_timeout, credit })
}

fn grant(credit: u32) -> Message {
    Message::Grant(CreditGrant { credit })
}

async fn stream(queue: &Queue, first: Message) -> Stream {
    let (grants, receiver) = mpsc::channel(16);
    grants.send(StreamMessagesRequest { message: Some(first) }).await.unwrap();
    let requests = ReceiverStream::new(receiver);
    let answers = queue.client().stream_messages(requests).await.unwrap().into_inner();
    Stream { grants, answers }
}

impl Stream {
    async fn grant(&self, message: Message) {
        self.grants.send(StreamMessagesRequest { message: Some(message) }).await.unwrap();
    }

    /// The texts of the next so many deliveries.
    async fn next(&mut self, count: usize) -> Vec<String> {
        let mut delivered = Vec::new();
        while delivered.len() < count {
            let next = tokio::time::timeout(HANG, self.answers.next()).await;
            let answer = next.expect("in time").expect("more").expect("a delivery");
            assert!(!answer.deliveries.is_empty(), "an answer delivers something");
            delivered
                .extend(trestle_tests::texts(&answer.deliveries).into_iter().map(str::to_owned));
        }
        delivered
    }

    async fn end(&mut self) -> Option<CallError> {
        let next = tokio::time::timeout(HANG, self.answers.next()).await;
        match next.expect("in time") {
            None => None,
            Some(Ok(answer)) => panic!("one more delivery: {answer:?}"),
            Some(Err(status)) => Some(CallError::of(&status)),
        }
    }

    async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(400), self.answers.next()).await.is_err()
    }
}

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

async fn send(queue: &Queue, range: std::ops::Range<u32>) {
    let messages = numbers(range).iter().map(|number| text(number)).collect();
    queue.send_all(messages).await.unwrap();
}

async fn stream_delivers_up_to_its_credit(world: &World) {
    let queue = world.queue("jobs").await;
    send(&queue, 0..100).await;

    let mut stream = stream(&queue, open("jobs", 40)).await;
    assert_eq!(stream.next(40).await, numbers(0..40));
    assert!(stream.is_silent().await, "the credit is used up");
    stream.grant(grant(10)).await;
    assert_eq!(stream.next(10).await, numbers(40..50));
    assert!(stream.is_silent().await);
    assert_eq!(queue.peek(32).await.unwrap().len(), 32, "the rest is visible to others");
}

async fn stream_delivers_later_messages(world: &World) {
    let queue = world.queue("jobs").await;
    let mut stream = stream(&queue, open("jobs", 0)).await;
    stream.grant(grant(5)).await;
    // While a receive is waiting.
    assert!(stream.is_silent().await);
    stream.grant(grant(5)).await;

    for number in 0..10 {
        send(&queue, number..number + 1).await;
    }

    assert_eq!(stream.next(10).await, numbers(0..10));
    assert_eq!(queue.count().await, 10);
}

async fn half_closed_stream_delivers_its_credit_and_ends(world: &World) {
    let queue = world.queue("jobs").await;
    send(&queue, 0..3).await;

    let mut first = stream(&queue, open("jobs", 2)).await;
    first.grants = mpsc::channel(1).0;
    assert_eq!(first.next(2).await, numbers(0..2));
    assert_eq!(first.end().await, None);

    let mut second = stream(&queue, open("jobs", 0)).await;
    second.grants = mpsc::channel(1).0;
    assert_eq!(second.end().await, None);
    assert_eq!(queue.peek(32).await.unwrap().len(), 1);
}

async fn rejects_a_stream_without_a_valid_first_message(world: &World) {
    let queue = world.queue("jobs").await;
    let invalid = (Code::InvalidArgument, "INVALID_INPUT");
    let range = (Code::InvalidArgument, "OUT_OF_RANGE_QUERY_PARAMETER_VALUE");
    let short =
        StreamOpen { queue: "jobs".to_owned(), visibility_timeout: Some(seconds(0)), credit: 1 };
    let cases = [
        (grant(1), invalid),
        (open("jobs", 1001), range),
        (Message::Open(short), range),
        (open("nothing", 1), (Code::NotFound, "QUEUE_NOT_FOUND")),
        (open("No", 1), (Code::InvalidArgument, "INVALID_RESOURCE_NAME")),
    ];
    for (first, expected) in cases {
        let error = stream(&queue, first).await.end().await.expect("an error");
        assert_eq!(error.kind(), expected, "{}", error.message);
    }

    for (second, expected) in [(grant(0), range), (grant(601), range), (open("jobs", 1), invalid)] {
        let mut stream = stream(&queue, open("jobs", 400)).await;
        stream.grant(second).await;
        assert_eq!(stream.end().await.expect("an error").kind(), expected);
    }
    let mut stream = stream(&queue, open("jobs", 400)).await;
    stream.grant(grant(600)).await;
    assert!(stream.is_silent().await, "1,000 is allowed");
}

async fn a_stream_ends_when_its_queue_is_deleted(world: &World) {
    let queue = world.queue("jobs").await;
    let mut stream = stream(&queue, open("jobs", 5)).await;
    assert!(stream.is_silent().await);

    queue.drop_queue().await.unwrap();

    let error = stream.end().await.expect("an error");
    assert_eq!(error.kind(), (Code::NotFound, "QUEUE_NOT_FOUND"));
}

async fn slow_consumer_holds_only_messages_in_flight(world: &World) {
    let queue = world.queue("jobs").await;
    let body = "x".repeat(60_000);
    // More than the windows of all connections in between.
    for _ in 0..14 {
        let messages = (0..64).map(|_| text(&body)).collect();
        queue.send_all(messages).await.unwrap();
    }

    let _unread = stream(&queue, open("jobs", 1000)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let received = queue.receive(32, seconds(30)).await.unwrap();
    assert!(!received.is_empty(), "others still get something");
    for delivery in &received {
        queue.delete(receipt_of(delivery)).await.unwrap();
    }
}

async fn disconnected_consumer_receives_nothing_more(world: &World) {
    let queue = world.queue("jobs").await;
    let stream = stream(&queue, open("jobs", 100)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;

    drop(stream);
    tokio::time::sleep(Duration::from_millis(300)).await;
    send(&queue, 0..10).await;

    assert_eq!(queue.receive(32, seconds(30)).await.unwrap().len(), 10);
}
