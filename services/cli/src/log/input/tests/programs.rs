//! Lines of known programs, and names of fields that the command line gives.

use trestle_proto::opentelemetry::proto::common::v1::any_value::Value as Kind;

use super::*;

fn named(time: &str, severity: &str, body: &str) -> FieldNames {
    let name = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    FieldNames { time: name(time), severity: name(severity), body: name(body) }
}

fn parse_by(names: FieldNames, format: LineFormat, line: &str) -> Record {
    let parser = LineParser { names, ..parser(format) };
    parser.parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}")).remove(0).record
}

fn text(text: &str) -> Option<AnyValue> {
    Some(any_value::of_text(text))
}

#[test]
fn an_entry_of_the_journal_has_its_time_its_message_and_its_severity() {
    let line = r#"{"__REALTIME_TIMESTAMP":"1769846400000001","MESSAGE":"hello","PRIORITY":"3","_PID":"1",
        "_SYSTEMD_UNIT":"a.service","__CURSOR":"c","level":"debug","EMPTY":null}"#;
    let record = parse(LineFormat::Json, line);
    assert_eq!((record.time_unix_nano, record.body), (EIGHT + 1000, text("hello")));
    assert_eq!((record.severity_number, record.severity_text.as_str()), (17, "err"));
    let expected =
        json!({ "_PID": "1", "_SYSTEMD_UNIT": "a.service", "__CURSOR": "c", "level": "debug" });
    let record = parse(LineFormat::Json, line);
    assert_eq!(attributes(&record), expected);
    // A clock that was not set when the machine started.
    let early = parse(LineFormat::Json, r#"{"__REALTIME_TIMESTAMP":"1500000","MESSAGE":"x"}"#);
    assert_eq!(early.time_unix_nano, 1_500_000_000);
    let numbers = [(0, 21), (1, 19), (2, 18), (3, 17), (4, 13), (5, 10), (6, 9), (7, 5)];
    for (priority, number) in numbers {
        let line = json!({ "__REALTIME_TIMESTAMP": 1, "PRIORITY": priority }).to_string();
        assert_eq!(parse(LineFormat::Json, &line).severity_number, number);
    }
    let other = parse(LineFormat::Json, r#"{"__REALTIME_TIMESTAMP":"1","PRIORITY":"8"}"#);
    assert_eq!((other.severity_number, attributes(&other)), (0, json!({ "PRIORITY": "8" })));
    let rule = reject(LineFormat::Json, r#"{"__REALTIME_TIMESTAMP":"noon"}"#);
    assert!(rule.contains("must be microseconds since 1970"), "{rule}");
}

#[test]
fn a_value_of_the_journal_is_a_text_in_each_of_its_forms() {
    let body = |message: &str| {
        let line = format!("{{\"__REALTIME_TIMESTAMP\":\"1\",\"MESSAGE\":{message}}}");
        parse(LineFormat::Json, &line).body
    };
    assert_eq!(body("[27,91,109,195,169]"), text("\u{1b}[mé"));
    let bytes = AnyValue { value: Some(Kind::BytesValue(vec![255, 0].into())) };
    assert_eq!(body("[255,0]"), Some(bytes));
    // A field that is there twice.
    assert_eq!(body("[\"a\",[98,99],null]"), Some(any_value::of_json(json!(["a", "bc", null]))));
    assert_eq!(body("null"), None);
}

#[test]
fn an_event_of_serilog_has_its_fields() {
    let line = r#"{"@t":"2026-01-31T08:00:00.0000001Z","@mt":"Hello {User}","@m":"Hello me","@l":"Warning",
        "@x":"System.Exception: no","@tr":"000102030405060708090a0b0c0d0e0f","@sp":"0000000000000001",
        "@i":"f00d","User":"me","@@t":"at","message":"own"}"#;
    let record = parse(LineFormat::Json, line);
    assert_eq!((record.time_unix_nano, &record.body), (EIGHT + 100, &text("Hello me")));
    assert_eq!((record.severity_number, record.severity_text.as_str()), (13, "Warning"));
    assert_eq!((record.trace_id.len(), record.span_id.len()), (16, 8));
    let expected = json!({
        "@mt": "Hello {User}", "@x": "System.Exception: no", "@i": "f00d", "User": "me", "@t": "at",
        "message": "own",
    });
    assert_eq!(attributes(&record), expected);
    // Without a rendered message, and with the level that is left out.
    let record =
        parse(LineFormat::Json, r#"{"@t":"2026-01-31T08:00:00Z","@mt":"Hello {User}","User":1}"#);
    assert_eq!(record.body, text("Hello {User}"));
    assert_eq!((record.severity_number, record.severity_text.as_str()), (9, "Information"));
    assert_eq!(attributes(&record), json!({ "User": 1 }));
}

#[test]
fn a_line_of_docker_has_its_text_without_its_end() {
    for end in ["", "\\n", "\\r\\n"] {
        let line = format!(
            r#"{{"log":"line one{end}","stream":"stderr","attrs":{{"a":"b"}},"time":"2026-01-31T08:00:00.000000001Z"}}"#
        );
        let record = parse(LineFormat::Json, &line);
        assert_eq!((record.time_unix_nano, &record.body), (EIGHT + 1, &text("line one")));
        assert_eq!(attributes(&record), json!({ "stream": "stderr", "attrs": { "a": "b" } }));
    }
}

#[test]
fn a_line_that_only_resembles_one_of_a_program_is_read_by_the_usual_names() {
    for line in [
        r#"{"log":{"level":"info"},"stream":"stdout","time":"2026-01-31T08:00:00Z","msg":"m"}"#,
        r#"{"log":"a","stream":"news","time":"2026-01-31T08:00:00Z","msg":"m"}"#,
        r#"{"@t":5,"MESSAGE":"a","time":"2026-01-31T08:00:00Z","msg":"m"}"#,
    ] {
        let record = parse(LineFormat::Json, line);
        assert_eq!((record.time_unix_nano, record.body), (EIGHT, text("m")), "{line}");
    }
}

#[test]
fn given_names_have_precedence_over_the_usual_ones_and_programs() {
    let line = r#"{"time":"never","created":1769846400,"log":{"level":"error","file":"a"},"msg":"m","phrase":"s"}"#;
    let record = parse_by(named("created", "log.level", "phrase"), LineFormat::Json, line);
    assert_eq!((record.time_unix_nano, &record.body), (EIGHT, &text("s")));
    assert_eq!((record.severity_number, record.severity_text.as_str()), (17, "error"));
    assert_eq!(attributes(&record), json!({ "time": "never", "log": { "file": "a" }, "msg": "m" }));
    // Nothing remains of an object that had only this field.
    let line = r#"{"time":1769846400,"log":{"level":"warn"},"msg":"m"}"#;
    let record = parse_by(named("time", "log.level", "msg"), LineFormat::Json, line);
    assert_eq!((record.severity_number, record.attributes.len()), (13, 0));
    // A name with a point, and one that the line does not have.
    let line = r#"{"log.level":30,"time":1769846400,"msg":"m"}"#;
    let record = parse_by(named("created", "log.level", "phrase"), LineFormat::Json, line);
    assert_eq!((record.time_unix_nano, record.severity_number), (EIGHT, 9));
    assert_eq!((record.body, record.attributes.len()), (text("m"), 0));

    let journal =
        r#"{"__REALTIME_TIMESTAMP":"1","SENT":"1769846400000000","MESSAGE":"m","TEXT":"t"}"#;
    let record = parse_by(named("SENT", "", "TEXT"), LineFormat::Json, journal);
    assert_eq!((record.time_unix_nano, &record.body), (EIGHT, &text("t")));
    assert_eq!(attributes(&record), json!({ "__REALTIME_TIMESTAMP": "1", "MESSAGE": "m" }));

    let printed = r#"{"time":"2026-01-31T07:00:00Z","body":"b","severity_number":9,"attributes":{},"at":1769846400}"#;
    let record = parse_by(named("at", "", ""), LineFormat::Json, printed);
    assert_eq!((record.time_unix_nano, record.body), (EIGHT, text("b")));

    let line = "at=1769846400 time=never pri=warn text=\"a b\" msg=c";
    let record = parse_by(named("at", "pri", "text"), LineFormat::Logfmt, line);
    assert_eq!((record.time_unix_nano, record.severity_number), (EIGHT, 13));
    assert_eq!(
        (&record.body, attributes(&record)),
        (&text("a b"), json!({ "time": "never", "msg": "c" }))
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_message() {
    for line in [
        "<13>1 - - - - - - \u{FEFF}hi",
        "<13>1 - host app - - [a b=\"c\"] \u{FEFF}hi",
        "<13>Jan 31 08:00:00 host app: \u{FEFF}hi",
    ] {
        assert_eq!(parse(LineFormat::Syslog, line).body, text("hi"), "{line}");
    }
}

#[test]
fn a_parameter_of_syslog_that_is_there_twice_is_a_list() {
    let line =
        r#"<165>1 2026-01-31T08:00:00Z h a - - [origin ip="1" x="y" ip="2"][origin ip="3"] two"#;
    let attributes = attributes(&parse(LineFormat::Syslog, line));
    assert_eq!(
        (&attributes["origin.ip"], &attributes["origin.x"]),
        (&json!(["1", "2", "3"]), &json!("y"))
    );
}

#[test]
fn a_priority_over_191_gives_no_severity_and_no_facility() {
    for priority in ["192", "255", "999", "99999999999999999999999"] {
        for rest in ["1 2026-01-31T08:00:00Z host app - - - x", "Jan 31 08:00:00 host app: x"] {
            let record = parse(LineFormat::Syslog, &format!("<{priority}>{rest}"));
            assert_eq!((record.time_unix_nano, &record.body), (EIGHT, &text("x")), "{rest}");
            assert_eq!((record.severity_number, record.severity_text.as_str()), (0, ""));
            let expected = json!({ "hostname": "host", "appname": "app", "priority": priority });
            assert_eq!(attributes(&record), expected);
        }
    }
    let greatest = parse(LineFormat::Syslog, "<191>1 2026-01-31T08:00:00Z host app - - - x");
    assert_eq!(
        (greatest.severity_number, &attributes(&greatest)["facility"]),
        (5, &json!("local7"))
    );
}

#[test]
fn a_time_of_syslog_may_have_an_offset_without_a_colon() {
    for line in [
        "<13>1 2026-01-31T09:00:00.5+0100 host app - - - x",
        "1 2026-01-31T09:00:00.5+0100 host app - - - x",
        "<13>2026-01-31T02:30:00.5-0530 host app: x",
        "<13>1 2026-01-31T09:00:00.5+01:00 host app - - - x",
    ] {
        let record = parse(LineFormat::Syslog, line);
        assert_eq!(
            (record.time_unix_nano, &record.body),
            (EIGHT + 500_000_000, &text("x")),
            "{line}"
        );
    }
}
