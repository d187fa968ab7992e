//! Shared access signatures on streams: what each allows, and what it does not.

use futures::{StreamExt as _, stream};
use http::{HeaderName, Request, StatusCode, Version, header};
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};
use trestle_identity::{
    account::AccountKey,
    sas::{Scope, Terms, Time, mint},
};
use trestle_model::time::{Clock as _, SystemClock, Ticks};
use trestle_proto::log::v1::{
    self as proto, append_stream_response::Outcome, tail_records_request::Start,
};
use trestle_proto::opentelemetry::proto::collector::logs::v1::logs_service_client::LogsServiceClient;
use trestle_tests::{
    CallError, HANG, World, log_record, log_scenario, log_scenario_with, log_texts,
    object_scenario, over_account, terms, terms_by_policy, token,
};

use super::{SECOND, an_hour, export::one_log};

log_scenario!(
    a_stream_sas_grants_each_call_by_its_permission,
    a_stream_sas_is_for_its_stream_only,
    an_export_with_a_stream_sas_creates_its_stream_with_the_permission_to_create,
    an_append_stream_with_a_stream_sas_appends_to_its_stream_only,
    calls_of_a_stream_sas_that_are_open_end_when_it_expires,
);
object_scenario!(
    a_stream_sas_opens_no_other_service,
    an_account_sas_for_logs_is_for_all_streams_and_nothing_else,
);
log_scenario_with!(
    ACCOUNTS;
    a_stream_sas_is_of_the_account_whose_key_signed_it,
);

/// Base64 of 64 bytes.
const KEY: &str =
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==";
/// An account beside the development account.
const ACCOUNTS: &[(&str, &str)] = &[
    ("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "loopback"),
    ("TRESTLE__ACCOUNTS__ACME__KEY1", KEY),
];

const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const NO_SERVICE: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_SERVICE_MISMATCH");
const NOT_AUTHENTIC: (Code, &str) = (Code::Unauthenticated, "AUTHENTICATION_FAILED");
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
    let summarize = proto::SummarizeRecordsRequest { stream: named(), ..Default::default() };
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
        ("summarize", Some('r'), done(client.summarize_records(summarize).await.map(drop))),
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

async fn an_account_sas_for_logs_is_for_all_streams_and_nothing_else(world: &World) {
    let container = world.container("web").await;
    container.write("a", "1").await.unwrap();
    for name in ["web", "web.traces"] {
        world.log_stream(name).await;
    }
    let signed = |services: &str, permissions: &str| {
        world.signed(&token(terms(over_account(services, "sco"), permissions)))
    };
    for (services, opens_logs) in [("l", true), ("bl", true), ("b", false), ("bqtf", false)] {
        for name in ["web", "web.traces"] {
            for (call, letter, outcome) in outcomes(&signed(services, "rwdlac"), name).await {
                let expected = if opens_logs { Ok(()) } else { Err(NO_SERVICE) };
                let found = outcome.map_err(|error| (error.code, error.reason));
                let expected = expected.map_err(|(code, reason)| (code, reason.to_owned()));
                assert_eq!(found, expected, "{call} {letter:?} with ss={services}");
            }
        }
        let read = signed(services, "r").existing_container("web").read("a").await;
        assert_eq!(read.is_ok(), services.contains('b'), "a blob with ss={services}");
    }
    let appended = signed("l", "r").existing_log_stream("web").append(&[]).await;
    assert_eq!(appended.unwrap_err().kind(), NO_PERMISSION);
    let of_blobs = signed("l", "rwdlac").existing_container("web").read("a").await;
    assert_eq!(of_blobs.unwrap_err().kind(), NO_SERVICE);
    let mut client = LogsServiceClient::new(signed("b", "rwdlac").transport());
    let exported = client.export(one_log("web", "x")).await.unwrap_err();
    assert_eq!(CallError::from(exported).kind(), NO_SERVICE);
}

/// The acknowledgements of appends to these streams in one call of AppendStream, with the reasons of their errors.
async fn append_stream(
    world: &World,
    streams: &[&str],
) -> Result<Vec<Result<u64, String>>, CallError> {
    let request = |(id, name): (u64, &&str)| {
        let record = log_record(an_hour(), &format!("{name} {id}"));
        let append = Some(world.existing_log_stream(name).appending(&[record]));
        proto::AppendStreamRequest { append, append_id: id }
    };
    let requests: Vec<_> = (0..).zip(streams).map(request).collect();
    let responses = world.logs().append_stream(stream::iter(requests)).await?.into_inner();
    let outcome = |response: Result<proto::AppendStreamResponse, tonic::Status>| {
        Ok(match response?.outcome.expect("an outcome") {
            Outcome::Appended(appended) => Ok(appended.first_sequence),
            Outcome::Error(status) => Err(CallError::of_item(&status).reason),
        })
    };
    responses.map(outcome).collect::<Vec<_>>().await.into_iter().collect()
}

async fn an_append_stream_with_a_stream_sas_appends_to_its_stream_only(world: &World) {
    let (web, other) = (world.log_stream("web").await, world.log_stream("other").await);
    for letters in ["r", "c", "rc"] {
        let denied = append_stream(&held(world, letters), &["web"]).await.unwrap_err();
        assert_eq!(denied.kind(), NO_PERMISSION, "{letters}");
    }

    let outcomes = append_stream(&held(world, "a"), &["web", "other", "", "absent", "web"]).await;

    let failure = || Err(FAILURE.1.to_owned());
    assert_eq!(outcomes.unwrap(), [Ok(0), failure(), Ok(1), failure(), Ok(2)]);
    let records = web.read().await.unwrap().records;
    assert_eq!(log_texts(&records), ["web 0", " 2", "web 4"]);
    assert_eq!(other.read().await.unwrap().records, []);
    let first = append_stream(&held(world, "a"), &["other", ""]).await.unwrap();
    assert_eq!(first, [failure(), failure()], "the first request names the stream");
}

async fn a_stream_sas_is_of_the_account_whose_key_signed_it(world: &World) {
    let acme = |scope: Scope, permissions: &str| {
        let token = mint(terms(scope, permissions), "acme", &AccountKey::decode(KEY).unwrap());
        token.unwrap().to_query()
    };
    let owner = world.signed(&acme(over_account("l", "sco"), "rwdlac"));
    let append = async |world: &World, text: &str| {
        let stream = world.existing_log_stream("web");
        stream.append(&[log_record(an_hour(), text)]).await.map(drop)
    };
    for (world, text) in [(world, "of the development account"), (&owner, "of acme")] {
        world.log_stream("web").await;
        append(world, text).await.unwrap();
    }
    let read = async |world: &World| {
        let read = world.existing_log_stream("web").read().await;
        read.map(|read| log_texts(&read.records)).map_err(|error| (error.code, error.reason))
    };
    let token_of_acme = acme(Scope::of_log("web"), "ra");
    let of_acme = world.signed(&token_of_acme);
    let named =
        |account: &str| of_acme.with_header(HeaderName::from_static("trestle-account"), account);

    append(&of_acme, "by signature").await.unwrap();

    let expected = ["of acme", "by signature"].map(str::to_owned).to_vec();
    for holder in [&of_acme, &named("acme"), &owner] {
        assert_eq!(read(holder).await.as_ref(), Ok(&expected));
    }
    let not_authentic = Err((NOT_AUTHENTIC.0, NOT_AUTHENTIC.1.to_owned()));
    assert_eq!(read(&named("devstoreaccount1")).await, not_authentic);
    // The name of one account, signed with the key of the other.
    let swapped = mint(terms(Scope::of_log("web"), "ra"), "acme", &AccountKey::development());
    assert_eq!(read(&world.signed(&swapped.unwrap().to_query())).await, not_authentic);
    let expected = ["of the development account".to_owned()].to_vec();
    assert_eq!(read(&held(world, "r")).await, Ok(expected));
}

/// Calls of one signature that wait for data.
struct OpenCalls {
    tail: Streaming<proto::TailRecordsResponse>,
    /// Keeps the requests open.
    _appends: mpsc::Sender<proto::AppendStreamRequest>,
    acks: Streaming<proto::AppendStreamResponse>,
}

impl OpenCalls {
    /// Opens them, and receives the first response of each.
    async fn open(holder: &World) -> Result<Self, CallError> {
        let stream = holder.existing_log_stream("web");
        let start = Some(Start::Last(1));
        let request =
            proto::TailRecordsRequest { stream: "web".to_owned(), start, ..Default::default() };
        let mut tail = holder.logs().tail_records(request).await?.into_inner();
        tail.message().await?.expect("a record");
        let (appends, receiver) = mpsc::channel(4);
        let append = Some(stream.appending(&[log_record(an_hour(), "in time")]));
        let first = proto::AppendStreamRequest { append, append_id: 1 };
        appends.send(first).await.expect("open");
        let receiver = ReceiverStream::new(receiver);
        let mut acks = holder.logs().append_stream(receiver).await?.into_inner();
        acks.message().await?.expect("an acknowledgement");
        Ok(Self { tail, _appends: appends, acks })
    }
}

/// The error at the end of a stream, which may deliver something before.
async fn end<T>(stream: &mut Streaming<T>) -> CallError {
    loop {
        match tokio::time::timeout(HANG, stream.message()).await.expect("the stream ends") {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended without an error"),
            Err(status) => return CallError::from(status),
        }
    }
}

async fn calls_of_a_stream_sas_that_are_open_end_when_it_expires(world: &World) {
    let stream = world.log_stream("web").await;
    stream.append(&[log_record(an_hour(), "before")]).await.unwrap();
    let mut opened = None;
    // A machine that is busy may need longer to open them.
    for seconds in [2, 10, 50] {
        let expiry = Ticks::new(SystemClock.now().get() + seconds * 10_000_000).and_then(Time::at);
        let brief = Terms { expiry, ..terms(Scope::of_log("web"), "ra") };
        match OpenCalls::open(&world.signed(&token(brief))).await {
            Ok(calls) => {
                opened = Some(calls);
                break;
            }
            Err(error) => assert_eq!(error.kind(), NOT_AUTHENTIC, "{error:?}"),
        }
    }
    let mut calls = opened.expect("a signature that has not expired");

    for error in [end(&mut calls.tail).await, end(&mut calls.acks).await] {
        assert_eq!(error.kind(), NOT_AUTHENTIC, "{error:?}");
        assert!(error.message.contains("expired"), "{error:?}");
    }
}
