//! The forms of results.

mod help;

use serde_json::Value;
use trestle_tests::Server;

use crate::client::{Ended, bare, run, server, succeeds, trestle};

/// A server with a table of two entities.
fn with_rows() -> Server {
    let server = server();
    succeeds(&server, &["table", "create", "rows"]);
    for (row, text) in [("1", "plain, \"quoted\""), ("2", "long \u{1b}[31m".repeat(30).as_str())] {
        let set = format!("text={text}");
        let keys = ["-p", "p", "-r", row, "--set", &set, "--set", "n:int64=1234"];
        succeeds(&server, &[&["entity", "insert", "rows"][..], &keys].concat());
    }
    server
}

#[test]
fn every_form_has_every_entity() {
    let server = with_rows();
    let query = |format: &str| {
        succeeds(&server, &["entity", "query", "rows", "-o", format, "--select", "text,n"]).output
    };

    let json: Value = serde_json::from_str(&query("json")).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 2, "one document");
    let jsonl = query("jsonl");
    assert_eq!(jsonl.lines().count(), 2, "{jsonl}");
    let csv = query("csv");
    let first = "PartitionKey,RowKey,text,n\np,1,\"plain, \"\"quoted\"\"\",1234\n";
    assert!(csv.starts_with(first), "{csv}");
    let plain = query("plain");
    assert_eq!(plain.lines().next(), Some("PartitionKey\tRowKey\ttext\tn"), "{plain}");
    assert_eq!(plain.lines().count(), 3, "{plain}");
    assert!(!plain.contains('\u{1b}') && plain.contains("\\u001b[31m"), "{plain}");
    assert_eq!(succeeds(&server, &["entity", "query", "rows", "--select", "text,n"]).output, plain);
}

#[test]
fn one_entity_in_plain_columns_is_a_line_for_each_field() {
    let server = with_rows();
    let get = |more: &[&str]| {
        succeeds(&server, &[&["entity", "get", "rows", "p", "1"], more].concat()).output
    };

    let plain = get(&["-o", "plain"]);

    let json: Value = serde_json::from_str(&get(&["-o", "json"])).unwrap();
    let lines: Vec<_> = plain.lines().map(|line| line.split_once('\t').expect(line)).collect();
    let (timestamp, etag) = (json["Timestamp"].as_str().unwrap(), json["odata.etag"].as_str());
    let expected = [
        ("PartitionKey", "p"),
        ("RowKey", "1"),
        ("Timestamp", timestamp),
        ("etag", etag.unwrap()),
        ("n", "1234"),
        ("text", "plain, \"quoted\""),
    ];
    assert_eq!(lines, expected, "{json}");
    assert_eq!(get(&[]), plain, "in a pipe");
}

#[test]
fn no_results_are_an_empty_document() {
    let server = server();

    assert_eq!(succeeds(&server, &["table", "list", "-o", "json"]).output, "[]\n");
    assert_eq!(succeeds(&server, &["table", "list", "-o", "jsonl"]).output, "");
    let plain = succeeds(&server, &["table", "list"]);
    let header = "table\tcreate_time\n";
    assert_eq!((plain.output.as_str(), plain.errors.as_str()), (header, "no tables\n"));
    succeeds(&server, &["table", "create", "rows"]);
    let query = ["entity", "query", "rows", "--select", "a", "-o"];
    let empty = |format| succeeds(&server, &[&query[..], &[format]].concat()).output;
    assert_eq!(
        (empty("csv").as_str(), empty("json").as_str()),
        ("PartitionKey,RowKey,a\n", "[]\n")
    );
    assert_eq!(succeeds(&server, &["table", "list", "-q"]).errors, "");
}

#[test]
fn a_table_is_as_wide_as_the_terminal() {
    let server = with_rows();
    let query = |columns: &str, more: &[&str]| {
        let args = [&["entity", "query", "rows", "-o", "table"][..], more].concat();
        let mut command = trestle(&server, &args);
        command.env("COLUMNS", columns);
        Ended::of(command).output
    };
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();

    let (two, one) = (query("60", &[]), query("60", &["--limit", "1"]));

    assert!(widest(&two) <= 60 && two.contains('…'), "{two}");
    assert_eq!(two.lines().count(), 6, "a line for each entity: {two}");
    assert!(widest(&one) <= 60 && one.contains("│ PartitionKey ┆ p "), "vertical: {one}");
}

#[test]
fn quiet_prints_results_only_and_verbose_names_the_server() {
    let server = with_rows();

    let quiet = succeeds(&server, &["entity", "query", "rows", "-q"]);
    let verbose = succeeds(&server, &["entity", "query", "rows", "-v"]);

    assert_eq!(quiet.errors, "");
    let called = |from: &str| {
        format!("server: endpoint=`{}`, from {from}, without credentials\n", server.endpoint())
    };
    let mut by_variable = bare(&["table", "list", "-v"]);
    by_variable.env("TRESTLE_ENDPOINT", server.endpoint());
    let by_variable = Ended::of(by_variable).errors;
    assert!(by_variable.starts_with(&called("TRESTLE_ENDPOINT")), "{by_variable}");
    let called = called("--endpoint");
    assert!(
        verbose.errors.starts_with(&called) && verbose.errors.contains("cost: "),
        "{verbose:?}"
    );
    assert_eq!(quiet.output, verbose.output);
}

#[test]
fn status_shows_the_state_of_a_server_and_fails_without_one() {
    let server = server();

    let status = succeeds(&server, &["status", "-o", "json"]).output;
    let stopped = Ended::of(bare(&["status", "--endpoint", "127.0.0.1:1"]));

    let status: Value = serde_json::from_str(&status).unwrap();
    let services = serde_json::json!(["table", "queue", "blob", "log"]);
    assert_eq!(status["services"], services, "{status}");
    assert_eq!(status["endpoint"], server.endpoint().as_str());
    assert!(status["server_version"].is_string(), "{status}");
    assert_eq!(status["writes"], "accepted");
    assert_eq!(stopped.code, Some(5), "{stopped:?}");
}

#[test]
fn status_shows_quotas_beside_their_usage() {
    let quotas = [
        ("TRESTLE__QUOTAS__ACCOUNT_TABLES_MAX", "2"),
        ("TRESTLE__QUOTAS__ACCOUNT_STREAMS_MAX", "5"),
        ("TRESTLE__QUOTAS__ACCOUNT_STORED_BYTES_MAX", "1GiB"),
    ];
    let server = Server::start(&["--ephemeral"], &quotas);
    succeeds(&server, &["table", "create", "first"]);
    succeeds(&server, &["table", "create", "second"]);
    let full = run(&server, &["table", "create", "third"]);

    let status = succeeds(&server, &["status", "-o", "json"]).output;
    let stats = succeeds(&server, &["table", "stats", "-o", "json"]).output;

    assert!(full.errors.contains("(quotas.account_tables_max): usage=`2`"), "{full:?}");
    assert!(full.errors.contains("until the account deletes something"), "{full:?}");
    let status: Value = serde_json::from_str(&status).unwrap();
    let tables = serde_json::json!({ "usage": 2, "quota": 2 });
    assert_eq!(status["account_tables"], tables, "{status}");
    assert_eq!(status["account_streams"], serde_json::json!({ "usage": 0, "quota": 5 }));
    assert_eq!(status["account_stored_bytes"]["quota"], 1 << 30, "{status}");
    assert!(status["account_queues"].is_null(), "it has no quota: {status}");
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["account_tables"], tables, "{stats}");
}

#[test]
fn the_form_of_output_csv_exports_csv_or_is_rejected() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    succeeds(&server, &["table", "create", "rows"]);
    succeeds(&server, &["entity", "insert", "rows", "p", "r"]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let export = |file: &str, more: &[&str]| {
        run(&server, &[&["table", "export", "rows", file, "-o", "csv"], more].concat())
    };

    let standard = export("-", &[]);
    assert_eq!(standard.output, "PartitionKey,RowKey\np,r\n", "{standard:?}");
    for name in ["rows", "rows.csv"] {
        assert_eq!(export(&path(name), &[]).code, Some(0));
        assert_eq!(std::fs::read_to_string(path(name)).unwrap(), standard.output);
    }
    for (file, more) in [("rows.jsonl", &[][..]), ("rows.csv", &["--format", "jsonl"])] {
        let rejected = export(&path(file), more);
        assert_eq!(rejected.code, Some(2), "{rejected:?}");
        assert!(rejected.errors.contains("give --format csv"), "{rejected:?}");
    }
}

#[test]
fn an_error_shows_no_escapes_of_rust() {
    let server = server();

    for args in [
        &["table", "create", "a\u{1b}b"][..],
        &["entity", "get", "nosuch", "a\"b", "c'd"],
        &["queue", "create", "A\"B"],
        &["entity", "query", "nosuch", "--filter", "a eq \"b\""],
    ] {
        let failed = run(&server, args);
        assert_ne!(failed.code, Some(0), "{failed:?}");
        for trace in ["\\u{", "Some(", "\\\"", "Status {", "Os {"] {
            assert!(!failed.errors.contains(trace), "{trace}: {}", failed.errors);
        }
    }
}
