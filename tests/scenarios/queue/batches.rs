//! Many messages in one call, and repeated calls.

mod repeated;

use tonic::Code;
use trestle_proto::queue::v1::{self as proto, SentMessage};
use trestle_tests::{
    CallError, Queue, World, queue_scenario, receipt_of, receipt_of_sent, seconds, text, texts,
    unique,
};

queue_scenario!(send_reports_an_outcome_per_message, delete_reports_an_outcome_per_message,);

type Outcomes = Vec<Result<SentMessage, CallError>>;

fn ids(outcomes: &Outcomes) -> Vec<String> {
    outcomes.iter().map(|outcome| outcome.as_ref().unwrap().message_id.clone()).collect()
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
