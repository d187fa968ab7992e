//! Following a stream.

use tonic::Code;
use trestle_proto::log::v1::{self as proto, tail_records_request::Start};
use trestle_tests::{CallError, HANG, World, log_record, log_records, log_scenario, log_texts};

use super::an_hour;

log_scenario!(
    a_follower_gets_records_as_they_are_appended_until_the_stream_is_deleted,
    a_follower_of_a_filter_gets_what_matches,
);

type Responses = tonic::Streaming<proto::TailRecordsResponse>;

/// The texts of the next records, at least one.
async fn next(responses: &mut Responses) -> Result<Vec<String>, CallError> {
    loop {
        let response = tokio::time::timeout(HANG, responses.message());
        let response = response.await.expect("records come")?.expect("the call goes on");
        if !response.records.is_empty() {
            return Ok(log_texts(&log_records(response.records)));
        }
    }
}

async fn a_follower_gets_records_as_they_are_appended_until_the_stream_is_deleted(world: &World) {
    let stream = world.log_stream("web").await;
    stream.append(&["a", "b", "c"].map(|text| log_record(an_hour(), text))).await.unwrap();
    let follow = async |start: Option<Start>| {
        let request =
            proto::TailRecordsRequest { stream: stream.name(), start, ..Default::default() };
        world.logs().tail_records(request).await.unwrap().into_inner()
    };
    let mut last = follow(Some(Start::Last(2))).await;
    let mut from = follow(Some(Start::FromSequence(1))).await;

    assert_eq!(next(&mut last).await.unwrap(), ["b", "c"]);
    assert_eq!(next(&mut from).await.unwrap(), ["b", "c"]);
    stream.flush().await.unwrap();
    stream.append(&[log_record(an_hour() - 1, "d")]).await.unwrap();
    assert_eq!(next(&mut last).await.unwrap(), ["d"]);
    assert_eq!(next(&mut from).await.unwrap(), ["d"]);

    stream.delete().await.unwrap();
    let ended = next(&mut last).await.unwrap_err();
    assert_eq!(ended.kind(), (Code::NotFound, "LOG_STREAM_NOT_FOUND"));
}

async fn a_follower_of_a_filter_gets_what_matches(world: &World) {
    let stream = world.log_stream("web").await;
    let request = proto::TailRecordsRequest {
        stream: stream.name(),
        start: Some(Start::FromSequence(0)),
        filter: "startswith(body, 'yes')".to_owned(),
        ..Default::default()
    };
    let mut responses = world.logs().tail_records(request).await.unwrap().into_inner();

    stream.append(&["no", "no"].map(|text| log_record(an_hour(), text))).await.unwrap();
    stream.append(&["no", "yes 1"].map(|text| log_record(an_hour(), text))).await.unwrap();

    assert_eq!(next(&mut responses).await.unwrap(), ["yes 1"]);
    let too_many = proto::TailRecordsRequest {
        stream: stream.name(),
        start: Some(Start::Last(10_001)),
        ..Default::default()
    };
    let error = world.logs().tail_records(too_many).await.map(drop).unwrap_err();
    assert_eq!(CallError::of(&error).fields, ["last"]);
}
