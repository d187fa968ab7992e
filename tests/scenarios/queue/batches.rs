//! Many messages in one call, and repeated calls.

use tonic::Code;
use trestle_proto::queue::v1::{self as proto, SentMessage};
use trestle_tests::{
    CallError, Queue, World, queue_scenario, receipt_of, receipt_of_sent, seconds, text, texts,
    unique,
};

queue_scenario!(
    send_reports_an_outcome_per_message,
    delete_reports_an_outcome_per_message,
    repeated_request_id_sends_nothing,
    repeated_send_returns_earlier_failures,
    repeated_send_returns_earlier_duplicates,
    request_ids_are_scoped_to_a_queue_and_cleared_with_it,
    duplicate_within_the_window_returns_the_first_message,
    clear_removes_deduplication_ids,
    deduplication_ids_need_a_window,
);

type Outcomes = Vec<Result<SentMessage, CallError>>;

fn ids(outcomes: &Outcomes) -> Vec<String> {
    outcomes.iter().map(|outcome| outcome.as_ref().unwrap().message_id.clone()).collect()
}

/// A queue with a deduplication window of so many seconds.
async fn deduplicating(world: &World, window: i64) -> Queue {
    let (name, deduplication_window) = ("jobs".to_owned(), Some(seconds(window)));
    world.queue_with(proto::Queue { name, deduplication_window, ..Default::default() }).await
}

async fn send_reports_an_outcome_per_message(world: &World) {
    let queue = world.queue("jobs").await;
    let too_big = text(&"x".repeat(65_537));
    let nothing = proto::OutgoingMessage::default();

    let outcomes =
        queue.send_all(vec![text("a"), too_big, text("b"), nothing, text("c")]).await.unwrap();

    let kinds: Vec<_> =
        outcomes.iter().map(|o| o.as_ref().map(|_| ()).map_err(CallError::kind)).collect();
    let expected = [
        Ok(()),
        Err((Code::InvalidArgument, "REQUEST_BODY_TOO_LARGE")),
        Ok(()),
        Err((Code::InvalidArgument, "PROPERTIES_NEED_VALUE")),
        Ok(()),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(outcomes[1].as_ref().unwrap_err().fields, ["messages[1].body"]);
    let received = queue.receive(32, seconds(30)).await.unwrap();
    assert_eq!(texts(&received), ["a", "b", "c"]);
    let received: Vec<_> = received.iter().map(|d| receipt_of(d).message_id).collect();
    let sent: Vec<_> = outcomes.iter().flatten().map(|s| s.message_id.clone()).collect();
    assert_eq!(received, sent);
}

async fn delete_reports_an_outcome_per_message(world: &World) {
    let queue = world.queue("jobs").await;
    let sent = queue.send_all(vec![text("a"), text("b"), text("c")]).await.unwrap();
    let receipt = |index: usize| receipt_of_sent(sent[index].as_ref().unwrap());
    let broken = proto::ReceiptRef { pop_receipt: "?".to_owned(), ..receipt(1) };

    let outcomes =
        queue.delete_all(vec![receipt(0), broken, receipt(0), receipt(2)]).await.unwrap();

    let kinds: Vec<_> =
        outcomes.iter().map(|o| o.as_ref().copied().map_err(CallError::kind)).collect();
    let expected = [
        Ok(()),
        Err((Code::InvalidArgument, "INVALID_QUERY_PARAMETER_VALUE")),
        Err((Code::NotFound, "MESSAGE_NOT_FOUND")),
        Ok(()),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(queue.count().await, 1);
    assert_eq!(texts(&queue.receive(32, seconds(30)).await.unwrap()), ["b"]);
}

async fn repeated_request_id_sends_nothing(world: &World) {
    let queue = world.queue("jobs").await;

    let first = queue.send_as("r1", vec![text("a"), text("b")]).await.unwrap();
    let again = queue.send_as("r1", vec![text("a"), text("b")]).await.unwrap();
    let other = queue.send_as("r2", vec![text("c")]).await.unwrap();

    assert_eq!(first, again, "the answer is the same too, receipts included");
    assert_ne!(ids(&first)[0], ids(&other)[0]);
    assert_eq!(texts(&queue.receive(32, seconds(30)).await.unwrap()), ["a", "b", "c"]);
}

async fn repeated_send_returns_earlier_failures(world: &World) {
    let queue = world.queue("jobs").await;
    let large = || text(&"x".repeat(65_537));
    let first = queue.send_as("r1", vec![text("a"), large(), text("b")]).await.unwrap();
    let too_large = (Code::InvalidArgument, "REQUEST_BODY_TOO_LARGE");
    assert_eq!(first[1].as_ref().unwrap_err().kind(), too_large);

    let again = queue.send_as("r1", vec![text("a"), large(), text("b")]).await.unwrap();
    let corrected = queue.send_as("r1", vec![text("a"), text("small"), text("b")]).await.unwrap();
    let fewer = queue.send_as("r1", vec![text("other")]).await.unwrap();

    assert_eq!(again, first);
    for other in [corrected, fewer] {
        assert_eq!(other.len(), 3);
        assert_eq!((&other[0], &other[2]), (&first[0], &first[2]));
        let error = other[1].as_ref().unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
        assert_eq!(error.fields, ["messages[1]"]);
    }
    queue.send_as("r2", vec![large()]).await.unwrap()[0].as_ref().unwrap_err();
    queue.send_as("r2", vec![text("c")]).await.unwrap()[0].as_ref().unwrap_err();
    assert_eq!(texts(&queue.receive(32, seconds(30)).await.unwrap()), ["a", "b"]);
}

async fn repeated_send_returns_earlier_duplicates(world: &World) {
    let queue = deduplicating(world, 60).await;
    queue.send(unique(text("a"), "early")).await.unwrap();
    let grouped = |name: &str, id: &str| proto::OutgoingMessage {
        ordering_group: "group".to_owned(),
        ..unique(text(name), id)
    };
    let messages = || {
        let waiting = [grouped("b", "first"), grouped("c", "waits"), grouped("d", "waits")];
        let plain = [unique(text("e"), "early"), unique(text("f"), "new"), text("g")];
        [&waiting[..], &plain[..]].concat()
    };

    let first = queue.send_as("r1", messages()).await.unwrap();
    let again = queue.send_as("r1", messages()).await.unwrap();

    let duplicates: Vec<_> = first.iter().map(|sent| sent.as_ref().unwrap().duplicate).collect();
    assert_eq!(duplicates, [false, false, true, true, false, false]);
    assert_eq!(again, first);
}

async fn request_ids_are_scoped_to_a_queue_and_cleared_with_it(world: &World) {
    let (queue, other) = (world.queue("jobs").await, world.queue("others").await);
    queue.send_as("r1", vec![text("a")]).await.unwrap();

    other.send_as("r1", vec![text("b")]).await.unwrap();
    queue.clear().await.unwrap();
    queue.send_as("r1", vec![text("c")]).await.unwrap();

    assert_eq!(texts(&other.receive(32, seconds(30)).await.unwrap()), ["b"]);
    assert_eq!(texts(&queue.receive(32, seconds(30)).await.unwrap()), ["c"]);
}

async fn duplicate_within_the_window_returns_the_first_message(world: &World) {
    let queue = deduplicating(world, 2).await;

    let first = queue.send(unique(text("a"), "id")).await.unwrap();
    let again = vec![unique(text("a2"), "id"), unique(text("b"), "id2"), unique(text("c"), "id2")];
    let again = queue.send_all(again).await.unwrap();

    let again: Vec<_> = again.into_iter().map(Result::unwrap).collect();
    assert_eq!(again[0], SentMessage { duplicate: true, ..first.clone() });
    assert!(!again[1].duplicate);
    assert_eq!(again[2], SentMessage { duplicate: true, ..again[1].clone() });
    let received = queue.receive(32, seconds(30)).await.unwrap();
    assert_eq!(texts(&received), ["a", "b"]);
    // Also when the first was deleted long ago.
    queue.delete_all(received.iter().map(receipt_of).collect()).await.unwrap();

    tokio::time::sleep(std::time::Duration::from_millis(2200)).await;
    let later = queue.send(unique(text("d"), "id")).await.unwrap();
    assert!(!later.duplicate, "the window has ended");
    assert_eq!(texts(&queue.receive(32, seconds(30)).await.unwrap()), ["d"]);
}

async fn clear_removes_deduplication_ids(world: &World) {
    let queue = deduplicating(world, 60).await;
    queue.send(unique(text("a"), "id")).await.unwrap();

    queue.clear().await.unwrap();

    let again = queue.send(unique(text("b"), "id")).await.unwrap();
    assert!(!again.duplicate);
    assert_eq!(texts(&queue.receive(32, seconds(30)).await.unwrap()), ["b"]);
}

async fn deduplication_ids_need_a_window(world: &World) {
    let queue = world.queue("jobs").await;

    let error = queue.send_all(vec![text("a"), unique(text("b"), "id")]).await.unwrap_err();

    assert_eq!(error.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(error.fields, ["messages[1].deduplication_id"]);
    assert_eq!(queue.count().await, 0, "nothing was sent");
}
