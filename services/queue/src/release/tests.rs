//! Tests of deliveries that are not handed over.

use std::time::Duration;

use futures::poll;
use http_body_util::BodyExt as _;
use prost::Message as _;
use tokio::time::Instant;
use tonic::codegen::http::{HeaderValue, Method, Uri, header};
use tower::{Service as _, ServiceExt as _};
use trestle_identity::caller::Caller;
use trestle_proto::queue::v1::ReceiveMessagesRequest;
use trestle_rpc::layer::deadline::CallDeadline;
use trestle_rpc::layer::{Request, Response};

use super::*;
use crate::{
    QueueDeps, QueueRole,
    fixture::{Fixture, claimed, outgoing},
    receive::Receive,
    send::NewMessage,
};

/// Lets the tasks of dropped handovers run.
async fn run_tasks() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn deliveries_that_are_dropped_are_visible_at_once_and_were_not_received() {
    let world = Fixture::new().await;
    world.send(vec![outgoing(0), outgoing(0)]).await;

    let dropped = world.receiving(1, 3600).await;
    let receipt = claimed(&dropped.delivered[0]);
    drop(dropped);
    run_tasks().await;

    let received = world.receive(32, 600).await;
    let counts: Vec<_> = received.iter().map(|message| message.state.dequeue_count).collect();
    assert_eq!(counts, [1, 1]);
    // A client that got the response after all cannot delete what another one holds.
    let deleted = world.messages.delete(&world.access, &world.name, vec![receipt]).await;
    assert_eq!(deleted.expect("decided"), [false]);
    world.delete(&received).await;
    assert_eq!(world.count().await, 0);
}

#[tokio::test]
async fn a_message_that_was_received_again_or_has_expired_is_not_released() {
    let world = Fixture::new().await;
    let short = NewMessage { time_to_live: Some(Duration::from_secs(60)), ..outgoing(0) };
    world.send(vec![outgoing(0), short]).await;
    let stale = world.receiving(2, 10).await;
    world.clock.advance(Duration::from_secs(11));
    assert_eq!(world.receive(1, 600).await.len(), 1);
    world.clock.advance(Duration::from_secs(60));

    drop(stale);
    run_tasks().await;

    assert_eq!(world.receive(32, 600).await, []);
}

#[tokio::test]
async fn a_receive_that_is_cancelled_during_its_commit_releases_its_messages() {
    let world = Fixture::new().await;
    world.send(vec![outgoing(0)]).await;
    let held = world.engine.hold_commits().await;
    let (visibility_timeout, wait) = (Duration::from_secs(3600), Duration::ZERO);
    let receive = Receive { max: 1, visibility_timeout, wait, deadline: None };
    let mut receiving = Box::pin(world.messages.receive(&world.access, &world.name, receive));
    assert!(poll!(&mut receiving).is_pending(), "it commits");

    drop(receiving);
    drop(held);
    run_tasks().await;

    assert_eq!(world.receive(1, 600).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_receives_nothing_shortly_before_its_deadline() {
    let world = Fixture::new().await;
    let deadline = CallDeadline::new(Instant::now(), Duration::from_secs(2));
    let (visibility_timeout, wait) = (Duration::from_secs(3600), Duration::from_secs(20));
    let receive = Receive { max: 1, visibility_timeout, wait, deadline: Some(deadline) };
    let (messages, access, name) =
        (world.messages.clone(), world.access.clone(), world.name.clone());
    let call = tokio::spawn(async move { messages.receive(&access, &name, receive).await });

    tokio::time::sleep(Duration::from_millis(1900)).await;
    world.send(vec![outgoing(0)]).await;
    let ended = call.await.expect("ran").map(ReceivedBatch::complete);

    assert!(matches!(ended, Err(QueueError::Invalid(_))), "{ended:?}");
    assert_eq!(world.receive(1, 600).await[0].state.dequeue_count, 1);
}

async fn respond(world: &Fixture) -> Response {
    let role = QueueRole::new(QueueDeps {
        engine: Arc::new(world.engine.clone()),
        clock: world.clock.clone(),
        random: || uuid::Uuid::now_v7().as_u128(),
        storage: trestle_rpc::quota::StorageQuotas::default(),
        processes: trestle_rpc::served_store::StoreProcesses::default(),
        placement: None,
    });
    let message = ReceiveMessagesRequest {
        queue: world.name.as_str().to_owned(),
        ..ReceiveMessagesRequest::default()
    };
    let mut framed = vec![0; 5];
    message.encode(&mut framed).expect("room");
    framed[4] = u8::try_from(framed.len() - 5).expect("short");
    let body = http_body_util::Full::new(bytes::Bytes::from(framed));
    let mut request = Request::new(tonic::body::Body::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static("/trestle.queue.v1.QueueService/ReceiveMessages");
    let (name, value) = (header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    request.headers_mut().insert(name, value);
    Arc::new(Caller::owner(world.access.account().clone())).insert(&mut request);
    role.server().ready().await.expect("ready").call(request).await.expect("infallible")
}

#[tokio::test]
async fn a_response_that_is_dropped_unread_releases_its_messages_and_a_read_one_does_not() {
    let mut world = Fixture::new().await;
    world.send(vec![outgoing(0)]).await;

    drop(respond(&world).await);
    run_tasks().await;
    let read = respond(&world).await.into_body().collect().await.expect("read").to_bytes();
    run_tasks().await;

    assert!(read.len() > 5, "{read:?}");
    world.restart();
    assert_eq!(world.receive(1, 600).await, []);
}
