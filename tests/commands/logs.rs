//! Commands on streams of log records.

mod append;
mod damaged;
mod documented;
mod resumed;
mod stats;

use serde_json::Value;
use trestle_tests::Server;

use crate::client::{Ended, bare, becomes, run, server, succeeds};

/// A server with the stream `app`.
fn with_stream() -> Server {
    let server = server();
    succeeds(&server, &["log", "create", "app"]);
    server
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The records that a command prints.
fn records(server: &Server, args: &[&str]) -> Vec<Value> {
    lines(&succeeds(server, &[&["log", "read", "app", "--json"], args].concat()).output)
}

/// Their bodies.
fn bodies(server: &Server, args: &[&str]) -> Vec<String> {
    let body = |record: &Value| record["body"].as_str().unwrap().to_owned();
    records(server, args).iter().map(body).collect()
}

#[test]
fn streams_are_created_listed_shown_changed_and_deleted() {
    let server = server();
    let log = |args: &[&str]| run(&server, &[&["log"], args].concat());
    let settings = ["--retention", "30d", "--roll-age", "1m", "--roll-bytes", "1MiB"];
    let more = ["--promote", "http.route:string:indexed", "--label", "team=web"];
    let create = [&["create", "web"], &settings[..], &more[..]].concat();

    assert_eq!(log(&create).output, "created stream web\n");
    assert_eq!(log(&create).output, "stream web already exists, with the same settings\n");
    assert_eq!(log(&["create", "web"]).code, Some(4));
    assert_eq!(log(&["create", "Web"]).code, Some(2));
    let listed = lines(&log(&["list", "--prefix", "w", "--json"]).output);
    assert_eq!(listed[0]["stream"], "web");
    let none = log(&["list", "--prefix", "x"]);
    let header =
        "stream\tcreate_time\tretention_seconds\tlabels\troll_age_seconds\troll_bytes\tpromoted\n";
    assert_eq!((none.output.as_str(), none.errors.as_str()), (header, "no streams\n"));
    let shown = lines(&log(&["show", "web", "--json"]).output).remove(0);
    assert_eq!(shown["retention_seconds"], 30 * 86_400, "{shown}");
    assert_eq!((&shown["roll_age_seconds"], &shown["roll_bytes"]), (&60.into(), &(1 << 20).into()));
    assert_eq!(shown["promoted"][0], "http.route:string:indexed");
    assert_eq!((&shown["labels"]["team"], &shown["next_sequence"]), (&"web".into(), &0.into()));

    let changed = log(&["update", "web", "--retention", "off", "--label", "team=shop"]);
    assert_eq!(changed.output, "changed retention, labels of stream web\n", "{changed:?}");
    let shown = lines(&log(&["show", "web", "--json"]).output).remove(0);
    assert_eq!(
        (&shown["retention_seconds"], &shown["labels"]["team"]),
        (&Value::Null, &"shop".into())
    );
    assert_eq!(shown["roll_age_seconds"], 60, "{shown}");
    assert_eq!(log(&["update", "web"]).code, Some(2));
    assert_eq!(log(&["delete", "web"]).code, Some(2));
    assert_eq!(log(&["delete", "web", "--yes"]).output, "deleted stream web\n");
    assert_eq!(log(&["show", "web"]).code, Some(3));
}

#[test]
fn segments_that_a_retention_removed_are_restored() {
    let server = with_stream();
    let file = append::file("{\"time\":\"2020-01-31T08:00:00Z\",\"msg\":\"kept\"}\n");
    append::succeeds(&server, &file, &[]);
    succeeds(&server, &["log", "flush", "app"]);
    succeeds(&server, &["log", "update", "app", "--retention", "1m"]);
    let removed = becomes(|| bodies(&server, &[]).is_empty());
    assert!(removed, "the retention removes nothing");

    let undelete = || succeeds(&server, &["log", "undelete", "app"]).output;
    assert_eq!(
        undelete(),
        "restored 0 segments of stream app with 0 records; 1 segment past the retention: give the \
         stream a longer one first\n"
    );
    succeeds(&server, &["log", "update", "app", "--retention", "off"]);
    assert_eq!(undelete(), "restored 1 segment of stream app with 1 record\n");
    assert_eq!(bodies(&server, &[]), ["kept"]);
    let again = succeeds(&server, &["log", "undelete", "app", "--json"]).output;
    assert_eq!(lines(&again)[0]["segments"], 0, "{again}");
    assert_eq!(run(&server, &["log", "undelete", "none"]).code, Some(3));
}

#[test]
fn records_are_read_by_time_filter_and_order() {
    let server = with_stream();
    let file = append::file(
        r#"{"time":"2026-01-31T08:00:00Z","level":"info","msg":"one","status":200}
{"time":"2026-01-31T08:00:01Z","level":"error","msg":"two","status":503}
{"time":"2026-01-31T08:00:02Z","level":"fatal","msg":"three"}
"#,
    );
    append::succeeds(&server, &file, &[]);

    assert_eq!(bodies(&server, &[]), ["one", "two", "three"]);
    assert_eq!(bodies(&server, &["--reverse", "--limit", "2"]), ["three", "two"]);
    assert_eq!(bodies(&server, &["--since", "2026-01-31T08:00:01Z"]), ["two", "three"]);
    assert_eq!(bodies(&server, &["--until", "2026-01-31T08:00:01Z"]), ["one"]);
    assert_eq!(bodies(&server, &["--since", "1m"]), [""; 0]);
    assert_eq!(bodies(&server, &["--filter", "severity ge 'error'"]), ["two", "three"]);
    assert_eq!(bodies(&server, &["--filter", "attributes/status gt 200.5"]), ["two"]);
    assert_eq!(bodies(&server, &["--filter", "contains(body, 'o') and severity lt 17"]), ["one"]);
    let fields = records(&server, &["--fields", "time,severity", "--limit", "1"]).remove(0);
    assert_eq!((&fields["severity_number"], &fields["body"]), (&9.into(), &Value::Null));
    let rejected = run(&server, &["log", "read", "app", "--filter", "level eq 1"]);
    assert_eq!(rejected.code, Some(2), "{rejected:?}");
    assert!(rejected.errors.contains("`attributes/KEY`"), "{rejected:?}");
    assert_eq!(run(&server, &["log", "read", "none"]).code, Some(3));

    let shown = succeeds(&server, &["log", "read", "app", "--limit", "1", "--cost"]);
    assert_eq!(shown.output, "2026-01-31T08:00:00Z info one status=200\n");
    for form in ["table", "plain"] {
        let read = ["log", "read", "app", "--limit", "1", "-o", form];
        assert_eq!(succeeds(&server, &read).output, shown.output, "{form}");
    }
    let help = Ended::of(bare(&["log", "read", "--help"])).output;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("a record is one line of text, not columns"), "{help}");
    assert!(shown.errors.contains("cost: ") && shown.errors.contains("1 returned"), "{shown:?}");
}

#[test]
fn records_are_found_by_a_text_in_their_bodies() {
    let server = with_stream();
    let text = "it's late\nlate again\nin time\n100% (late)\n";
    append::succeeds(&server, &append::file(text), &["--format", "text"]);

    assert_eq!(bodies(&server, &["--grep", "late"]), ["it's late", "late again", "100% (late)"]);
    assert_eq!(bodies(&server, &["--grep", "it's"]), ["it's late"], "a quote is part of the text");
    assert_eq!(bodies(&server, &["--grep", "% (late)"]), ["100% (late)"]);
    assert_eq!(bodies(&server, &["--grep", "never"]), Vec::<String>::new());
    let both = ["--grep", "late", "--where", "contains(body, 'again') or contains(body, 'time')"];
    assert_eq!(bodies(&server, &both), ["late again"], "a record has to match both");

    let tail = |args: &[&str]| {
        let tail = ["log", "tail", "app", "--json", "--grep", "late"];
        let printed = succeeds(&server, &[&tail, args].concat()).output;
        lines(&printed).iter().map(|one| one["body"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(tail(&["-n", "2"]), ["late again", "100% (late)"]);
    assert_eq!(tail(&["--limit", "1"]), ["100% (late)"]);
    assert_eq!(tail(&["--lines", "1"]), ["100% (late)"], "the earlier name");
}

#[test]
fn the_last_records_are_printed_and_those_that_follow() {
    let server = with_stream();
    let text: String = (0..20).map(|number| format!("line {number}\n")).collect();
    append::succeeds(&server, &append::file(&text), &["--format", "text"]);

    let tail = succeeds(&server, &["log", "tail", "app", "-n", "2", "--json"]).output;
    let bodies: Vec<_> = lines(&tail).iter().map(|one| one["body"].clone()).collect();
    assert_eq!(bodies, ["line 18", "line 19"]);

    let mut command = crate::client::trestle(&server, &["log", "tail", "app", "-f", "-n", "1"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut shown = std::io::BufRead::lines(output);
    assert!(shown.next().unwrap().unwrap().ends_with(" line 19"));
    append::succeeds(&server, &append::file("more\n"), &["--format", "text"]);
    assert!(shown.next().unwrap().unwrap().ends_with(" more"));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_tail_continues_behind_its_last_record_when_the_server_returns() {
    let data = tempfile::tempdir().unwrap();
    let args = ["--data-dir", data.path().to_str().unwrap()];
    let mut server = Server::start(&args, &[]);
    succeeds(&server, &["log", "create", "app"]);
    append::succeeds(&server, &append::file("one\n"), &["--format", "text"]);
    let address = server.address("grpc");
    let mut command = crate::client::trestle(&server, &["log", "tail", "app", "-f", "-n", "1"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut shown = std::io::BufRead::lines(output);
    assert!(shown.next().unwrap().unwrap().ends_with(" one"));
    let notes = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut notes = std::io::BufRead::lines(notes);

    for (text, is_killed) in [("two\n", false), ("three\n", true)] {
        if is_killed {
            server.kill();
        } else {
            assert_eq!(server.terminate(), Some(0), "a tail does not delay a stop");
        }
        let note = notes.next().unwrap().unwrap();
        assert!(note.starts_with("connection lost, reconnecting: "), "{note}");
        server = Server::start_at(&address, &args, &[]);
        append::succeeds(&server, &append::file(text), &["--format", "text"]);
        let line = shown.next().unwrap().unwrap();
        assert!(line.ends_with(&format!(" {}", text.trim_end())), "{line}");
        assert_eq!(notes.next().unwrap().unwrap(), "connected again");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn sealed_records_are_listed_as_segments_and_read() {
    let server = with_stream();
    let none = succeeds(&server, &["log", "segments", "app"]);
    let header = "url\trecords\tbytes\tmin_time\tmax_time\n";
    assert_eq!((none.output.as_str(), none.errors.as_str()), (header, "no segments\n"));
    append::succeeds(&server, &append::file("one\ntwo\n"), &["--format", "text"]);

    let flushed = succeeds(&server, &["log", "flush", "app"]).output;
    assert_eq!(flushed, "sealed 2 records of stream app into 1 segment\n");
    let segments = lines(&succeeds(&server, &["log", "segments", "app", "--json"]).output);
    assert_eq!((segments.len(), &segments[0]["records"]), (1, &2.into()));
    assert!(segments[0]["url"].as_str().unwrap().ends_with(".parquet"), "{segments:?}");
    assert_eq!(bodies(&server, &[]), ["one", "two"]);
}

#[test]
fn records_are_csv_with_a_header() {
    let server = with_stream();
    let csv =
        |args: &[&str]| succeeds(&server, &[&["log"], args, &["app", "-o", "csv"]].concat()).output;
    let header = "time,observed_time,severity_number,severity_text,event_name,value,body,";
    assert!(csv(&["read"]).starts_with(header) && csv(&["read"]).lines().count() == 1);
    append::succeeds(&server, &append::file("one, \"1\"\ntwo\n"), &["--format", "text"]);

    for verb in ["read", "tail"] {
        let read = csv(&[verb]);
        assert!(read.starts_with(header) && read.lines().count() == 3, "{read}");
        assert!(read.contains(",\"one, \"\"1\"\"\","), "{read}");
    }
}
