//! Dead-lettering and redrive.

use tonic::Code;
use trestle_proto::queue::v1::{self as proto, DeadLetterOrigin, DeadLetterPolicy};
use trestle_tests::{Queue, World, queue_scenario, receipt_of, seconds, text, texts};

queue_scenario!(
    message_over_the_delivery_limit_is_dead_lettered,
    messages_remain_without_a_dead_letter_queue,
    redrive_returns_messages_to_their_source,
    redrive_honours_target_and_limit,
    redrive_keeps_messages_without_a_source_queue,
);

/// A queue whose messages are delivered twice.
async fn with_dead_letters(world: &World) -> Queue {
    let queue = "failed".to_owned();
    let settings = proto::Queue {
        name: "jobs".to_owned(),
        dead_letter: Some(DeadLetterPolicy { queue, max_dequeue_count: 2 }),
        ..Default::default()
    };
    world.queue_with(settings).await
}

/// Receives and releases at once, so often.
async fn fail(queue: &Queue, times: usize) {
    for _ in 0..times {
        for delivery in queue.receive(32, seconds(600)).await.unwrap() {
            queue.update(receipt_of(&delivery), seconds(0), None).await.unwrap();
        }
    }
}

async fn message_over_the_delivery_limit_is_dead_lettered(world: &World) {
    let (queue, dead) = (with_dead_letters(world).await, world.queue("failed").await);
    let sent = queue.send(text("poison")).await.unwrap();
    fail(&queue, 2).await;
    queue.send(text("fine")).await.unwrap();

    let received = queue.receive(32, seconds(30)).await.unwrap();

    assert_eq!(texts(&received), ["fine"]);
    assert_eq!((queue.count().await, dead.count().await), (1, 1));
    let letter = dead.receive(32, seconds(30)).await.unwrap()[0].message.clone().unwrap();
    assert_eq!(letter.message_id, sent.message_id);
    assert_eq!(letter.insertion_time, sent.insertion_time);
    assert_eq!(letter.dequeue_count, 1, "counted anew");
    let origin = DeadLetterOrigin { queue: "jobs".to_owned(), dequeue_count: 2 };
    assert_eq!(letter.dead_letter_origin, Some(origin));
}

async fn messages_remain_without_a_dead_letter_queue(world: &World) {
    let queue = with_dead_letters(world).await;
    queue.send(text("poison")).await.unwrap();

    fail(&queue, 5).await;

    let received = queue.receive(32, seconds(30)).await.unwrap();
    assert_eq!(received[0].message.as_ref().unwrap().dequeue_count, 6);
    assert_eq!(queue.count().await, 1);
}

async fn redrive_returns_messages_to_their_source(world: &World) {
    let (queue, dead) = (with_dead_letters(world).await, world.queue("failed").await);
    queue.send(text("poison")).await.unwrap();
    fail(&queue, 3).await;
    dead.send(text("stray")).await.unwrap();

    assert_eq!(dead.redrive("", 1000).await.unwrap(), 1);

    let received = queue.wait(seconds(5)).await.unwrap();
    assert_eq!(texts(&received), ["poison"]);
    let message = received[0].message.clone().unwrap();
    assert_eq!((message.dequeue_count, message.dead_letter_origin), (1, None));
    assert_eq!(texts(&dead.receive(32, seconds(30)).await.unwrap()), ["stray"]);
    assert_eq!((queue.count().await, dead.count().await), (1, 1));
}

async fn redrive_honours_target_and_limit(world: &World) {
    let (dead, other) = (world.queue("failed").await, world.queue("other").await);
    for number in 0..100 {
        dead.send(text(&number.to_string())).await.unwrap();
    }
    dead.receive(1, seconds(600)).await.unwrap();

    assert_eq!(dead.redrive("other", 70).await.unwrap(), 70);
    assert_eq!((dead.count().await, other.count().await), (30, 70));
    assert_eq!(dead.redrive("other", 1000).await.unwrap(), 29, "one is invisible");
    let received = other.receive(3, seconds(30)).await.unwrap();
    assert_eq!(texts(&received), ["1", "2", "3"]);
}

async fn redrive_keeps_messages_without_a_source_queue(world: &World) {
    let (queue, dead) = (with_dead_letters(world).await, world.queue("failed").await);
    queue.send(text("poison")).await.unwrap();
    fail(&queue, 3).await;
    queue.drop_queue().await.unwrap();

    assert_eq!(dead.redrive("", 1000).await.unwrap(), 0);
    let error = dead.redrive("jobs", 1000).await.unwrap_err();

    assert_eq!(error.kind(), (Code::NotFound, "QUEUE_NOT_FOUND"));
    assert_eq!(dead.count().await, 1);
}
