//! Messages with a deduplication id.

use super::*;

queue_scenario!(
    duplicate_within_the_window_returns_the_first_message,
    clear_removes_deduplication_ids,
    deduplication_ids_need_a_window,
);

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
