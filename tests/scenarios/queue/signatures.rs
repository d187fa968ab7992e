//! SAS on queues: what each allows, and what it denies.

use std::time::Duration;

use prost_types::Timestamp;
use tonic::Code;
use trestle_identity::sas::Scope;
use trestle_proto::queue::v1::{
    self as proto, StreamMessagesRequest, StreamOpen, stream_messages_request::Message,
};
use trestle_proto::service::v1::AccessPolicy;
use trestle_tests::{
    CallError, Queue, World, over_account, queue_scenario, receipt_of, receipt_of_sent, seconds,
    terms, terms_by_policy, text, texts, token,
};

queue_scenario!(
    queue_sas_grants_only_its_permissions,
    queue_sas_permits_its_queue_only,
    queue_sas_must_name_the_signed_queue,
    account_sas_grants_only_its_permissions_on_queues,
    queue_policy_is_created_used_changed_and_revoked,
    revoked_policy_ends_receives_and_streams_and_keeps_messages_visible,
    denied_calls_do_not_reveal_whether_a_queue_exists,
);

const FAILURE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");
const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const NO_TYPE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_RESOURCE_TYPE_MISMATCH");
const NO_SERVICE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_SERVICE_MISMATCH");
const NOT_AUTHENTIC: (Code, &str) = (Code::Unauthenticated, "AUTHENTICATION_FAILED");
const NOT_FOUND: (Code, &str) = (Code::NotFound, "QUEUE_NOT_FOUND");

fn over_queue(name: &str) -> Scope {
    Scope::of_queue(name)
}

/// A queue for the holder of a SAS of it.
fn held(world: &World, name: &str, permissions: &str) -> Queue {
    let token = token(terms(over_queue(name), permissions));
    world.signed_for_queue(&token, name).existing_queue(name)
}

type Outcomes = Vec<(&'static str, Result<(), CallError>)>;

/// Every call on the messages of one queue, which has a message to receive and one that was received.
async fn on_messages(owner: &Queue, queue: &Queue) -> Outcomes {
    owner.clear().await.unwrap();
    let sent = receipt_of_sent(&owner.send(text("sent")).await.unwrap());
    let receipt = receipt_of(&owner.receive(1, seconds(60)).await.unwrap()[0]);
    let rejected = queue.delete(sent).await;
    assert!(rejected.is_err(), "superseded or not allowed");
    owner.send(text("visible")).await.unwrap();
    let opened = Message::Open(StreamOpen { queue: queue.name(), ..Default::default() });
    let opened = StreamMessagesRequest { message: Some(opened) };
    let streamed = async {
        let stream = queue.client().stream_messages(tokio_stream::once(opened)).await;
        let mut stream = stream.map_err(CallError::from)?.into_inner();
        stream.message().await.map(drop).map_err(CallError::from)
    };
    vec![
        ("get", queue.get().await.map(drop)),
        ("peek", queue.peek(1).await.map(drop)),
        ("send", queue.send(text("more")).await.map(drop)),
        ("receive", queue.receive(1, seconds(1)).await.map(drop)),
        ("stream", streamed.await),
        ("update", queue.update(receipt.clone(), seconds(60), None).await.map(drop)),
        ("delete", queue.delete(receipt).await),
    ]
}

fn needed(call: &str) -> char {
    match call {
        "get" | "peek" => 'r',
        "send" => 'a',
        "update" => 'u',
        "receive" | "stream" | "delete" => 'p',
        other => panic!("{other}"),
    }
}

fn assert_letters(permissions: &str, outcomes: Outcomes) {
    for (call, outcome) in outcomes {
        let allowed = permissions.contains(needed(call));
        let kind = outcome.as_ref().map_err(CallError::kind).err();
        if call == "delete" && allowed && permissions.contains('u') {
            let not_found = Some((Code::NotFound, "MESSAGE_NOT_FOUND"));
            assert_eq!(kind, not_found, "{permissions}: its update gave it a new receipt");
        } else {
            let expected = (!allowed).then_some(NO_PERMISSION);
            assert_eq!(kind, expected, "{permissions} {call}: {outcome:?}");
        }
    }
}

async fn queue_sas_grants_only_its_permissions(world: &World) {
    let owner = world.queue("jobs").await;
    for permissions in ["r", "a", "u", "p", "ra", "ap", "up", "raup"] {
        let held = held(world, "jobs", permissions);
        assert_letters(permissions, on_messages(&owner, &held).await);
    }
    // In each form of the string to sign.
    for version in ["2012-02-12", "2015-02-21", "2015-04-05", "2026-10-06"] {
        let version = trestle_identity::sas::Version::parse(version.to_owned()).unwrap();
        let token =
            token(trestle_identity::sas::Terms { version, ..terms(over_queue("jobs"), "r") });
        world.signed_for_queue(&token, "jobs").existing_queue("jobs").peek(1).await.unwrap();
    }
}

/// Every call that no signature over a queue allows.
async fn beside_messages(world: &World, name: &str) -> Outcomes {
    let queue = world.existing_queue(name);
    let mut client = world.queues();
    let named = || name.to_owned();
    let settings = || Some(proto::Queue { name: named(), ..Default::default() });
    let update = proto::UpdateQueueRequest {
        queue: settings(),
        update_mask: Some(prost_types::FieldMask { paths: vec!["metadata".to_owned()] }),
    };
    let create = proto::CreateQueueRequest { queue: settings() };
    let list = proto::ListQueuesRequest::default();
    let get = proto::GetQueueAccessPoliciesRequest { queue: named() };
    let set = proto::SetQueueAccessPoliciesRequest { queue: named(), policies: Vec::new() };
    let stats = proto::GetServiceStatsRequest {};
    let done = |outcome: Result<(), tonic::Status>| outcome.map_err(CallError::from);
    vec![
        ("create", done(client.create_queue(create).await.map(drop))),
        ("update queue", done(client.update_queue(update).await.map(drop))),
        ("list", done(client.list_queues(list).await.map(drop))),
        ("get policies", done(client.get_queue_access_policies(get).await.map(drop))),
        ("set policies", done(client.set_queue_access_policies(set).await.map(drop))),
        ("clear", queue.clear().await),
        ("redrive", queue.redrive("", 1).await.map(drop)),
        ("properties", world.queue_properties().await.map(drop)),
        ("set properties", world.set_queue_properties(Default::default()).await),
        ("stats", done(client.get_service_stats(stats).await.map(drop))),
        ("drop", queue.drop_queue().await),
    ]
}

async fn queue_sas_permits_its_queue_only(world: &World) {
    let owner = world.queue("jobs").await;
    world.queue("other").await.send(text("secret")).await.unwrap();
    let token = token(terms(over_queue("jobs"), "raup"));
    let world = world.signed_for_queue(&token, "jobs");

    for (call, outcome) in beside_messages(&world, "jobs").await {
        assert_eq!(outcome.unwrap_err().kind(), FAILURE, "{call}");
    }
    let other = world.existing_queue("other");
    assert_eq!(other.peek(1).await.unwrap_err().kind(), FAILURE);
    assert_eq!(other.receive(1, seconds(1)).await.unwrap_err().kind(), FAILURE);
    assert_eq!(other.send(text("x")).await.unwrap_err().kind(), FAILURE);
    assert_eq!(world.list("", None, "").await.unwrap_err().kind(), NO_SERVICE, "tables");
    assert_eq!(owner.count().await, 0);
}

async fn queue_sas_must_name_the_signed_queue(world: &World) {
    world.queue("jobs").await;
    world.queue("other").await;
    let token = token(terms(over_queue("jobs"), "raup"));

    let unnamed = world.signed(&token).existing_queue("jobs").peek(1).await.unwrap_err();
    assert_eq!(unnamed.kind(), (Code::Unauthenticated, "INVALID_AUTHENTICATION_INFO"));
    let header = "one of a queue needs its name in `trestle-queue`";
    assert!(unnamed.message.contains(header), "{}", unnamed.message);
    let renamed = world.signed_for_queue(&token, "other").existing_queue("other");
    assert_eq!(renamed.peek(1).await.unwrap_err().kind(), NOT_AUTHENTIC);
    let malformed = world.signed_for_queue(&token, "No Queue").existing_queue("jobs");
    let malformed = malformed.peek(1).await.unwrap_err();
    assert_eq!(malformed.kind(), (Code::Unauthenticated, "INVALID_AUTHENTICATION_INFO"));
    let widened = token.replace("sp=raup", "sp=rau");
    let widened = world.signed_for_queue(&widened, "jobs").existing_queue("jobs");
    assert_eq!(widened.peek(1).await.unwrap_err().kind(), NOT_AUTHENTIC);
    let named = world.signed_for_queue(&token, "jobs").existing_queue("jobs");
    named.peek(1).await.unwrap();
}

async fn account_sas_grants_only_its_permissions_on_queues(world: &World) {
    let owner = world.queue("jobs").await;
    for permissions in ["r", "a", "u", "p", "raup"] {
        let token = token(terms(over_account("q", "co"), permissions));
        let held = world.signed(&token).existing_queue("jobs");
        assert_letters(permissions, on_messages(&owner, &held).await);
    }
    let of = |resource_types: &str, permissions: &str| {
        world.signed(&token(terms(over_account("q", resource_types), permissions)))
    };
    of("o", "d").existing_queue("jobs").clear().await.unwrap();
    let wrong = of("sc", "d").existing_queue("jobs").clear().await.unwrap_err();
    assert_eq!(wrong.kind(), NO_TYPE);
    let wrong = of("o", "raup").existing_queue("jobs").clear().await.unwrap_err();
    assert_eq!(wrong.kind(), NO_PERMISSION);
    let elsewhere = world.signed(&token(terms(over_account("bt", "sco"), "rwdlacup")));
    for (call, outcome) in beside_messages(&elsewhere, "jobs").await {
        assert_eq!(outcome.unwrap_err().kind(), NO_SERVICE, "{call}");
    }
    for (call, outcome) in beside_messages(&of("sco", "rwdlacup"), "jobs").await {
        let kind = outcome.as_ref().map_err(CallError::kind).err();
        let expected = call.ends_with("policies").then_some(FAILURE);
        assert_eq!(kind, expected, "{call}");
    }
}

const PAST: i64 = 1_000_000_000;
const FUTURE: i64 = 32_000_000_000;

fn policy(id: &str, permissions: &str) -> AccessPolicy {
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    AccessPolicy {
        id: id.to_owned(),
        start_time: at(PAST),
        expiry_time: at(FUTURE),
        permissions: Some(permissions.to_owned()),
    }
}

/// The queue `jobs` for its owner, and for the holder of a SAS with the policy `p`.
async fn shared(world: &World) -> (Queue, Queue) {
    let owner = world.queue("jobs").await;
    let token = token(terms_by_policy(over_queue("jobs"), "p"));
    (owner, world.signed_for_queue(&token, "jobs").existing_queue("jobs"))
}

async fn queue_policy_is_created_used_changed_and_revoked(world: &World) {
    let (owner, held) = shared(world).await;
    owner.send(text("a")).await.unwrap();
    for _ in 0..5 {
        assert_eq!(held.peek(1).await.unwrap_err().kind(), NOT_AUTHENTIC);
        owner.set_policies(vec![policy("other", "raup"), policy("p", "r")]).await.unwrap();
        assert_eq!(held.peek(1).await.unwrap().len(), 1);
        assert_eq!(held.receive(1, seconds(1)).await.unwrap_err().kind(), NO_PERMISSION);

        owner.set_policies(vec![policy("p", "a")]).await.unwrap();
        held.send(text("b")).await.unwrap();
        assert_eq!(held.peek(1).await.unwrap_err().kind(), NO_PERMISSION);

        owner.set_policies(vec![policy("P", "raup")]).await.unwrap();
        assert_eq!(held.send(text("c")).await.unwrap_err().kind(), NOT_AUTHENTIC, "renamed");
        owner.set_policies(Vec::new()).await.unwrap();
    }
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    for expired_or_early in [
        AccessPolicy { expiry_time: at(PAST + 1), ..policy("p", "r") },
        AccessPolicy { start_time: at(FUTURE - 1), ..policy("p", "r") },
        AccessPolicy { expiry_time: None, ..policy("p", "r") },
    ] {
        owner.set_policies(vec![expired_or_early]).await.unwrap();
        assert_eq!(held.peek(1).await.unwrap_err().kind(), NOT_AUTHENTIC);
    }
    owner.set_policies(vec![policy("p", "raup")]).await.unwrap();
    held.clear().await.unwrap_err();
    owner.clear().await.unwrap();
    held.send(text("after")).await.expect("a cleared queue keeps its policies");
    owner.drop_queue().await.unwrap();
    assert_eq!(held.peek(1).await.unwrap_err().kind(), NOT_AUTHENTIC);
}

async fn revoked_policy_ends_receives_and_streams_and_keeps_messages_visible(world: &World) {
    let (owner, held) = shared(world).await;
    owner.set_policies(vec![policy("p", "p")]).await.unwrap();
    let (requests, receiver) = tokio::sync::mpsc::channel(1);
    let opened = StreamOpen { queue: held.name(), credit: 1, ..Default::default() };
    let opened = StreamMessagesRequest { message: Some(Message::Open(opened)) };
    requests.send(opened).await.unwrap();
    let receiver = tokio_stream::wrappers::ReceiverStream::new(receiver);
    let mut stream = held.client().stream_messages(receiver).await.unwrap().into_inner();
    let revoke = async {
        // Time for both to wait; otherwise they are rejected when they start.
        tokio::time::sleep(Duration::from_millis(300)).await;
        owner.set_policies(Vec::new()).await.unwrap();
        owner.send(text("a")).await.unwrap();
        owner.send(text("b")).await.unwrap();
    };

    let (waited, ()) = tokio::join!(held.wait(seconds(20)), revoke);

    assert_eq!(waited.unwrap_err().kind(), NOT_AUTHENTIC);
    let streamed = CallError::from(stream.message().await.unwrap_err());
    assert_eq!(streamed.kind(), NOT_AUTHENTIC);
    let received = owner.receive(32, seconds(30)).await.unwrap();
    assert_eq!(texts(&received), ["a", "b"], "free for others, and not counted as received");
    assert!(received.iter().all(|d| d.message.as_ref().unwrap().dequeue_count == 1));
}

async fn denied_calls_do_not_reveal_whether_a_queue_exists(world: &World) {
    world.queue("there").await;
    for name in ["there", "absent"] {
        let queue = held(world, name, "a");
        assert_eq!(queue.peek(1).await.unwrap_err().kind(), NO_PERMISSION);
        assert_eq!(queue.get().await.unwrap_err().kind(), NO_PERMISSION);
        let token = token(terms(over_queue("mine"), "raup"));
        let queue = world.signed_for_queue(&token, "mine").existing_queue(name);
        assert_eq!(queue.send(text("x")).await.unwrap_err().kind(), FAILURE);
    }
    let absent = held(world, "absent", "r");
    assert_eq!(absent.peek(1).await.unwrap_err().kind(), NOT_FOUND);
}
