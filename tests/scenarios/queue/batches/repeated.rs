//! Repeated sends.

mod deduplication;

use super::*;

queue_scenario!(
    repeated_request_id_sends_nothing,
    repeated_send_returns_earlier_failures,
    repeated_send_returns_earlier_duplicates,
    request_ids_are_scoped_to_a_queue_and_cleared_with_it,
);

/// A queue with a deduplication window of so many seconds.
async fn deduplicating(world: &World, window: i64) -> Queue {
    let (name, deduplication_window) = ("jobs".to_owned(), Some(seconds(window)));
    world.queue_with(proto::Queue { name, deduplication_window, ..Default::default() }).await
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
