//! Reading records by time.

use tonic::Code;
use trestle_proto::{
    log::v1::{self as proto, Record},
    opentelemetry::proto::common::v1::{AnyValue, any_value::Value},
};
use trestle_tests::{LogStream, World, log_record, log_scenario, log_texts};

use super::{SECOND, an_hour};

log_scenario!(
    a_time_range_is_read_across_segments_and_unsealed_records,
    a_read_continues_behind_its_resume_token,
    a_filter_and_fields_select_records_and_columns,
    segments_are_listed_with_their_bounds,
    rejects_reads_that_make_no_sense,
);

/// A stream with the records 0 to 9, a second apart: sealed in two segments, and unsealed.
async fn ten(world: &World) -> LogStream {
    let stream = world.log_stream("web").await;
    for (round, times) in [vec![0, 4, 8], vec![1, 5, 9], vec![2, 3, 6, 7]].into_iter().enumerate() {
        let record = |time: &u64| Record {
            severity_number: i32::try_from(*time).unwrap() + 1,
            attributes: [(
                "even".to_owned(),
                AnyValue { value: Some(Value::BoolValue(time.is_multiple_of(2))) },
            )]
            .into(),
            ..log_record(an_hour() + time * SECOND, &time.to_string())
        };
        let records: Vec<_> = times.iter().map(record).collect();
        stream.append(&records).await.unwrap();
        if round < 2 {
            stream.flush().await.unwrap();
        }
    }
    stream
}

fn time(second: u64) -> Option<prost_types::Timestamp> {
    let seconds = i64::try_from(an_hour() / SECOND + second).unwrap();
    Some(prost_types::Timestamp { seconds, nanos: 0 })
}

fn names(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    numbers.into_iter().map(|number| number.to_string()).collect()
}

async fn a_time_range_is_read_across_segments_and_unsealed_records(world: &World) {
    let stream = ten(world).await;
    for (from, to) in [(0, 10), (2, 8), (4, 5), (9, 11), (5, 5)] {
        let request = |direction: proto::ReadDirection| proto::ReadRecordsRequest {
            start_time: time(from),
            end_time: time(to),
            direction: direction.into(),
            ..stream.reading()
        };
        let forward = stream.read_with(request(proto::ReadDirection::Forward)).await.unwrap();
        let backward = stream.read_with(request(proto::ReadDirection::Backward)).await.unwrap();

        let expected: Vec<_> = (from..to.min(10)).collect();
        assert_eq!(log_texts(&forward.records), names(expected.clone()), "{from} to {to}");
        let count = expected.len() as u64;
        assert_eq!(log_texts(&backward.records), names(expected.into_iter().rev()));
        assert_eq!(forward.cost.records_returned, count);
        assert!(forward.cost.records_scanned >= count);
    }
    let all = stream.read().await.unwrap();
    assert_eq!((all.cost.segments, all.cost.records_scanned), (2, 10));
    assert!(all.cost.bytes > 0);
}

async fn a_read_continues_behind_its_resume_token(world: &World) {
    let stream = ten(world).await;
    for direction in [proto::ReadDirection::Forward, proto::ReadDirection::Backward] {
        let all = proto::ReadRecordsRequest { direction: direction.into(), ..stream.reading() };
        let expected = log_texts(&stream.read_with(all.clone()).await.unwrap().records);
        let limited = proto::ReadRecordsRequest { limit: 4, ..all.clone() };
        let first = stream.read_with(limited).await.unwrap();
        stream.flush().await.unwrap();
        let rest = proto::ReadRecordsRequest { resume_token: first.resume_token.clone(), ..all };
        let second = stream.read_with(rest.clone()).await.unwrap();

        assert_eq!([log_texts(&first.records), log_texts(&second.records)].concat(), expected);
        let other = proto::ReadRecordsRequest { filter: "severity gt 1".to_owned(), ..rest };
        let error = stream.read_with(other).await.unwrap_err();
        assert_eq!(
            (error.code, error.fields),
            (Code::InvalidArgument, vec!["resume_token".into()])
        );
    }
}

async fn a_filter_and_fields_select_records_and_columns(world: &World) {
    let stream = ten(world).await;
    let read = async |filter: &str, fields: &[&str]| {
        let paths = fields.iter().map(|field| (*field).to_owned()).collect();
        let request = proto::ReadRecordsRequest {
            filter: filter.to_owned(),
            fields: Some(prost_types::FieldMask { paths }),
            ..stream.reading()
        };
        stream.read_with(request).await.unwrap().records
    };

    let severe = read("severity ge 9", &[]).await;
    assert_eq!(log_texts(&severe), ["8", "9"]);
    let even = read("attributes/even eq true and severity lt 6", &["body"]).await;
    assert_eq!(log_texts(&even), ["0", "2", "4"]);
    assert!(even.iter().all(|record| record.attributes.is_empty() && record.severity_number == 0));
    let contains = read("contains(body, '7') or body eq '1'", &["sequence"]).await;
    let sequences: Vec<_> = contains.iter().map(|record| record.sequence).collect();
    assert_eq!(sequences, [3, 9]);
    assert!(contains.iter().all(|record| record.body.is_none()));
    assert_eq!(read("attributes/absent eq 1", &[]).await, []);
}

async fn segments_are_listed_with_their_bounds(world: &World) {
    let stream = ten(world).await;
    let segments = stream.segments().await.unwrap();
    assert_eq!(segments.len(), 2);
    let first = &segments[0];
    assert_eq!((first.min_time, first.max_time), (time(0), time(8)));
    assert_eq!((first.records, first.min_sequence, first.max_sequence), (3, 0, 2));
    let date = first.url.split('/').find(|part| part.starts_with("date=")).unwrap();
    assert_eq!(date.len(), "date=2026-11-25".len());
    assert!(first.url.contains("/stream=web/") && first.url.ends_with(".parquet"), "{first:?}");
    if let Some(path) = first.url.strip_prefix("file://") {
        assert_eq!(std::fs::metadata(path).unwrap().len(), first.bytes);
    }
    let request = proto::ListSegmentsRequest {
        stream: stream.name(),
        start_time: time(9),
        ..Default::default()
    };
    let late = world.logs().list_segments(request).await.unwrap().into_inner();
    assert_eq!(late.segments, segments[1..]);
    let stats = stream.get().await.unwrap().stats.unwrap();
    assert_eq!((stats.segments, stats.segment_records, stats.unsealed_records), (2, 6, 4));
    assert_eq!(stats.segment_bytes, segments.iter().map(|it| it.bytes).sum::<u64>());
    assert_eq!(stats.snapshot, late.snapshot);
}

async fn rejects_reads_that_make_no_sense(world: &World) {
    let stream = ten(world).await;
    let reading = || stream.reading();
    let mask = |path: &str| Some(prost_types::FieldMask { paths: vec![path.to_owned()] });
    for (request, field) in [
        (proto::ReadRecordsRequest { filter: "severity gt".into(), ..reading() }, "filter"),
        (proto::ReadRecordsRequest { filter: "colour eq 'red'".into(), ..reading() }, "filter"),
        (proto::ReadRecordsRequest { fields: mask("bodies"), ..reading() }, "fields"),
        (proto::ReadRecordsRequest { resume_token: "x".into(), ..reading() }, "resume_token"),
        (proto::ReadRecordsRequest { direction: 9, ..reading() }, "direction"),
        (proto::ReadRecordsRequest { stream: "A".into(), ..reading() }, "stream"),
    ] {
        let error = stream.read_with(request).await.unwrap_err();
        assert_eq!((error.code, error.fields), (Code::InvalidArgument, vec![field.to_owned()]));
    }
}
