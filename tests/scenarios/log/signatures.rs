//! Shared access signatures on streams: what each allows, and what it does not.

use http::{Request, StatusCode, Version, header};
use prost::Message as _;
use tonic::Code;
use trestle_identity::{sas::Scope, spec::LOG};
use trestle_proto::log::v1 as proto;
use trestle_proto::opentelemetry::proto::collector::logs::v1::logs_service_client::LogsServiceClient;
use trestle_tests::{
    CallError, World, blob_scenario, log_record, log_texts, over_account, terms, terms_by_policy,
    token,
};

use super::{SECOND, an_hour, export::one_log};

blob_scenario!(
    a_stream_sas_grants_each_call_by_its_permission,
    a_stream_sas_is_for_its_stream_only,
    an_export_with_a_stream_sas_creates_its_stream_with_the_permission_to_create,
    a_stream_sas_opens_no_other_service,
    an_account_sas_for_blobs_is_for_all_streams,
);

const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const NO_SERVICE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_SERVICE_MISMATCH");
const FAILURE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");

/// The world of a holder of a signature over the stream `web`.
fn held(world: &World, permissions: &str) -> World {
    world.signed(&token(terms(Scope::of_log("web"), permissions)))
}

/// The outcome of each call on a stream that takes a permission: with its name and one of its letters.
async fn outcomes(
    world: &World,
    name: &str,
) -> Vec<(&'static str, Option<char>, Result<(), CallError>)> {
    let stream = world.existing_log_stream(name);
    let records = [log_record(an_hour() + SECOND, "x")];
    let named = || name.to_owned();
    let mut client = world.logs();
    let created = proto::LogStream { name: named(), ..Default::default() };
    let create = proto::CreateStreamRequest { stream: Some(created.clone()) };
    let update = proto::UpdateStreamRequest {
        stream: Some(created),
        update_mask: Some(prost_types::FieldMask { paths: vec!["labels".to_owned()] }),
    };
    let tail = proto::TailRecordsRequest { stream: named(), ..Default::default() };
    let verify = proto::VerifySegmentRequest { stream: named(), id: u64::MAX };
    let drop_segment = proto::DropSegmentRequest { stream: named(), id: u64::MAX };
    // Behind the authorization: there is no such segment.
    let absent = |outcome: Result<(), CallError>| match outcome {
        Err(error) if error.code == Code::InvalidArgument => Ok(()),
        other => other,
    };
    let done = |outcome: Result<(), tonic::Status>| outcome.map_err(CallError::from);
    let mut all = vec![
        ("read", Some('r'), stream.read().await.map(drop)),
        ("get", Some('r'), stream.get().await.map(drop)),
        ("segments", Some('r'), stream.segments().await.map(drop)),
        ("tail", Some('r'), done(client.tail_records(tail).await.map(drop))),
        ("verify", Some('r'), absent(done(client.verify_segment(verify).await.map(drop)))),
        ("append", Some('a'), stream.append(&records).await.map(drop)),
        ("create", Some('c'), done(client.create_stream(create).await.map(drop))),
        ("update", None, done(client.update_stream(update).await.map(drop))),
        ("flush", None, stream.flush().await.map(drop)),
        ("undelete", None, stream.undelete().await.map(drop)),
        ("drop", None, absent(done(client.drop_segment(drop_segment).await.map(drop)))),
    ];
    let list = client.list_streams(proto::ListStreamsRequest::default()).await;
    all.push(("list", None, done(list.map(drop))));
    all
}

async fn a_stream_sas_grants_each_call_by_its_permission(world: &World) {
    world.log_stream("web").await;
    for letters in ["r", "a", "c", "rac"] {
        for (call, letter, outcome) in outcomes(&held(world, letters), "web").await {
            let expected = match letter {
                Some(letter) if letters.contains(letter) => Ok(()),
                Some(_) => Err(NO_PERMISSION),
                None => Err(FAILURE),
            };
            let found = outcome.map_err(|error| (error.code, error.reason));
            let expected = expected.map_err(|(code, reason)| (code, reason.to_owned()));
            assert_eq!(found, expected, "{call} with {letters}");
        }
    }
    let deleted = held(world, "rac").existing_log_stream("web").delete().await;
    assert_eq!(deleted.unwrap_err().kind(), FAILURE);
    for (call, _, outcome) in outcomes(world, "web").await {
        assert!(outcome.is_ok(), "{call} of the owner: {outcome:?}");
    }
}

async fn a_stream_sas_is_for_its_stream_only(world: &World) {
    world.log_stream("web").await;
    world.log_stream("web.traces").await;
    for other in ["web.traces", "absent"] {
        for (call, _, outcome) in outcomes(&held(world, "rac"), other).await {
            assert_eq!(outcome.unwrap_err().kind(), FAILURE, "{call} of {other}");
        }
    }
    let by_policy = token(terms_by_policy(Scope::of_log("web"), "daily"));
    let read = world.signed(&by_policy).existing_log_stream("web").read().await;
    let error = read.unwrap_err();
    assert_eq!(error.kind(), FAILURE, "{error:?}");
    assert!(error.message.contains("have no stored access policies"), "{error:?}");
}

async fn an_export_with_a_stream_sas_creates_its_stream_with_the_permission_to_create(
    world: &World,
) {
    let export = async |permissions: &str, service: &str, text: &str| {
        let mut client = LogsServiceClient::new(held(world, permissions).transport());
        let exported = client.export(one_log(service, text)).await;
        exported.map(drop).map_err(|status| {
            let error = CallError::from(status);
            (error.code, error.reason)
        })
    };
    let denied = |(code, reason): (Code, &str)| Err((code, reason.to_owned()));

    assert_eq!(export("a", "web", "early").await, denied(NO_PERMISSION));
    assert_eq!(export("rc", "web", "early").await, denied(NO_PERMISSION));
    assert_eq!(export("ac", "web", "first").await, Ok(()));
    assert_eq!(export("a", "web", "second").await, Ok(()));
    assert_eq!(export("ac", "other", "x").await, denied(FAILURE));
    let records = world.existing_log_stream("web").read().await.unwrap().records;
    assert_eq!(log_texts(&records), ["first", "second"]);
    let other = world.existing_log_stream("other").read().await.unwrap_err();
    assert_eq!(other.reason, "LOG_STREAM_NOT_FOUND", "nothing was created");

    let by_http = |service: &str| {
        let token = token(terms(Scope::of_log("web"), "a"));
        Request::post("/v1/logs")
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .header(header::AUTHORIZATION, format!("SharedAccessSignature {token}"))
            .body(one_log(service, "third").encode_to_vec().into())
            .unwrap()
    };
    let stored = world.http(Version::HTTP_11, by_http("web")).await.unwrap();
    assert_eq!(stored.status(), StatusCode::OK, "{stored:?}");
    let denied = world.http(Version::HTTP_11, by_http("other")).await.unwrap();
    assert_eq!(denied.status(), StatusCode::FORBIDDEN, "{denied:?}");
    let records = world.existing_log_stream("web").read().await.unwrap().records;
    assert_eq!(log_texts(&records), ["first", "second", "third"]);
}

async fn a_stream_sas_opens_no_other_service(world: &World) {
    let container = world.container("web").await;
    container.write("a", "1").await.unwrap();
    world.log_stream("web").await;

    let read = held(world, "rac").existing_container("web").read("a").await;

    assert_eq!(read.unwrap_err().kind(), NO_SERVICE);
    let of_container = token(terms(Scope::of_container("web"), "rac"));
    let holder = world.signed_for_blob(&of_container, "web");
    assert_eq!(holder.existing_log_stream("web").read().await.unwrap_err().kind(), NO_SERVICE);
}

async fn an_account_sas_for_blobs_is_for_all_streams(world: &World) {
    world.log_stream("web").await;
    let signed = |services: &str, permissions: &str| {
        world.signed(&token(terms(over_account(services, "sco"), permissions)))
    };
    assert!(LOG.letter == 'b', "documented");
    assert!(signed("b", "r").existing_log_stream("web").read().await.is_ok());
    let appended = signed("b", "r").existing_log_stream("web").append(&[]).await;
    assert_eq!(appended.unwrap_err().kind(), NO_PERMISSION);
    let read = signed("tq", "r").existing_log_stream("web").read().await;
    assert_eq!(read.unwrap_err().kind(), NO_SERVICE);
}
