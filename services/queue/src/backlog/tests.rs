//! Tests of the backlogs.

use super::*;
use crate::{
    fixture::{Fixture, outgoing},
    model::queue_name,
    record::{DeadLetter, QueueSettings},
};

#[tokio::test]
async fn the_deepest_queue_is_first_with_the_age_of_its_oldest_message() {
    let mut fixture = Fixture::new().await;
    fixture.create("empty").await;
    fixture.send(vec![outgoing(0)]).await;
    fixture.clock.advance(Duration::from_secs(60));
    fixture.send(vec![outgoing(0), outgoing(0)]).await;
    let consumed = fixture.receive(1, 30).await;
    fixture.delete(&consumed).await;
    fixture.clock.advance(Duration::from_secs(5));

    let open = fixture.messages.backlogs(|_, _| ()).await.expect("backlogs");
    fixture.restart();
    let closed = fixture.messages.backlogs(|_, _| ()).await.expect("backlogs");

    assert_eq!(open, closed);
    assert_eq!((open.queues, open.with_messages.len()), (2, 1));
    let backlog = &open.with_messages[0];
    assert_eq!((&*backlog.queue, backlog.messages), (fixture.name.as_str(), 2));
    assert_eq!(backlog.oldest_age, Some(Duration::from_secs(5)));
    assert!(!backlog.is_dead_letter_queue);
    assert!(fixture.messages.schedulers.all().is_empty(), "it opened a queue");
}

#[tokio::test]
async fn a_queue_that_another_one_names_for_dead_letters_is_marked() {
    let fixture = Fixture::new().await;
    let queues = &fixture.messages.queues;
    let dead_letter = Some(DeadLetter { queue: fixture.name.clone(), dequeue_count_max: 1 });
    let settings = QueueSettings { dead_letter, ..QueueSettings::default() };
    queues.create(fixture.access.account(), queue_name("source"), settings).await.expect("created");
    fixture.send(vec![outgoing(0)]).await;

    let mut names = Vec::new();
    let each = |_: &str, queue: &str| names.push(queue.to_owned());
    let backlogs = fixture.messages.backlogs(each).await.expect("backlogs");

    let marked = backlogs.with_messages.iter().map(|it| (&*it.queue, it.is_dead_letter_queue));
    assert_eq!(marked.collect::<Vec<_>>(), [(fixture.name.as_str(), true)]);
    names.sort();
    let mut all = ["source", fixture.name.as_str()];
    all.sort_unstable();
    assert_eq!(names, all, "also those without messages");
}
