//! Tests of the backlogs.

use super::*;
use crate::fixture::{Fixture, outgoing};

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

    let open = fixture.messages.backlogs().await.expect("backlogs");
    fixture.restart();
    let closed = fixture.messages.backlogs().await.expect("backlogs");

    assert_eq!(open, closed);
    assert_eq!((open.queues, open.with_messages.len()), (2, 1));
    let backlog = &open.with_messages[0];
    assert_eq!((&*backlog.queue, backlog.messages), (fixture.name.as_str(), 2));
    assert_eq!(backlog.oldest_age, Some(Duration::from_secs(5)));
    assert!(fixture.messages.schedulers.all().is_empty(), "it opened a queue");
}
