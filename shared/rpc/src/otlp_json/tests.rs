//! The forms of ProtoJSON, and what is malformed.

use std::fmt::Debug;

use prost::Message;
use trestle_proto::opentelemetry::proto::{
    common::v1::{AnyValue, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs},
    metrics::v1::{ResourceMetrics, metric::Data, number_data_point},
    trace::v1::ResourceSpans,
};

use super::*;
use trestle_model::json_error::json_problem;

const BYTES_MAX: usize = 1 << 20;

/// A request, whose one field is the repeated message `T`.
#[derive(Clone, PartialEq, Message)]
struct Request<T: Message + Default + Debug> {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<T>,
}

fn read<T: Message + Default + Debug>(request: OtlpRequest, json: &str) -> Vec<T> {
    let bytes = to_protobuf(request, json, BYTES_MAX).unwrap_or_else(|error| panic!("{error:?}"));
    Request::decode(bytes.as_slice()).unwrap().resources
}

/// The record whose members are `members`.
fn record(members: &str) -> LogRecord {
    let json =
        format!("{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{{members}}}]}}]}}]}}");
    let mut resources: Vec<ResourceLogs> = read(OtlpRequest::Logs, &json);
    resources[0].scope_logs[0].log_records.remove(0)
}

fn body(json: &str) -> Option<Value> {
    record(&format!("\"body\":{json}")).body.and_then(|body| body.value)
}

fn problem(json: &str) -> String {
    match to_protobuf(OtlpRequest::Logs, json, BYTES_MAX) {
        Err(OtlpJsonError::Malformed(error)) => json_problem(json, &error),
        other => panic!("{other:?}: {json}"),
    }
}

fn text(text: &str) -> Option<Value> {
    Some(Value::StringValue(text.to_owned()))
}

/// Whether both forms are read as the same record, which is not an empty one.
fn assert_same(form: &str, other: &str) {
    assert_eq!(record(form), record(other), "{form} {other}");
    assert_ne!(record(form), LogRecord::default(), "{form}");
}

#[test]
fn names_of_fields_have_two_forms_and_unknown_ones_are_ignored() {
    assert_same("\"timeUnixNano\":5", "\"time_unix_nano\":5,\"more\":{\"a\":[1,{}]},\"\\ud800\":1");
    let camel = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"7"}]}],"schemaUrl":"s"}]}"#;
    let snake = r#"{"resource_spans":[{"scope_spans":[{"spans":[{"start_time_unix_nano":7}]}],"schema_url":"s"}]}"#;
    let spans: Vec<ResourceSpans> = read(OtlpRequest::Traces, camel);
    assert_eq!(spans[0].scope_spans[0].spans[0].start_time_unix_nano, 7);
    assert_eq!(spans, read::<ResourceSpans>(OtlpRequest::Traces, snake));
}

#[test]
fn null_is_the_default_of_every_field_and_element() {
    let members = [
        "timeUnixNano",
        "severityNumber",
        "severityText",
        "body",
        "attributes",
        "flags",
        "traceId",
        "spanId",
        "droppedAttributesCount",
        "eventName",
    ];
    for member in members {
        assert_eq!(record(&format!("\"{member}\":null")), LogRecord::default(), "{member}");
    }
    for request in [OtlpRequest::Logs, OtlpRequest::Metrics, OtlpRequest::Traces] {
        for json in ["{}", r#"{"resourceLogs":null,"resourceMetrics":null,"resourceSpans":null}"#] {
            assert_eq!(to_protobuf(request, json, BYTES_MAX).unwrap(), [0; 0], "{json}");
        }
    }
    // A field of a choice that is null is not chosen.
    assert_eq!(
        body(r#"{"stringValue":null,"intValue":"0","boolValue":null}"#),
        Some(Value::IntValue(0))
    );
    let Some(Value::ArrayValue(array)) =
        body(r#"{"arrayValue":{"values":[{"boolValue":false},null]}}"#)
    else {
        panic!("a list")
    };
    assert_eq!(array.values.len(), 2);
    assert_eq!(array.values[1], AnyValue::default());
}

#[test]
fn numbers_are_numbers_or_text() {
    for form in ["9007199254740993", "\"9007199254740993\""] {
        assert_eq!(
            record(&format!("\"timeUnixNano\":{form}")).time_unix_nano,
            9_007_199_254_740_993
        );
    }
    for form in ["3", "3.0", "3e0", "\"3\"", "\"3.0\"", "\"3e0\""] {
        assert_eq!(record(&format!("\"flags\":{form}")).flags, 3, "{form}");
        assert_eq!(body(&format!("{{\"intValue\":{form}}}")), Some(Value::IntValue(3)), "{form}");
        assert_eq!(
            body(&format!("{{\"doubleValue\":{form}}}")),
            Some(Value::DoubleValue(3.0)),
            "{form}"
        );
    }
    assert_eq!(
        body(&format!("{{\"intValue\":\"{}\"}}", i64::MIN)),
        Some(Value::IntValue(i64::MIN))
    );
    for (form, value) in
        [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)]
    {
        let Some(Value::DoubleValue(read)) = body(&format!("{{\"doubleValue\":\"{form}\"}}"))
        else {
            panic!("a double")
        };
        assert_eq!(read.total_cmp(&value), std::cmp::Ordering::Equal, "{form}");
    }
}

#[test]
fn enums_have_a_name_or_a_number() {
    for form in ["17", "\"SEVERITY_NUMBER_ERROR\"", "\"17\"", "17.0"] {
        assert_eq!(record(&format!("\"severityNumber\":{form}")).severity_number, 17, "{form}");
    }
    assert_eq!(record("\"severityNumber\":\"LATER\"").severity_number, 0);
    let json = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"SPAN_KIND_SERVER",
        "status":{"code":"STATUS_CODE_ERROR"}}]}]}]}"#;
    let spans: Vec<ResourceSpans> = read(OtlpRequest::Traces, json);
    let span = &spans[0].scope_spans[0].spans[0];
    assert_eq!((span.kind, span.status.as_ref().unwrap().code), (2, 2));
}

#[test]
fn bytes_are_base64_of_either_alphabet_and_ids_hexadecimal() {
    for form in ["+/8=", "+/8", "-_8=", "-_8"] {
        let expected = Some(Value::BytesValue(vec![0xFB, 0xFF].into()));
        assert_eq!(body(&format!("{{\"bytesValue\":\"{form}\"}}")), expected, "{form}");
    }
    assert_eq!(body("{\"bytesValue\":\"\"}"), Some(Value::BytesValue(bytes::Bytes::new())));
    let read =
        record(r#""traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"eee19b7ec3c1b174""#);
    assert_eq!((read.trace_id[..2].to_vec(), read.trace_id.len()), (vec![0x5B, 0x8E], 16));
    assert_eq!((read.span_id[7], read.span_id.len()), (0x74, 8));
    assert!(record("\"traceId\":\"\"").trace_id.is_empty());
    // Malformed: of no valid length, so that the service treats it as such an id.
    for id in ["00", "abc", "W47/95gDgQPSabYzgT/GDA==", "zz8efff798038103d269b633813fc60c", "éé"]
    {
        assert_eq!(record(&format!("\"traceId\":\"{id}\"")).trace_id.len(), 1, "{id}");
    }
}

#[test]
fn points_have_packed_lists_and_the_value_that_is_chosen() {
    let json = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[
        {"name":"h","histogram":{"aggregationTemporality":"AGGREGATION_TEMPORALITY_DELTA","dataPoints":[
            {"count":"3","sum":1.5,"bucketCounts":["1","2",null],"explicitBounds":[0.5,"1"]}]}},
        {"name":"e","exponentialHistogram":{"dataPoints":[
            {"scale":-2,"positive":{"offset":-300,"bucketCounts":[1,"18446744073709551615"]}}]}},
        {"name":"g","gauge":{"dataPoints":[{"asInt":"-5"},{"asDouble":0}]}}]}]}]}"#;
    let resources: Vec<ResourceMetrics> = read(OtlpRequest::Metrics, json);
    let metrics = &resources[0].scope_metrics[0].metrics;

    let Some(Data::Histogram(histogram)) = &metrics[0].data else { panic!("{metrics:?}") };
    let point = &histogram.data_points[0];
    assert_eq!((histogram.aggregation_temporality, point.count, point.sum), (1, 3, Some(1.5)));
    assert_eq!((&*point.bucket_counts, &*point.explicit_bounds), (&[1, 2, 0][..], &[0.5, 1.0][..]));
    let Some(Data::ExponentialHistogram(histogram)) = &metrics[1].data else {
        panic!("{metrics:?}")
    };
    let point = &histogram.data_points[0];
    let buckets = point.positive.as_ref().unwrap();
    assert_eq!(
        (point.scale, buckets.offset, &*buckets.bucket_counts),
        (-2, -300, &[1, u64::MAX][..])
    );
    let Some(Data::Gauge(gauge)) = &metrics[2].data else { panic!("{metrics:?}") };
    let values = gauge.data_points.iter().map(|point| point.value.unwrap());
    let expected = [number_data_point::Value::AsInt(-5), number_data_point::Value::AsDouble(0.0)];
    assert_eq!(values.collect::<Vec<_>>(), expected);
}

#[test]
fn half_a_character_is_replaced_and_the_text_kept() {
    assert_eq!(body(r#"{"stringValue":"a\ud83d"}"#), text("a\u{FFFD}"));
    assert_eq!(body(r#"{"stringValue":"\ude00é\ud83d\ude00"}"#), text("\u{FFFD}é😀"));
    assert_eq!(record("\"attributes\":[{\"key\":\"\\ud83d\"}]").attributes[0].key, "\u{FFFD}");
}

#[test]
fn messages_of_any_length_have_it() {
    for length in [0, 100, 127, 128, 20_000] {
        let long = "x".repeat(length);
        assert_eq!(body(&format!("{{\"stringValue\":\"{long}\"}}")), text(&long));
    }
}

#[test]
fn a_problem_names_its_field_value_and_rule() {
    let of = |members: &str| {
        problem(&format!(
            "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{{members}}}]}}]}}]}}"
        ))
    };
    for (found, expected) in [
        (problem("oops"), "syntax error at column 1"),
        (problem("[]"), "must be an object"),
        (problem("null"), "must be an object"),
        (problem("{\"resourceLogs\":"), "it ends before it is complete"),
        (problem("{} {}"), "syntax error at column 4"),
        (problem(r#"{"resourceLogs":1}"#), "resourceLogs: must be a list: value=`1`"),
        (of("\"timeUnixNano\":\"noon\""), "timeUnixNano: must be a whole number: value=`noon`"),
        (
            of("\"timeUnixNano\":-1"),
            "timeUnixNano: must be from 0 to 18446744073709551615: value=`-1`",
        ),
        (of("\"flags\":1.5"), "flags: must be a whole number: value=`1.5`"),
        (of("\"severityText\":5"), "severityText: must be text: value=`5`"),
        (of("\"severityText\":[]"), "severityText: must be text"),
        (of("\"body\":\"a\""), "body: must be an object: value=`a`"),
        (of("\"body\":{\"boolValue\":\"true\"}"), "boolValue: must be true or false: value=`true`"),
        (of("\"severityNumber\":{}"), "severityNumber: must be a name or a whole number"),
    ] {
        assert_eq!(found, expected);
    }
    assert!(of("\"body\":{\"bytesValue\":\"?\"}").starts_with("bytesValue: must be base64: "));
    let nested = "{\"arrayValue\":{\"values\":[".repeat(200);
    assert!(of(&format!("\"body\":{nested}")).contains("is nested too deep at column "));
}

#[test]
fn a_message_over_the_limit_is_rejected_before_it_is_written() {
    // Four bytes of a message for each byte of JSON.
    let zeros = vec!["0"; 1000].join(",");
    let json = format!(
        "{{\"resourceMetrics\":[{{\"scopeMetrics\":[{{\"metrics\":[{{\"histogram\":{{\"dataPoints\":[{{\
         \"bucketCounts\":[{zeros}]}}]}}}}]}}]}}]}}"
    );
    let read = |bytes_max| to_protobuf(OtlpRequest::Metrics, &json, bytes_max);
    assert!(read(9000).is_ok());
    assert!(matches!(read(8000), Err(OtlpJsonError::TooLarge)));
    assert!(matches!(read(100), Err(OtlpJsonError::TooLarge)));
}

#[test]
fn null_elements_and_empty_lists_count_against_the_limit() {
    for (request, json, bytes) in [
        (OtlpRequest::Logs, r#"{"resourceLogs":[null,null,null]}"#, 6),
        (OtlpRequest::Logs, r#"{"resourceLogs":[{"scopeLogs":[null,null]}]}"#, 6),
        (OtlpRequest::Logs, r#"{"resourceLogs":[{"entityRefs":[],"scopeLogs":[]}]}"#, 2),
        (
            OtlpRequest::Metrics,
            r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"histogram":{"dataPoints":[
                {"bucketCounts":[null,null]}]}}]}]}]}"#,
            28,
        ),
        (
            OtlpRequest::Metrics,
            r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"histogram":{"dataPoints":[
                {"bucketCounts":[]}]}}]}]}]}"#,
            12,
        ),
    ] {
        assert_eq!(to_protobuf(request, json, bytes).unwrap().len(), bytes, "{json}");
        for bytes_max in 0..bytes {
            let result = to_protobuf(request, json, bytes_max);
            assert!(
                matches!(result, Err(OtlpJsonError::TooLarge)),
                "{json} {bytes_max}: {result:?}"
            );
        }
    }
}

#[test]
fn whole_numbers_are_exact_or_an_error() {
    let int = |form: &str| body(&format!("{{\"intValue\":{form}}}"));
    for (form, value) in [
        ("-9223372036854775808", i64::MIN),
        ("\"-9223372036854775808\"", i64::MIN),
        ("9223372036854775807", i64::MAX),
        ("\"9223372036854775807\"", i64::MAX),
        ("-0", 0),
        ("\"-0\"", 0),
        ("-1e3", -1000),
    ] {
        assert_eq!(int(form), Some(Value::IntValue(value)), "{form}");
    }
    for (form, value) in [
        ("-9223372036854775809", "-9.223372036854776e18"),
        ("\"-9223372036854775809\"", "-9223372036854775809"),
        ("9223372036854775808", "9223372036854775808"),
        ("\"9223372036854775808\"", "9223372036854775808"),
        ("-1e19", "-10000000000000000000"),
    ] {
        let json = format!(
            "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{{\"intValue\":{form}}}}}]}}]}}]}}"
        );
        let expected = format!(
            "intValue: must be from -9223372036854775808 to 9223372036854775807: value=`{value}`"
        );
        assert_eq!(problem(&json), expected, "{form}");
    }
}

#[test]
fn doubles_in_text_are_finite_numbers_or_the_three_names() {
    let json = |form: &str| {
        format!(
            "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{{\"doubleValue\":{form}}}}}]}}]}}]}}"
        )
    };
    for form in ["1e999", "-1e999", "inf", "-inf", "nan", "infinity", "INFINITY", "+Infinity", ""] {
        let expected = format!("doubleValue: must be a number: value=`{form}`");
        assert_eq!(problem(&json(&format!("\"{form}\""))), expected);
    }
    for (form, value) in [("\"-0\"", -0.0_f64), ("-0", -0.0), ("\"-0.0\"", -0.0), ("\"0\"", 0.0)] {
        let Some(Value::DoubleValue(read)) = body(&format!("{{\"doubleValue\":{form}}}")) else {
            panic!("{form}")
        };
        assert_eq!(read.to_bits(), value.to_bits(), "{form}");
    }
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    fn assert_decodes<T: Message + Default + Debug>(request: OtlpRequest, json: &str) {
        match to_protobuf(request, json, BYTES_MAX) {
            Ok(bytes) => assert!(Request::<T>::decode(bytes.as_slice()).is_ok(), "{json}"),
            Err(OtlpJsonError::Malformed(error)) => assert!(!json_problem(json, &error).is_empty()),
            Err(OtlpJsonError::TooLarge) => panic!("{json}"),
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_message_that_decodes_or_malformed(
            pieces in prop::collection::vec(prop::sample::select(&[
                "{", "}", "[", "]", ":", ",", "null", "1", "-1e3", "true", "\"a\"", "\"1\"", "\"\\ud800\"",
                "\"resourceLogs\":[", "{\"scopeLogs\":[", "{\"logRecords\":[", "\"body\":", "\"attributes\":[",
                "\"resourceSpans\":[", "{\"scopeSpans\":[", "{\"spans\":[", "\"kind\":", "\"key\":", "\"value\":",
                "\"resourceMetrics\":[", "{\"scopeMetrics\":[", "{\"metrics\":[", "\"traceId\":", "\"intValue\":",
                "\"arrayValue\":{\"values\":[", "\"bytesValue\":", "\"bucketCounts\":[", "}]",
            ][..]), 0..24),
            json in ".{0,16}",
        ) {
            for json in [pieces.concat(), json] {
                assert_decodes::<ResourceLogs>(OtlpRequest::Logs, &json);
                assert_decodes::<ResourceMetrics>(OtlpRequest::Metrics, &json);
                assert_decodes::<ResourceSpans>(OtlpRequest::Traces, &json);
            }
        }
    }
}
