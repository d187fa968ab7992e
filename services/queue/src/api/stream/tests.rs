//! Streams of idle and slow clients.

use tokio::time::{Duration, sleep};
use tonic::Code;

use super::*;
use crate::fixture::{Fixture, outgoing};

const SENT: usize = 200;

async fn opened() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.send(vec![outgoing(0); SENT]).await;
    fixture
}

fn consumer(fixture: &Fixture) -> Consumer {
    let (access, recorder) = (fixture.access.clone(), StatisticsRecorder::default());
    Consumer { access, deadline: None, recorder }
}

async fn visible(fixture: &Fixture) -> usize {
    fixture.peek(SENT).await.len()
}

/// A client that opens a stream with credit for every message and sends no further request.
fn requests(
    queue: &QueueName,
) -> impl Stream<Item = Result<StreamMessagesRequest, Status>> + Send + Unpin + 'static {
    let credit = u32::try_from(SENT).expect("fits");
    let open = StreamOpen { queue: queue.as_str().to_owned(), visibility_timeout: None, credit };
    let first = StreamMessagesRequest { message: Some(Message::Open(open)) };
    Box::pin(stream::iter([Ok(first)]).chain(stream::pending()))
}

#[tokio::test(start_paused = true)]
async fn disconnects_a_client_that_reads_nothing_without_losing_messages() {
    let fixture = opened().await;
    let requests = requests(&fixture.name);
    let mut answers = deliveries(fixture.messages.clone(), consumer(&fixture), requests);

    // The clock of the test advances by itself while every task waits.
    sleep(STREAM_IDLE_MAX - Duration::from_secs(1)).await;
    let under_way = (WAITING_MAX + 1) * RECEIVE_MESSAGES_MAX;
    assert_eq!(visible(&fixture).await, SENT - under_way, "no more than the credit is invisible");
    sleep(Duration::from_secs(2)).await;

    let first = answers.next().await.expect("what was under way").expect("deliveries");
    assert_eq!(first.deliveries.len(), RECEIVE_MESSAGES_MAX);
    let ended = answers.next().await.expect("an end").expect_err("disconnected");
    assert_eq!(ended.code(), Code::DeadlineExceeded);
    assert!(answers.next().await.is_none());
    // What waited to be sent to it is visible again at once; what it has read is not.
    assert_eq!(visible(&fixture).await, SENT - RECEIVE_MESSAGES_MAX);
    fixture.clock.advance(Duration::from_secs(31));
    assert_eq!(visible(&fixture).await, SENT, "what it did not delete comes again");
}

#[tokio::test(start_paused = true)]
async fn keeps_the_stream_of_a_client_that_reads_slowly() {
    let fixture = opened().await;
    let requests = requests(&fixture.name);
    let mut answers = deliveries(fixture.messages.clone(), consumer(&fixture), requests);

    let mut delivered = 0;
    while delivered < SENT {
        sleep(STREAM_IDLE_MAX - Duration::from_secs(1)).await;
        let answer = answers.next().await.expect("more").expect("deliveries");
        delivered += answer.deliveries.len();
    }

    assert_eq!(delivered, SENT);
}

#[tokio::test(start_paused = true)]
async fn disconnects_a_client_that_sends_no_open_message() {
    let fixture = opened().await;
    let silent = stream::pending();
    let mut answers = deliveries(fixture.messages.clone(), consumer(&fixture), silent);

    let ended = answers.next().await.expect("an end").expect_err("disconnected");

    assert_eq!(ended.code(), Code::DeadlineExceeded);
    assert!(ended.message().contains("no first message"), "{}", ended.message());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_releases_the_deliveries_that_were_not_read() {
    let fixture = opened().await;
    let mut answers =
        deliveries(fixture.messages.clone(), consumer(&fixture), requests(&fixture.name));
    answers.next().await.expect("the first").expect("deliveries");
    // The next response waits in the channel, and one more to be sent.
    sleep(Duration::from_secs(1)).await;
    assert_eq!(visible(&fixture).await, SENT - 3 * RECEIVE_MESSAGES_MAX);

    drop(answers);
    sleep(Duration::from_secs(1)).await;

    assert_eq!(visible(&fixture).await, SENT - RECEIVE_MESSAGES_MAX);
}
