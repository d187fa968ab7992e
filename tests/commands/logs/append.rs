//! Files and standard input, as records.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::{TempDir, tempdir};
use trestle_tests::{Ended, Server};

use super::{bodies, lines, records, with_stream};
use crate::client::{run, trestle};

/// A file in a folder of its own, which is removed with the checkpoint beside the file.
pub(super) struct InputFile {
    path: PathBuf,
    _folder: TempDir,
}

impl InputFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// A file with this text.
pub(super) fn file(text: &str) -> InputFile {
    let folder = tempdir().unwrap();
    let path = folder.path().join("input");
    fs::write(&path, text).unwrap();
    InputFile { path, _folder: folder }
}

/// Appends a file to the stream `app`.
pub(super) fn append(server: &Server, file: &Path, args: &[&str]) -> Ended {
    run(server, &[&["log", "append", "app", file.to_str().unwrap()], args].concat())
}

/// The same, without an error.
pub(super) fn succeeds(server: &Server, file: &InputFile, args: &[&str]) -> Ended {
    let ended = append(server, file.path(), args);
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    ended
}

#[test]
fn every_format_is_appended() {
    let server = with_stream();
    let syslog = "<11>1 2026-01-31T08:00:00Z host app - - - a\n";
    let otlp = r#"{"resourceLogs":[{"resource":{"attributes":[
        {"key":"service.name","value":{"stringValue":"shop"}}]},
        "scopeLogs":[{"scope":{"name":"s"},"logRecords":[
        {"timeUnixNano":"1769846403000000000","body":{"stringValue":"d"}}]}]}]}"#;
    let otlp = &otlp.replace('\n', "");
    for (text, args) in [
        (syslog, &["--format", "syslog"][..]),
        ("ts=2026-01-31T08:00:02Z msg=c n=1\n", &["--format", "logfmt"]),
        (otlp, &["--format", "otlp-json", "--resource", "region=eu"]),
        (
            "2026-01-31 10:00:04,500 e\n",
            &[
                "--format",
                "text",
                "--timestamp-pattern",
                "%Y-%m-%d %H:%M:%S,%3f",
                "--utc-offset",
                "+02:00",
            ],
        ),
    ] {
        succeeds(&server, &file(text), args);
    }
    assert_eq!(bodies(&server, &["--since", "2026-01-31"])[..], ["a", "c", "d", "e"]);
    let read = records(&server, &["--filter", "body eq 'd'"]).remove(0);
    assert_eq!(
        (&read["resource"]["service.name"], &read["resource"]["region"]),
        (&"shop".into(), &"eu".into())
    );
    assert_eq!(read["scope"], "s");
    let filter = "resource/service.name eq 'shop' or attributes/hostname eq 'host'";
    assert_eq!(bodies(&server, &["--filter", filter]), ["a", "d"]);
    let e = records(&server, &["--filter", "body eq 'e'"]).remove(0);
    assert_eq!(e["time"], "2026-01-31T08:00:04.500Z");
}

#[test]
fn records_with_the_time_of_their_arrival_are_counted_once() {
    let server = with_stream();
    let lines = "{\"msg\":\"a\",\"at\":1769846400}\n{\"msg\":\"b\",\"at\":1769846401}\n\
                 {\"msg\":\"c\",\"time\":1769846402}\n";
    let input = file(lines);
    let name = input.path().to_str().unwrap();

    let without = succeeds(&server, &input, &[]);
    let report = "2 records without a time got the time of arrival: --time-field names the field that has it\n";
    assert_eq!(without.errors, format!("{name}: {report}"));
    let machine = succeeds(&server, &input, &["--json"]);
    let object: serde_json::Value = serde_json::from_str(&machine.errors).unwrap();
    assert_eq!((&object["without_time"], &object["file"]), (&2.into(), &name.into()));
    let quiet = succeeds(&server, &input, &["-q"]);
    assert_eq!(quiet.errors, "");
    let with = succeeds(&server, &input, &["--time-field", "at"]);
    assert_eq!(with.errors, "");

    let old = ["--since", "2026-01-31", "--until", "2026-02-01"];
    let mut found = bodies(&server, &old);
    found.sort_unstable();
    assert_eq!(found, ["a", "b", "c", "c", "c", "c"]);
    for format in ["text", "syslog", "otlp-json"] {
        let rejected = append(&server, input.path(), &["--format", format, "--body-field", "x"]);
        let rule = "--body-field is for --format json and logfmt";
        assert!(rejected.code == Some(2) && rejected.errors.contains(rule), "{rejected:?}");
    }
}

#[test]
fn standard_input_is_appended() {
    let server = with_stream();
    let mut command = trestle(&server, &["log", "append", "app", "--format", "text", "--json"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"one\n").unwrap();
    // Sent although the pipe is open.
    assert!(crate::client::becomes(|| bodies(&server, &[]) == ["one"]));
    input.write_all(b"two\n\n").unwrap();
    drop(input);
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(lines(&ended.output)[0]["appended"], 2, "{ended:?}");
    assert_eq!(bodies(&server, &[]), ["one", "two"]);
}

#[test]
fn many_batches_keep_their_order() {
    let server = with_stream();
    let text: String = (0..5000).map(|number| format!("{number}\n")).collect();
    let ended = succeeds(&server, &file(&text), &["--format", "text", "--batch", "100"]);
    assert_eq!(ended.output, "appended 5,000 records to app\n");
    let expected: Vec<_> = (0..5000).map(|number| number.to_string()).collect();
    let mut read = records(&server, &[]);
    read.sort_by_key(|record| record["sequence"].as_u64());
    let read: Vec<_> = read.iter().map(|record| record["body"].as_str().unwrap()).collect();
    assert_eq!(read, expected);
}

#[test]
fn malformed_and_rejected_lines_are_reported_and_the_others_appended() {
    let server = with_stream();
    let long = "x".repeat(1_048_577);
    let text = format!("{{\"msg\":\"a\"}}\noops\n{{\"msg\":\"{long}\"}}\n\n{{\"msg\":\"b\"}}\n");
    let input = file(&text);

    let ended = append(&server, input.path(), &[]);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.output, "appended 2 records to app, 2 lines rejected\n");
    let syntax = ":2: must be a JSON object: syntax error at column 1\n";
    assert!(ended.errors.contains(syntax), "{}", ended.errors);
    assert!(ended.errors.contains(":3: RECORD_TOO_LARGE"), "{}", ended.errors);
    assert_eq!(bodies(&server, &[]), ["a", "b"]);
}

#[test]
fn a_line_over_the_limit_is_reported_with_its_number_and_the_others_appended() {
    let server = with_stream();
    let long = "x".repeat(16 * 1024 * 1024);
    let input = file(&format!("a\n{long}\nb\n{long}"));
    let args = ["--format", "text", "--batch", "1"];

    let ended = append(&server, input.path(), &args);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.output, "appended 2 records to app, 2 lines rejected\n");
    // The last line is within the limit, but no record that fits into a request.
    for report in [":2: row is longer than 16777216 bytes", ":4: a record must have at most 1 MiB"]
    {
        assert!(ended.errors.contains(report), "{}", ended.errors);
    }
    assert_eq!(bodies(&server, &[]), ["a", "b"]);
    let strict = append(&server, input.path(), &[&args[..], &["--strict"]].concat());
    assert_eq!(strict.code, Some(1), "{strict:?}");
    assert!(strict.errors.contains(":2: row is longer"), "{}", strict.errors);
}

#[test]
fn an_append_of_the_same_prefix_is_repeated_without_records() {
    let server = with_stream();
    let input = file("one\ntwo\n");
    let args = ["--format", "text", "--request-id-prefix", "deploy-7"];
    assert_eq!(succeeds(&server, &input, &args).output, "appended 2 records to app\n");
    let again = succeeds(&server, &input, &args);
    assert_eq!(again.output, "appended 0 records to app, 2 appended before\n");
    succeeds(&server, &input, &["--format", "text"]);
    assert_eq!(bodies(&server, &[]).len(), 4);
    let too_long = "x".repeat(32);
    let rejected = append(&server, input.path(), &["--request-id-prefix", &too_long]);
    assert_eq!(rejected.code, Some(2));
}

#[test]
fn what_is_read_as_json_can_be_appended() {
    let server = with_stream();
    let line = r#"{"time":"2026-01-31T08:00:00.000000001Z","level":"WARN","msg":"a","n":1.5,"value":2,
        "trace_id":"000102030405060708090a0b0c0d0e0f","event_name":"e"}"#;
    let line = &line.replace('\n', "");
    let otlp = r#"{"resourceLogs":[{"scopeLogs":[{"scope":{"name":"s","version":"1.2","droppedAttributesCount":4,
        "attributes":[{"key":"k","value":{"bytesValue":"AP8="}}]},"logRecords":[
        {"timeUnixNano":"1769846403000000000","observedTimeUnixNano":"18446744073709551615","flags":257,
        "severityText":"error","droppedAttributesCount":3,"body":{"bytesValue":"AP8="},
        "attributes":[{"key":"$x","value":{"doubleValue":"-Infinity"}}]}]}]}]}"#;
    succeeds(&server, &file(line), &["--resource", "service.name=shop"]);
    succeeds(&server, &file(&otlp.replace('\n', "")), &["--format", "otlp-json"]);
    let first = crate::client::succeeds(&server, &["log", "read", "app", "--json"]).output;
    succeeds(&server, &file(&first), &[]);

    let mut read = records(&server, &[]);
    read.iter_mut().for_each(|record| drop(record["sequence"].take()));
    let [a, b, c, d]: [serde_json::Value; 4] = read.try_into().unwrap();
    assert_eq!((&a, &c), (&b, &d));
    let expected = serde_json::json!({
        "time": "2026-01-31T08:00:03Z", "observed_time": "2554-07-21T23:34:33.709551615Z",
        "severity_text": "error", "body": { "$bytes": "AP8=" }, "flags": 257,
        "dropped_attributes_count": 3, "attributes": { "$$x": { "$double": "-Infinity" } },
        "scope": "s", "scope_version": "1.2", "scope_attributes": { "k": { "$bytes": "AP8=" } },
        "scope_dropped_attributes_count": 4, "sequence": null,
    });
    assert_eq!(c, expected);
}
