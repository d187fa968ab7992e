//! Tests of transfers.

use trestle_kv::Engine as _;

use super::*;
use crate::{
    fixture::{Fixture, outgoing},
    head::QueueHead,
    model::queue_name,
};

#[tokio::test]
async fn an_unreadable_message_remains_and_does_not_block_the_others() {
    let fixture = Fixture::new().await;
    fixture.create("other").await;
    let sent = fixture.send(vec![outgoing(0); 4]).await;
    let id = fixture.id().await;
    fixture.damage(keys::body(id, sent[0].sent.slot.sequence)).await;
    fixture.damage(keys::state(id, sent[2].sent.slot)).await;
    let redrive = async |to: Option<&str>| {
        let to = to.map(queue_name);
        fixture.messages.redrive(&fixture.access, &fixture.name, to, 1000).await.expect("moved")
    };

    assert_eq!(redrive(None).await, 0, "the others have no origin");
    assert_eq!(redrive(Some("other")).await, 2);

    let other = Fixture { name: queue_name("other"), ..fixture.clone() };
    assert_eq!(other.count().await, 2);
    let head = fixture.engine.get(&keys::head(id)).await.expect("readable").expect("there");
    assert_eq!(QueueHead::decode(&head).expect("readable").count, 2);
}
