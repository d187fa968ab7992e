//! Appending records.

use futures::{StreamExt as _, stream};
use prost::Message as _;
use tonic::Code;
use trestle_proto::{
    log::v1::{self as proto, Record, append_stream_response::Outcome},
    opentelemetry::proto::common::v1::{
        AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value::Value,
    },
};
use trestle_tests::{CallError, World, log_record, log_scenario, log_texts};

use super::{SECOND, an_hour};

log_scenario!(
    a_record_is_read_as_it_was_appended_before_and_after_it_is_sealed,
    appends_on_a_stream_are_acknowledged_in_order_and_fail_alone,
    a_repeated_append_and_a_stale_condition_append_nothing,
    rejects_records_that_violate_a_rule_with_their_index,
);

fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

/// A record with every field.
fn full(time: u64) -> Record {
    let values = vec![any(Value::IntValue(-1)), any(Value::StringValue("é".to_owned()))];
    let attributes = [
        ("text", Value::StringValue("a \"b\"\n".to_owned())),
        ("whole", Value::IntValue(i64::MIN)),
        ("floating", Value::DoubleValue(1.0)),
        ("not a number", Value::DoubleValue(f64::INFINITY)),
        ("yes", Value::BoolValue(true)),
        ("bytes", Value::BytesValue(vec![0, 255].into())),
        ("list", Value::ArrayValue(ArrayValue { values })),
    ];
    Record {
        time_unix_nano: time,
        observed_time_unix_nano: time + 1,
        severity_number: 17,
        severity_text: "ERROR".to_owned(),
        body: Some(any(Value::BytesValue(vec![1, 2, 3].into()))),
        attributes: attributes.map(|(key, value)| (key.to_owned(), any(value))).into(),
        dropped_attributes_count: 3,
        flags: 1,
        trace_id: (1..=16).collect::<Vec<u8>>().into(),
        span_id: (1..=8).collect::<Vec<u8>>().into(),
        event_name: "checkout.failed".to_owned(),
        value: Some(0.1),
        ..Record::default()
    }
}

async fn a_record_is_read_as_it_was_appended_before_and_after_it_is_sealed(world: &World) {
    let stream = world.log_stream("web").await;
    let service = KeyValue {
        key: "service.name".to_owned(),
        value: Some(any(Value::StringValue("web".to_owned()))),
    };
    let scope = InstrumentationScope { name: "lib".to_owned(), ..Default::default() };
    let request = proto::AppendRecordsRequest {
        resource: vec![service.encode_to_vec().into()],
        scope: Some(scope.encode_to_vec().into()),
        ..stream.appending(&[full(an_hour() + 123_456_789), Record::default()])
    };

    let appended = stream.append_with(request).await.unwrap();

    assert_eq!((appended.first_sequence, appended.count, appended.is_repeated), (0, 2, false));
    let unsealed = stream.read().await.unwrap().records;
    assert_eq!(stream.flush().await.unwrap().records, 2);
    let sealed = stream.read().await.unwrap().records;
    assert_eq!(unsealed, sealed);
    let expected = Record {
        resource: [("service.name".to_owned(), any(Value::StringValue("web".to_owned())))].into(),
        scope: Some(scope.clone()),
        ..full(an_hour() + 123_456_789)
    };
    assert_eq!(sealed[0], expected);
    assert!(sealed[1].time_unix_nano > sealed[0].time_unix_nano, "that of its arrival");
    assert_eq!(sealed[1].sequence, 1);
}

async fn appends_on_a_stream_are_acknowledged_in_order_and_fail_alone(world: &World) {
    let stream = world.log_stream("web").await;
    let request = |id: u64, name: &str, text: &str| {
        let append = stream.appending(&[log_record(an_hour() + id, text)]);
        let append = proto::AppendRecordsRequest { stream: name.to_owned(), ..append };
        proto::AppendStreamRequest { append: Some(append), append_id: id }
    };
    let requests: Vec<_> = (0..50)
        .map(|id| match id {
            0 => request(id, "web", "0"),
            7 => request(id, "absent", "7"),
            _ => request(id, "", &id.to_string()),
        })
        .collect();

    let called = stream.client().append_stream(stream::iter(requests)).await.unwrap();
    let responses: Vec<_> = called.into_inner().collect().await;

    let mut next = 0;
    for (id, response) in (0..50).zip(responses) {
        let response = response.unwrap();
        assert_eq!(response.append_id, id);
        match response.outcome.unwrap() {
            Outcome::Appended(appended) => {
                assert_eq!(appended.first_sequence, next);
                next += 1;
            }
            Outcome::Error(status) => {
                let error = CallError::of_item(&status);
                assert_eq!(error.kind(), (Code::NotFound, "LOG_STREAM_NOT_FOUND"));
                assert_eq!(id, 7);
            }
        }
    }
    assert_eq!(next, 49);
    let expected: Vec<_> = (0..50).filter(|id| *id != 7).map(|id| id.to_string()).collect();
    assert_eq!(log_texts(&stream.read().await.unwrap().records), expected);
}

async fn a_repeated_append_and_a_stale_condition_append_nothing(world: &World) {
    let stream = world.log_stream("web").await;
    let with_id = |text| proto::AppendRecordsRequest {
        request_id: "batch-1".to_owned(),
        ..stream.appending(&[log_record(an_hour(), text)])
    };
    let first = stream.append_with(with_id("a")).await.unwrap();
    stream.flush().await.unwrap();
    let again = stream.append_with(with_id("a")).await.unwrap();
    let stale = proto::AppendRecordsRequest {
        expected_next_sequence: Some(0),
        ..stream.appending(&[log_record(an_hour(), "b")])
    };
    let error = stream.append_with(stale).await.unwrap_err();

    assert_eq!((first.first_sequence, first.is_repeated), (0, false));
    assert_eq!((again.first_sequence, again.count, again.is_repeated), (0, 1, true));
    assert_eq!(error.kind(), (Code::Aborted, "SEQUENCE_CONDITION_NOT_MET"));
    assert_eq!(log_texts(&stream.read().await.unwrap().records), ["a"]);
}

async fn rejects_records_that_violate_a_rule_with_their_index(world: &World) {
    let stream = world.log_stream("web").await;
    let plain = || log_record(an_hour(), "x");
    let nested = (0..20).fold(any(Value::IntValue(1)), |value, _| {
        any(Value::ArrayValue(ArrayValue { values: vec![value] }))
    });
    let attributes =
        |count: usize| (0..count).map(|key| (key.to_string(), any(Value::IntValue(1)))).collect();
    let tomorrow = an_hour() + 3 * 86_400 * SECOND;
    for (record, reason, field) in [
        (Record { trace_id: vec![1; 15].into(), ..plain() }, "INVALID_RECORD", "trace_id"),
        (Record { trace_id: vec![0; 16].into(), ..plain() }, "INVALID_RECORD", "trace_id"),
        (Record { span_id: vec![1; 9].into(), ..plain() }, "INVALID_RECORD", "span_id"),
        (Record { severity_number: 25, ..plain() }, "INVALID_RECORD", "severity_number"),
        (Record { sequence: 7, ..plain() }, "INVALID_RECORD", "sequence"),
        (Record { body: Some(nested), ..plain() }, "INVALID_RECORD", "body"),
        (Record { attributes: attributes(1000), ..plain() }, "INVALID_RECORD", "attributes"),
        (log_record(tomorrow, "x"), "RECORD_TIME_OUT_OF_RANGE", "time_unix_nano"),
        (log_record(an_hour(), &"x".repeat(1_048_577)), "RECORD_TOO_LARGE", ""),
    ] {
        let error = stream.append(&[plain(), record]).await.unwrap_err();
        assert_eq!(error.kind(), (Code::InvalidArgument, reason), "{field}: {error:?}");
        let found = error.fields.first().map(String::as_str).unwrap_or_default();
        assert!(found.starts_with("records[1]") && found.contains(field), "{field}: {found}");
    }
    let none = stream.append(&[]).await.unwrap_err();
    assert_eq!(none.kind(), (Code::InvalidArgument, "OUT_OF_RANGE_INPUT"));
    let many = vec![Record::default(); 10_001];
    assert_eq!(stream.append(&many).await.unwrap_err().fields, ["records"]);
    assert_eq!(stream.append(&many[1..]).await.unwrap().count, 10_000);
    assert_eq!(stream.get().await.unwrap().stats.unwrap().next_sequence, 10_000);
}
