//! Lines that no well-behaved program writes: each is a record or the rule that it breaks.

use proptest::{collection::vec, sample::select};

use super::*;

const FORMATS: [LineFormat; 5] = [
    LineFormat::Json,
    LineFormat::OtlpJson,
    LineFormat::Text,
    LineFormat::Syslog,
    LineFormat::Logfmt,
];

#[test]
fn bytes_that_are_not_utf8_are_rejected_in_every_format() {
    for format in FORMATS {
        let rule = parser(format).parse(b"{\"a\":\"\xff\"}").unwrap_err();
        assert!(rule.contains("must be UTF-8"), "{format:?}: {rule}");
    }
}

#[test]
fn values_that_are_nested_too_deep_are_rejected_without_recursion_errors() {
    for depth in [127, 200, 100_000] {
        let line = format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(
            reject(LineFormat::Json, &line).contains("is nested too deep at column "),
            "{depth}"
        );
        let nested = "{\"arrayValue\":{\"values\":[".repeat(depth);
        let line =
            format!("{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{nested}");
        assert!(
            reject(LineFormat::OtlpJson, &line).contains("is nested too deep at column "),
            "{depth}"
        );
    }
    let line = format!("{{\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(parse(LineFormat::Json, &line).attributes.len(), 1);
}

#[test]
fn of_a_key_that_occurs_twice_the_last_value_is_kept() {
    assert_eq!(attributes(&parse(LineFormat::Json, r#"{"a":1,"a":2}"#)), json!({ "a": 2 }));
    assert_eq!(attributes(&parse(LineFormat::Logfmt, "a=1 a=2")), json!({ "a": 2 }));
    // A second body or time is an attribute.
    let record = parse(LineFormat::Logfmt, "msg=one message=two body=three");
    assert_eq!(record.body, Some(any_value::of_text("one")));
    assert_eq!(attributes(&record), json!({ "message": "two", "body": "three" }));
    let record = parse(LineFormat::Json, r#"{"time":1769846400,"ts":"x"}"#);
    assert_eq!((record.time_unix_nano, attributes(&record)), (EIGHT, json!({ "ts": "x" })));
}

#[test]
fn json_numbers_keep_their_value_or_become_doubles() {
    let line = r#"{"a":9223372036854775807,"b":9223372036854775808,"c":-0.0,"d":1e308,"e":0}"#;
    let record = parse(LineFormat::Json, line);
    let expected =
        json!({ "a": i64::MAX, "b": 9_223_372_036_854_775_808.0, "c": -0.0, "d": 1e308, "e": 0 });
    assert_eq!(attributes(&record), expected);
    assert!(reject(LineFormat::Json, r#"{"a":1e400}"#).contains("must be a JSON object"));
}

#[test]
fn empty_and_odd_objects_are_records() {
    for (line, expected) in [
        ("{}", json!({})),
        (r#"{"a":null,"time":null,"body":null}"#, json!({})),
        (r#"{"":1}"#, json!({ "": 1 })),
        (r#"{"attributes":[1]}"#, json!({ "attributes": [1] })),
        (r#"{"attributes":{},"resource":5,"scope":5}"#, json!({ "resource": 5, "scope": 5 })),
        (r#"{"level":"","severity":[1]}"#, json!({ "level": "", "severity": [1] })),
        (r#"{"level":99,"event_name":5}"#, json!({ "level": 99, "event_name": 5 })),
    ] {
        let record = parse(LineFormat::Json, line);
        assert_eq!(record.time_unix_nano, 0, "{line}");
        // An empty name of a severity is as good as none.
        let found = match attributes(&record) {
            Value::Object(mut found) if line.contains("\"level\":\"\"") => {
                found.entry("level").or_insert(json!(""));
                Value::Object(found)
            }
            found => found,
        };
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn ids_are_hexadecimal_of_their_length_and_not_zero() {
    let with_trace = |text: &str| parse(LineFormat::Logfmt, &format!("trace_id={text}"));
    let id = "0af7651916cd43dd8448eb211c80319c";
    assert_eq!(with_trace(id).trace_id.len(), 16);
    assert_eq!(with_trace(&id.to_uppercase()).trace_id, with_trace(id).trace_id);
    let zeros = "0".repeat(32);
    let signed = format!("+{}", &id[1..]);
    for text in [&id[1..], &zeros, &signed, "0af7651916cd43dd8448eb211c80319g", "é"] {
        let record = with_trace(text);
        assert!(record.trace_id.is_empty(), "{text}");
        assert_eq!(attributes(&record), json!({ "trace_id": text }));
    }
}

#[test]
fn otlp_has_many_origins_and_empty_ones() {
    let line = json!({ "resourceLogs": [
        {},
        { "scopeLogs": [] },
        { "scopeLogs": [{ "logRecords": [] }, { "logRecords": [{}] }] },
        { "resource": {}, "scopeLogs": [
            { "scope": { "attributes": [{ "key": "k" }] }, "logRecords": [{ "eventName": "e" }, {}] },
        ] },
    ] });
    let parsed = parser(LineFormat::OtlpJson).parse(line.to_string().as_bytes()).unwrap();
    assert_eq!(parsed.len(), 3);
    assert_eq!(parsed[0].record, Record::default());
    assert_eq!(parsed[1].record.event_name, "e");
    assert!(
        Arc::ptr_eq(&parsed[1].origin, &parsed[2].origin) || parsed[1].origin == parsed[2].origin
    );
    assert_eq!(parsed[1].origin.scope.as_ref().unwrap().attributes.len(), 1);
    for (line, part) in [
        (r#"{"resourceMetrics":[]}"#, "resourceLogs"),
        (r#"{"resourceLogs":{}}"#, "resourceLogs: must be a list"),
        (
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"bytesValue":"?"}}]}]}]}"#,
            "bytesValue",
        ),
        (
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":-1}]}]}]}"#,
            "timeUnixNano: must be from 0 to 18446744073709551615: value=`-1`",
        ),
        (
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"severityNumber":3e9}]}]}]}"#,
            "severityNumber: must be from -2147483648 to 2147483647: value=`3000000000`",
        ),
        (
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"doubleValue":"x"}}]}]}]}"#,
            "must be a number",
        ),
    ] {
        let rule = reject(LineFormat::OtlpJson, line);
        assert!(rule.contains(part), "{line}: {rule}");
    }
    let special =
        r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"doubleValue":"NaN"}}]}]}]}"#;
    let record = parser(LineFormat::OtlpJson).parse(special.as_bytes()).unwrap().remove(0).record;
    assert_eq!(any_value::text(&record.body.unwrap()), "NaN");
}

#[test]
fn syslog_without_a_time_or_with_an_odd_one_is_read_or_rejected() {
    // RFC 5424 has a mark for a time that is not known: the server sets that of its receipt.
    let record = parse(LineFormat::Syslog, "<165>1 - - - - - - started");
    assert_eq!((record.time_unix_nano, record.severity_number), (0, 10));
    assert_eq!(record.body, Some(any_value::of_text("started")));
    for line in [
        "",
        "<",
        "<13>",
        "<13>no time",
        "<>1 2026-01-31T08:00:00Z host app - - - x",
        "<-1>1 2026-01-31T08:00:00Z host app - - - x",
        "<13>Feb 30 08:00:00 host app: x",
        "<13>1 1960-01-01T00:00:00Z host app - - - x",
        "<13>1 9999-01-01T00:00:00Z host app - - - x",
    ] {
        let parsed = parser(LineFormat::Syslog).parse(line.as_bytes());
        assert!(parsed.is_err(), "{line}: {parsed:?}");
    }
}

#[test]
fn logfmt_reads_what_go_programs_write() {
    let line = r#"time="2026-01-31T08:00:00Z" level=warning msg="a=b \"c\"" err= dur=1.5ms n=1e3 f=.5 neg=-0"#;
    let record = parse(LineFormat::Logfmt, line);
    assert_eq!((record.time_unix_nano, record.severity_number), (EIGHT, 13));
    assert_eq!(record.body, Some(any_value::of_text("a=b \"c\"")));
    let expected = json!({ "err": "", "dur": "1.5ms", "n": "1e3", "f": 0.5, "neg": "-0" });
    assert_eq!(attributes(&record), expected);
    for line in ["\"quoted\"", "=", "a=\"", "a=\"\\", "\"\"=1"] {
        assert!(!reject(LineFormat::Logfmt, line).is_empty(), "{line}");
    }
}

#[test]
fn a_pattern_that_reads_no_whole_time_rejects_its_lines() {
    for (pattern, line) in [
        ("%H:%M:%S", "08:00:00 x"),
        ("%Y", "2026 x"),
        ("%s", "-5 x"),
        ("%s", "99999999999999 x"),
        ("%Y-%m-%d %H:%M:%S %z", "2026-01-31 08:00:00 +9999 x"),
        ("%Y-%m-%d %H:%M:%S", "2555-01-01 00:00:00 x"),
    ] {
        let pattern = Some(timestamp_pattern(pattern).unwrap());
        let parser = LineParser { pattern: pattern.clone(), ..parser(LineFormat::Text) };
        assert!(parser.parse(line.as_bytes()).is_err(), "{pattern:?}: {line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn pieces_of_real_lines_in_any_order_never_panic(
        pieces in vec(
            select(&[
                "{", "}", "[", "]", "\"", ":", ",", "\"time\"", "\"level\"", "\"attributes\"", "1769846400",
                "\"value\"", "\"event_name\"", "null", "-1", "1e99", "<13>", "1 ", "Jan 31 08:00:00 ", "Feb 29 ",
                "2026-01-31T08:00:00Z ", "host ", "app[77]: ", "- ", "[ex@1 a=\"b\"]", "time=", "msg=", "\\", "é",
                "{\"resourceLogs\":[", "{\"scopeLogs\":[", "{\"logRecords\":[", "}]", "\u{0}",
            ][..]),
            0..14,
        ),
        now in 0..4_000_000_000_i64,
    ) {
        let line = pieces.concat();
        for format in FORMATS {
            let mut parser = parser(format);
            parser.times.now = DateTime::from_timestamp(now, 0).unwrap();
            match parser.parse(line.as_bytes()) {
                Ok(records) => {
                    for ParsedRecord { record, .. } in records {
                        prop_assert!(matches!(record.trace_id.len(), 0 | 16));
                        prop_assert!((0..=24).contains(&record.severity_number));
                    }
                }
                Err(rule) => prop_assert!(!rule.is_empty()),
            }
        }
    }

    #[test]
    fn printed_records_are_read_back(
        time in 1..9_000_000_000_000_000_000_u64,
        severity in 0..=24_i32,
        texts in ("[a-zA-Z ]{0,8}", "\\PC{0,12}", "[a-z.]{0,6}"),
        value in proptest::option::of(any::<f64>()),
        keys in proptest::collection::btree_map("[a-z.]{1,5}", "\\PC{0,5}", 0..4),
    ) {
        let record = Record {
            time_unix_nano: time,
            severity_number: severity,
            severity_text: texts.0,
            body: Some(any_value::of_text(texts.1)),
            event_name: texts.2,
            value,
            attributes: keys.into_iter().map(|(key, text)| (key, any_value::of_text(text))).collect(),
            ..Record::default()
        };
        let line = print::object(&record).to_string();

        let read = parser(LineFormat::Json).parse(line.as_bytes()).unwrap().remove(0).record;

        // By text, since NaN does not equal itself.
        prop_assert_eq!(format!("{read:?}"), format!("{record:?}"), "{}", line);
    }

    #[test]
    fn times_of_patterns_and_json_are_those_that_were_written(
        seconds in 0..9_000_000_000_i64,
        nanos in 0..1_000_000_000_u32,
        hours in -12..=14_i32,
    ) {
        let offset = FixedOffset::east_opt(hours * 3600).unwrap();
        let time = DateTime::from_timestamp(seconds, nanos).unwrap();
        let expected = time.timestamp_nanos_opt().map(|nanos| nanos as u64).unwrap();
        let local = time.with_timezone(&offset);
        let mut parser = parser(LineFormat::Text);
        parser.times.offset = offset;
        parser.pattern = Some(timestamp_pattern("%Y-%m-%d %H:%M:%S%.f").unwrap());

        let line = local.format("%Y-%m-%d %H:%M:%S%.9f x").to_string();
        let record = parser.parse(line.as_bytes()).unwrap().remove(0).record;
        prop_assert_eq!(record.time_unix_nano, expected, "{}", line);

        parser.format = LineFormat::Json;
        for text in [local.to_rfc3339(), local.format("%Y-%m-%dT%H:%M:%S%.f").to_string()] {
            let line = json!({ "time": text }).to_string();
            let record = parser.parse(line.as_bytes()).unwrap().remove(0).record;
            prop_assert_eq!(record.time_unix_nano, expected, "{}", line);
        }
    }

    #[test]
    fn a_time_without_a_year_is_within_the_last_year(
        now in 100_000_000..9_000_000_000_i64,
        ago in 0..360_i64,
    ) {
        let mut parser = parser(LineFormat::Syslog);
        parser.times.now = DateTime::from_timestamp(now, 0).unwrap();
        let time = parser.times.now - chrono::Duration::days(ago);

        let line = time.format("%b %e %H:%M:%S host app: x").to_string();
        let record = parser.parse(line.as_bytes()).unwrap().remove(0).record;

        let expected = time.timestamp_nanos_opt().unwrap() as u64;
        prop_assert_eq!(record.time_unix_nano, expected, "{}", line);
    }
}
