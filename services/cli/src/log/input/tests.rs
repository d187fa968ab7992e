mod hostile;
mod programs;
mod round_trip;

use chrono::{DateTime, FixedOffset};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::log::print;

/// 2026-01-31T08:00:00Z.
const EIGHT: u64 = 1_769_846_400_000_000_000;

fn parser(format: LineFormat) -> LineParser {
    let now = DateTime::parse_from_rfc3339("2026-03-01T12:00:00Z").unwrap().to_utc();
    let times = TimeRules { offset: FixedOffset::east_opt(0).unwrap(), now };
    let origin = Arc::new(RecordOrigin {
        resource: vec![("service.name".to_owned(), any_value::of_text("test"))],
        scope: None,
    });
    LineParser { format, pattern: None, times, names: FieldNames::default(), origin }
}

fn parse(format: LineFormat, line: &str) -> Record {
    let mut parsed =
        parser(format).parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(parsed.len(), 1);
    parsed.remove(0).record
}

fn reject(format: LineFormat, line: &str) -> String {
    parser(format).parse(line.as_bytes()).expect_err(line)
}

fn attributes(record: &Record) -> Value {
    record.attributes.iter().map(|(key, value)| (key.clone(), any_value::json(value))).collect()
}

#[test]
fn json_has_the_usual_names() {
    let record = parse(
        LineFormat::Json,
        r#"{"@timestamp":"2026-01-31T08:00:00Z","level":"Warning","msg":"hi","traceId":
           "000102030405060708090a0b0c0d0e0f","span_id":"0000000000000001","n":5,"o":{"a":[1]},"x":null}"#,
    );
    assert_eq!(record.time_unix_nano, EIGHT);
    assert_eq!((record.severity_number, record.severity_text.as_str()), (13, "Warning"));
    assert_eq!(record.body, Some(any_value::of_text("hi")));
    assert_eq!((record.trace_id.len(), record.span_id.len()), (16, 8));
    assert_eq!(attributes(&record), json!({ "n": 5, "o": { "a": [1] } }));
}

#[test]
fn json_fields_of_another_form_are_attributes() {
    let line = r#"{"ts":1769846400,"level":30,"message":"a","msg":"b","trace_id":"x","value":1,"sequence":2,
                  "time":"later","span_id":"0000000000000000","resource":{"a":1}}"#;
    let record = parse(LineFormat::Json, line);
    assert_eq!((record.time_unix_nano, record.severity_number), (EIGHT, 9));
    let expected = json!({
        "msg": "b", "trace_id": "x", "value": 1, "sequence": 2, "time": "later",
        "span_id": "0000000000000000", "resource": { "a": 1 },
    });
    assert_eq!(attributes(&record), expected);
    let point = parse(LineFormat::Json, r#"{"event_name":"cpu","value":0.5}"#);
    assert_eq!((point.value, point.event_name.as_str()), (Some(0.5), "cpu"));
}

#[test]
fn printed_json_is_read_back() {
    let record = Record {
        time_unix_nano: EIGHT + 1,
        observed_time_unix_nano: EIGHT + 2,
        severity_number: 18,
        severity_text: "CRIT".to_owned(),
        body: Some(any_value::of_json(json!({ "a": 1 }))),
        attributes: [("time".to_owned(), any_value::of_text("noon"))].into(),
        trace_id: vec![7; 16].into(),
        span_id: vec![8; 8].into(),
        event_name: "e".to_owned(),
        value: Some(2.5),
        resource: [("service.name".to_owned(), any_value::of_text("s"))].into(),
        sequence: 9,
        ..Record::default()
    };
    let line = print::object(&record).to_string();
    let parsed = parser(LineFormat::Json).parse(line.as_bytes()).unwrap().remove(0);
    assert_eq!(parsed.origin.resource, [("service.name".to_owned(), any_value::of_text("s"))]);
    // The server sets them again.
    let expected = Record { resource: Default::default(), sequence: 0, ..record };
    assert_eq!(parsed.record, expected);
}

#[test]
fn malformed_json_is_rejected() {
    for (line, problem) in [
        ("oops", "syntax error at column 1"),
        ("[1]", "must be an object"),
        ("{", "it ends before it is complete"),
        ("é {", "syntax error at column 1"),
    ] {
        let expected = format!("must be a JSON object: {problem}");
        assert_eq!(reject(LineFormat::Json, line), expected, "{line}");
    }
    let time = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"noon"}]}]}]}"#;
    for (line, problem) in [
        ("oops", "syntax error at column 1"),
        (r#"{"resourceLogs":1}"#, "resourceLogs: must be a list: value=`1`"),
        (time, "timeUnixNano: must be a whole number: value=`noon`"),
    ] {
        let expected = format!("must be an export request of OpenTelemetry: {problem}");
        assert_eq!(reject(LineFormat::OtlpJson, line), expected, "{line}");
    }
    assert!(reject(LineFormat::Json, r#"{"time":"noon"}"#).contains("must be RFC 3339"));
}

#[test]
fn text_is_the_body_or_follows_a_time() {
    assert_eq!(parse(LineFormat::Text, " a b").body, Some(any_value::of_text(" a b")));
    let pattern = Some(timestamp_pattern("%Y-%m-%d %H:%M:%S").unwrap());
    let parser = LineParser { pattern, ..parser(LineFormat::Text) };
    let line = b"2026-01-31 08:00:00 status installed dash:amd64 0.5";
    let record = parser.parse(line).unwrap().remove(0).record;
    assert_eq!(record.time_unix_nano, EIGHT);
    assert_eq!(record.body, Some(any_value::of_text("status installed dash:amd64 0.5")));
    assert!(parser.parse(b"no time").unwrap_err().contains("must begin with a time"));
    assert!(parser.parse(b"\xff").unwrap_err().contains("UTF-8"));
    for pattern in ["%Q", "", " "] {
        assert!(timestamp_pattern(pattern).is_err(), "{pattern}");
    }
}

#[test]
fn syslog_of_both_standards_is_read() {
    let new =
        "<34>1 2026-01-31T08:00:00.000001Z host app 77 ID47 [ex@1 a=\"b \\\"c\\\"\"] it failed";
    let record = parse(LineFormat::Syslog, new);
    assert_eq!(record.time_unix_nano, EIGHT + 1000);
    assert_eq!((record.severity_number, record.severity_text.as_str()), (18, "crit"));
    assert_eq!(record.body, Some(any_value::of_text("it failed")));
    let expected = json!({
        "facility": "auth", "hostname": "host", "appname": "app", "proc_id": "77", "msg_id": "ID47",
        "ex@1.a": "b \"c\"",
    });
    assert_eq!(attributes(&record), expected);
    for old in
        ["<13>Jan 31 08:00:00 host app[77]: it failed", "Jan 31 08:00:00 host app[77]: it failed"]
    {
        let record = parse(LineFormat::Syslog, old);
        assert_eq!(record.time_unix_nano, EIGHT, "{old}");
        assert_eq!(record.body, Some(any_value::of_text("it failed")), "{old}");
        assert_eq!(attributes(&record)["proc_id"], "77", "{old}");
    }
    reject(LineFormat::Syslog, "neither");
}

#[test]
fn logfmt_has_the_names_of_json() {
    let line = "ts=2026-01-31T08:00:00Z level=error msg=\"it failed\" status=503 path=/a";
    let record = parse(LineFormat::Logfmt, line);
    assert_eq!((record.time_unix_nano, record.severity_number), (EIGHT, 17));
    assert_eq!(record.body, Some(any_value::of_text("it failed")));
    assert_eq!(attributes(&record), json!({ "path": "/a", "status": 503 }));
}

#[test]
fn otlp_has_origins_and_every_kind_of_value() {
    let line = json!({ "resourceLogs": [{
        "resource": { "attributes": [{ "key": "host", "value": { "stringValue": "h" } }] },
        "scopeLogs": [{ "scope": { "name": "s", "version": "1" }, "logRecords": [
            { "timeUnixNano": EIGHT.to_string(), "severityNumber": 9, "body": { "stringValue": "a" },
              "traceId": "000102030405060708090A0B0C0D0E0F", "attributes": [
                { "key": "i", "value": { "intValue": "-5" } },
                { "key": "d", "value": { "doubleValue": 1.5 } },
                { "key": "t", "value": { "boolValue": true } },
                { "key": "b", "value": { "bytesValue": "AP8=" } },
                { "key": "l", "value": { "arrayValue": { "values": [{ "intValue": 1 }] } } },
                { "key": "m", "value": { "kvlistValue": { "values": [{ "key": "k" }] } } },
              ] },
            { "timeUnixNano": EIGHT },
        ] }],
    }] });
    let parsed = parser(LineFormat::OtlpJson).parse(line.to_string().as_bytes()).unwrap();
    assert_eq!(parsed.len(), 2);
    assert_eq!((parsed[0].record.time_unix_nano, parsed[1].record.time_unix_nano), (EIGHT, EIGHT));
    let expected =
        json!({ "i": -5, "d": 1.5, "t": true, "b": "AP8=", "l": [1], "m": { "k": null } });
    assert_eq!(attributes(&parsed[0].record), expected);
    assert_eq!(parsed[0].record.trace_id.len(), 16);
    let origin = &parsed[0].origin;
    assert_eq!(origin.scope.as_ref().unwrap().name, "s");
    // The resource of the command line is added.
    let keys: Vec<_> = origin.resource.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["host", "service.name"]);
    for line in [
        "{}",
        r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"x"}]}]}]}"#,
        r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"intValue":"x"}}]}]}]}"#,
    ] {
        reject(LineFormat::OtlpJson, line);
    }
}

#[test]
fn a_record_of_otlp_with_an_invalid_id_is_kept_without_it() {
    for (members, trace, span) in [
        (r#""traceId":"00","spanId":"0000000000000001""#, 0, 8),
        (r#""traceId":"000102030405060708090a0b0c0d0e0f","spanId":"x""#, 16, 0),
        (r#""traceId":"00000000000000000000000000000000","spanId":null"#, 0, 0),
    ] {
        let line =
            format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{{members}}}]}}]}}]}}"#);
        let record = parse(LineFormat::OtlpJson, &line);
        assert_eq!((record.trace_id.len(), record.span_id.len()), (trace, span), "{members}");
    }
}

#[test]
fn prefixes_of_request_ids_are_bounded() {
    assert!(request_id_prefix(&"a".repeat(31)).is_ok());
    for text in [String::new(), "a".repeat(32)] {
        assert!(request_id_prefix(&text).is_err());
    }
}

proptest! {
    #[test]
    fn arbitrary_lines_never_panic(line in ".*") {
        for format in LineFormat::value_variants() {
            if let Err(rule) = parser(*format).parse(line.as_bytes()) {
                prop_assert!(!rule.is_empty());
            }
        }
    }
}
