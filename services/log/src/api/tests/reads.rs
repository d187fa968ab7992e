//! Reads and appends through the interface.

use super::*;
use crate::fixture::{SECOND, START, texts};

#[tokio::test]
async fn a_read_in_parts_is_the_whole_read() {
    let api = filled(250).await;
    for direction in [proto::ReadDirection::Forward, proto::ReadDirection::Backward] {
        let request = proto::ReadRecordsRequest { direction: direction.into(), ..read_of("web") };
        let whole = records_of(&read(&api, request.clone()).await.unwrap());
        assert_eq!(whole.len(), 250);

        let (mut parts, mut resume_token) = (Vec::new(), String::new());
        loop {
            let part = proto::ReadRecordsRequest { limit: 37, resume_token, ..request.clone() };
            let responses = read(&api, part).await.unwrap();
            let records = records_of(&responses);
            if records.is_empty() {
                break;
            }
            resume_token = responses.last().unwrap().resume_token.clone();
            parts.extend(records);
        }
        assert_eq!(parts, whole, "{direction:?}");
    }
}

#[tokio::test]
async fn the_first_response_is_small_and_each_has_the_cost_so_far() {
    let api = filled(2_400).await;

    let responses = read(&api, read_of("web")).await.unwrap();

    let counts: Vec<_> = responses.iter().map(|response| response.records.len()).collect();
    assert_eq!(counts, [100, 1_000, 1_000, 300, 0]);
    let costs: Vec<_> = responses.iter().map(|response| response.cost.unwrap()).collect();
    let returned: Vec<_> = costs.iter().map(|cost| cost.records_returned).collect();
    assert_eq!(returned, [100, 1_100, 2_100, 2_400, 2_400]);
    let last = costs.last().unwrap();
    assert_eq!((last.segments, last.records_scanned), (1, 2_400));
    assert!(last.bytes > 0 && costs.windows(2).all(|pair| pair[0].bytes <= pair[1].bytes));
}

#[tokio::test]
async fn a_limit_a_window_and_a_filter_narrow_a_read_and_its_cost() {
    let api = filled(100).await;
    let at = |second: i64| {
        let seconds = i64::try_from(START / SECOND).unwrap() + second;
        Some(prost_types::Timestamp { seconds, nanos: 0 })
    };
    let limited = proto::ReadRecordsRequest { limit: 3, ..read_of("web") };
    assert_eq!(texts(&records_of(&read(&api, limited).await.unwrap())), ["0", "1", "2"]);

    let window =
        proto::ReadRecordsRequest { start_time: at(48), end_time: at(52), ..read_of("web") };
    let found = records_of(&read(&api, window.clone()).await.unwrap());
    assert_eq!(texts(&found), ["48", "49", "50", "51"]);

    let filtered = proto::ReadRecordsRequest { filter: "body eq '50'".to_owned(), ..window };
    assert_eq!(texts(&records_of(&read(&api, filtered).await.unwrap())), ["50"]);

    // A condition on the time is a window: no segment is read.
    let time =
        Some(at(50).unwrap()).map(|time| format!("time ge datetime'{}'", rfc3339(time.seconds)));
    let by_time = proto::ReadRecordsRequest { filter: time.unwrap(), ..read_of("web") };
    let responses = read(&api, by_time).await.unwrap();
    assert_eq!(records_of(&responses).len(), 50);
    let cost = responses.last().unwrap().cost.unwrap();
    assert_eq!((cost.segments, cost.bytes), (0, 0));
}

fn rfc3339(seconds: i64) -> String {
    let ticks = trestle_model::time::Ticks::from_unix(seconds, 0).unwrap();
    trestle_model::etag::format_time(ticks)
}

#[tokio::test]
async fn a_projection_returns_the_selected_fields_of_sealed_and_unsealed_records() {
    let api = filled(4).await;
    let paths = vec!["body".to_owned(), "sequence".to_owned()];
    let fields = Some(prost_types::FieldMask { paths });
    let request = proto::ReadRecordsRequest { fields, ..read_of("web") };

    let records = records_of(&read(&api, request).await.unwrap());

    assert_eq!(texts(&records), ["0", "1", "2", "3"]);
    for (sequence, record) in (0..).zip(&records) {
        let expected = Record { sequence, body: record.body.clone(), ..Record::default() };
        assert_eq!(*record, expected);
    }
}

#[tokio::test]
async fn a_read_that_returned_nothing_continues_where_it_began() {
    let api = api();
    create(&api, "web").await;
    let last_token = |responses: &[proto::ReadRecordsResponse]| {
        responses.last().expect("a response").resume_token.clone()
    };
    let from = |resume_token| proto::ReadRecordsRequest { resume_token, ..read_of("web") };

    let first = last_token(&read(&api, read_of("web")).await.unwrap());
    append(&api, append_of("web", &[record(0, "a"), record(SECOND, "b")])).await.unwrap();
    let found = read(&api, from(first.clone())).await.unwrap();
    assert_eq!(texts(&records_of(&found)), ["a", "b"]);

    let behind = last_token(&found);
    let nothing = read(&api, from(behind.clone())).await.unwrap();
    assert!(records_of(&nothing).is_empty());
    assert_eq!(last_token(&nothing), behind);
    append(&api, append_of("web", &[record(2 * SECOND, "c")])).await.unwrap();
    assert_eq!(texts(&records_of(&read(&api, from(behind)).await.unwrap())), ["c"]);
    let other = proto::ReadRecordsRequest { filter: "true".to_owned(), ..from(first) };
    assert_eq!(violated(&read(&api, other).await.unwrap_err()), ["resume_token"]);
}

#[tokio::test]
async fn a_resume_token_belongs_to_its_read() {
    let api = filled(10).await;
    create(&api, "other").await;
    let limited = proto::ReadRecordsRequest { limit: 2, ..read_of("web") };
    let resume_token = read(&api, limited).await.unwrap()[0].resume_token.clone();
    assert!(!resume_token.is_empty());
    let with =
        |request| proto::ReadRecordsRequest { resume_token: resume_token.clone(), ..request };
    // The fields and the limit may differ.
    let other_limit = proto::ReadRecordsRequest { limit: 1, ..read_of("web") };
    assert_eq!(texts(&records_of(&read(&api, with(other_limit)).await.unwrap())), ["2"]);
    for other in [
        with(read_of("other")),
        with(proto::ReadRecordsRequest { filter: "true".to_owned(), ..read_of("web") }),
        with(proto::ReadRecordsRequest {
            direction: proto::ReadDirection::Backward.into(),
            ..read_of("web")
        }),
        with(proto::ReadRecordsRequest {
            end_time: Some(prost_types::Timestamp { seconds: 1, nanos: 0 }),
            ..read_of("web")
        }),
        proto::ReadRecordsRequest { resume_token: "!".to_owned(), ..read_of("web") },
        proto::ReadRecordsRequest { resume_token: "AAAA".to_owned(), ..read_of("web") },
    ] {
        let status = read(&api, other.clone()).await.expect_err("another read");
        assert_eq!(status.code(), Code::InvalidArgument, "{other:?}");
        assert_eq!(violated(&status), ["resume_token"], "{other:?}");
    }
}

#[tokio::test]
async fn every_violation_of_a_read_is_reported() {
    let api = filled(2).await;
    let request = proto::ReadRecordsRequest {
        start_time: Some(prost_types::Timestamp { seconds: 0, nanos: -1 }),
        direction: 7,
        filter: "level eq 1".to_owned(),
        fields: Some(prost_types::FieldMask { paths: vec!["message".to_owned()] }),
        resume_token: "!".to_owned(),
        ..read_of("web")
    };
    let status = read(&api, request).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    let fields = violated(&status);
    assert_eq!(fields, ["start_time", "direction", "fields", "resume_token", "filter"]);

    let status = read(&api, read_of("absent")).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(violated(&read(&api, read_of("")).await.unwrap_err()), ["stream"]);
}

#[tokio::test]
async fn a_scope_without_content_is_none_before_and_after_the_seal() {
    let api = api();
    create(&api, "web").await;
    // An empty name, no dropped attributes, and a field that the contract lacks.
    for scope in [&[0x0a, 0][..], &[0x20, 0], &[0x28, 5]] {
        let scope = Some(bytes::Bytes::from_static(scope));
        let append_of = append_of("web", &[record(0, "a")]);
        append(&api, proto::AppendRecordsRequest { scope, ..append_of }).await.unwrap();
    }

    let unsealed = records_of(&read(&api, read_of("web")).await.unwrap());
    let flush = proto::FlushStreamRequest { stream: "web".to_owned() };
    api.flush_stream(Request::new(flush)).await.unwrap();

    assert!(unsealed.iter().all(|record| record.scope.is_none()), "{unsealed:?}");
    assert_eq!(records_of(&read(&api, read_of("web")).await.unwrap()), unsealed);
}

#[tokio::test]
async fn an_append_is_rejected_as_a_whole_and_stores_nothing() {
    let api = api();
    create(&api, "web").await;
    let good = record(0, "good");
    let bad = Record { trace_id: vec![1].into(), ..record(0, "bad") };
    let long = proto::AppendRecordsRequest {
        request_id: "x".repeat(65),
        ..append_of("web", std::slice::from_ref(&good))
    };
    let none = append_of("Web", &[]);
    for (request, fields) in [
        (append_of("web", &[good.clone(), bad]), vec!["records[1].trace_id"]),
        (long, vec!["request_id"]),
        (none, vec!["stream", "records"]),
    ] {
        let status = append(&api, request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(violated(&status), fields);
    }
    let status = append(&api, append_of("absent", std::slice::from_ref(&good))).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let expecting = proto::AppendRecordsRequest {
        expected_next_sequence: Some(1),
        ..append_of("web", std::slice::from_ref(&good))
    };
    let status = append(&api, expecting).await.unwrap_err();
    assert_eq!(status.code(), Code::Aborted, "{status:?}");

    assert!(records_of(&read(&api, read_of("web")).await.unwrap()).is_empty());
    let with_id =
        proto::AppendRecordsRequest { request_id: "a".to_owned(), ..append_of("web", &[good]) };
    let first = append(&api, with_id.clone()).await.unwrap();
    let again = append(&api, with_id).await.unwrap();
    assert_eq!((first.first_sequence, first.count, first.is_repeated), (0, 1, false));
    assert_eq!(again, proto::AppendRecordsResponse { is_repeated: true, ..first });
    assert_eq!(records_of(&read(&api, read_of("web")).await.unwrap()).len(), 1);
}

#[tokio::test]
async fn a_tail_continues_where_an_earlier_one_ended() {
    use futures::StreamExt as _;
    use proto::tail_records_request::Start;

    let api = filled(6).await;
    let tail = async |start| {
        let request = proto::TailRecordsRequest {
            stream: "web".to_owned(),
            start,
            ..proto::TailRecordsRequest::default()
        };
        api.tail_records(Request::new(request)).await.map(Response::into_inner)
    };
    let mut last = tail(Some(Start::Last(3))).await.unwrap();
    let response = last.next().await.unwrap().unwrap();
    assert_eq!((response.records.len(), response.next_sequence), (3, 6));

    let mut resumed = tail(Some(Start::FromSequence(response.next_sequence))).await.unwrap();
    append(&api, append_of("web", &[record(0, "late")])).await.unwrap();
    for stream in [&mut last, &mut resumed] {
        let response = stream.next().await.unwrap().unwrap();
        assert_eq!((response.records.len(), response.next_sequence), (1, 7));
    }
    let status = tail(Some(Start::Last(10_001))).await.map(drop).unwrap_err();
    assert_eq!(violated(&status), ["last"]);

    // The position is known before the first record, so that none is missed after a lost connection.
    for start in [None, Some(Start::Last(0))] {
        let mut at_the_end = tail(start).await.unwrap();
        let response = at_the_end.next().await.unwrap().unwrap();
        assert_eq!((response.records.len(), response.next_sequence), (0, 7));
    }
    let mut waiting = tail(Some(Start::FromSequence(7))).await.unwrap();
    api.logs().shutdown.cancel();
    let status = waiting.next().await.unwrap().unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(waiting.next().await.is_none());
}
