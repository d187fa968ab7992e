//! Streams of appends that end with an error: what is durable is acknowledged before it.

use futures::{StreamExt as _, stream};
use proto::append_stream_response::Outcome;

use super::*;

/// More than are in flight at a time.
const APPENDS: u64 = 40;

fn request(id: u64) -> proto::AppendStreamRequest {
    let append = append_of("web", &[record(id * crate::fixture::SECOND, &id.to_string())]);
    proto::AppendStreamRequest { append: Some(append), append_id: id }
}

/// The ids of acknowledged appends and the error at the end, of appends with `last` behind them.
async fn acknowledged(last: Result<proto::AppendStreamRequest, Status>) -> (Vec<u64>, Status) {
    let api = api();
    create(&api, "web").await;
    let (access, ()) = enter(Request::new(()), LogNeed::Append).unwrap();
    let requests = (0..APPENDS).map(request).map(Ok).chain([last, Ok(request(APPENDS))]);
    let mut responses =
        append_stream::acknowledge(api.clone(), access, stream::iter(requests.collect::<Vec<_>>()));
    let (mut ids, mut error) = (Vec::new(), None);
    while let Some(response) = responses.next().await {
        assert!(error.is_none(), "the error is the last one");
        match response {
            Ok(response) => {
                assert!(matches!(response.outcome, Some(Outcome::Appended(_))), "{response:?}");
                ids.push(response.append_id);
            }
            Err(status) => error = Some(status),
        }
    }
    let stored = records_of(&read(&api, read_of("web")).await.unwrap());
    assert_eq!(stored.len(), ids.len(), "what is stored is acknowledged");
    (ids, error.expect("an error"))
}

#[tokio::test]
async fn appends_before_an_invalid_request_are_acknowledged_before_its_error() {
    let without = proto::AppendStreamRequest { append: None, append_id: 7 };
    let (ids, status) = acknowledged(Ok(without)).await;
    assert!(ids.into_iter().eq(0..APPENDS));
    assert_eq!(
        (status.code(), violated(&status)),
        (Code::InvalidArgument, vec!["append".to_owned()])
    );
}

#[tokio::test]
async fn appends_before_a_broken_request_are_acknowledged_before_its_error() {
    let (ids, status) = acknowledged(Err(Status::resource_exhausted("too large"))).await;
    assert!(ids.into_iter().eq(0..APPENDS));
    assert_eq!(status.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn a_shutdown_ends_streams_of_appends_behind_the_last_acknowledgement() {
    let api = api();
    create(&api, "web").await;
    let (access, ()) = enter(Request::new(()), LogNeed::Append).unwrap();
    let requests = stream::iter((0..3).map(request).map(Ok)).chain(stream::pending());
    let mut responses = append_stream::acknowledge(api.clone(), access.clone(), requests);
    for id in 0..3 {
        assert_eq!(responses.next().await.unwrap().unwrap().append_id, id);
    }

    api.logs().shutdown.cancel();

    let status = responses.next().await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(responses.next().await.is_none());
    let later = stream::iter([Ok(request(9))]).chain(stream::pending());
    let mut later = append_stream::acknowledge(api, access, later);
    assert_eq!(later.next().await.unwrap().unwrap_err().code(), Code::Unavailable);
}
