//! Values that are rejected before a call, with their rule and in the form of the output.

use std::process::Command;

use serde_json::Value;
use trestle_tests::CertificateAuthority;

use crate::client::{Ended, bare, run, server, succeeds, trestle};

fn usage(args: &[&str]) -> String {
    let ended = Ended::of(bare(args));
    assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
    ended.errors
}

#[test]
fn numbers_and_times_are_rejected_with_their_range() {
    let times = "must be 1ms to 36500d";
    for (args, rule) in [
        (&["entity", "query", "t", "--limit", "99999999999"][..], "0 to 4294967295"),
        (&["entity", "query", "t", "--top", "-1"], "must be a whole number, 0 to 4294967295"),
        (&["log", "read", "s", "--limit", "0"], "must be a whole number, 1 to "),
        (&["log", "tail", "s", "-n", "99999999999"], "must be a whole number, 0 to 10000"),
        (&["log", "append", "s", "--batch", "0"], "must be a whole number, 1 to 4294967295"),
        (&["log", "append", "s", "--utc-offset", "+99:99"], "must be -23:59 to +23:59"),
        (&["blob", "cat", "c/b", "--offset", "x"], "must be a whole number, 0 to "),
        (&["blob", "lease", "break", "c/b", "--period", "61"], "must be a whole number, 0 to 60"),
        (&["blob", "protection", "--keep-deleted", "366"], "1 to 365, or `off`"),
        (&["queue", "create", "q", "--max-dequeue-count", "0"], "1 to 1000"),
        (&["import", "azurite", ".", "--parallel", "0"], "must be a whole number, 1 to 1024"),
        (&["table", "list", "--timeout", "100000000000d"], times),
        (&["table", "list", "--timeout", "99999999999999999999s"], times),
        (&["table", "list", "--timeout", "-1s"], times),
        (&["bench", "table", "--duration", "-5s"], times),
        (&["message", "receive", "q", "--wait", "5000000d"], "must be 0s to 20s: "),
        (&["message", "receive", "q", "--wait", "-1s"], "must be 0s to 20s: "),
        (
            &["message", "receive", "q", "--wait", "--limit", "3"],
            "a value is required for '--wait <TIME>'",
        ),
        (&["message", "receive", "q", "--visibility-timeout", "0s"], "must be 1s to 7d: "),
        (&["message", "send", "q", "a", "--visibility-timeout", "-1s"], "must be 0s to 7d: "),
        (&["message", "extend", "q", "i", "r", "--visibility-timeout", "8d"], "must be 0s to 7d: "),
        (&["message", "send", "q", "a", "--ttl", "1.5s"], "must be 1s to 36500d: "),
        (&["message", "send", "q", "a", "--ttl", "-1s"], "must be 1s to 36500d: "),
        (&["queue", "create", "q", "--deduplication-window", "0s"], "must be 1s to 7d: "),
        (&["log", "create", "s", "--roll-age", "2d"], "must be 1s to 1d: "),
        (&["log", "create", "s", "--retention", "1s"], "must be 1m to 36500d: "),
        (&["log", "update", "s", "--retention", "1s"], "or `off`"),
        (&["log", "read", "s", "--since", "-1h"], "must be a time ago, such as 15m"),
        (&["log", "segments", "s", "--until", "-1h"], "must be a time ago, such as 15m"),
        (&["sas", "explain", "--from", "banana", "--over", "http"], "must be an IP address"),
    ] {
        let errors = usage(args);
        assert!(errors.contains(rule), "{args:?}: {errors}");
        for foreign in ["target type", "tip:", "invalid digit", "is not in", "input is"] {
            assert!(!errors.contains(foreign), "{args:?}: {errors}");
        }
    }
}

#[test]
fn the_shortest_and_the_longest_times_are_accepted() {
    let server = server();
    succeeds(&server, &["queue", "create", "jobs"]);
    let send = ["message", "send", "jobs", "a", "--visibility-timeout"];

    succeeds(&server, &["table", "list", "--timeout", "36500d"]);
    succeeds(&server, &["message", "receive", "jobs", "--wait", "0s"]);
    succeeds(&server, &[&send[..], &["0s", "--ttl", "1s"]].concat());
    succeeds(&server, &[&send[..], &["7d", "--ttl", "36500d"]].concat());
    succeeds(&server, &["message", "send", "jobs", "a"]);
    let receive = ["message", "receive", "jobs", "--visibility-timeout", "7d", "--wait", "20s"];
    succeeds(&server, &receive);
}

#[test]
fn a_negative_expiry_is_rejected_with_its_rule() {
    let mut sas = bare(&["sas", "queue", "jobs", "--permissions", "r", "--expiry", "-1h"]);
    sas.env("TRESTLE_ACCOUNT", "shop").env("TRESTLE_ACCOUNT_KEY", "YWJj");

    let ended = Ended::of(sas);

    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.errors.contains("--expiry: must be 30m, 8h or 7d from now on"), "{ended:?}");
}

#[test]
fn a_folder_in_place_of_a_file_is_rejected_before_a_call() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let path = folder.path().to_str().unwrap();

    // A call would find that the target does not exist.
    for args in [
        &["queue", "load", "jobs", path][..],
        &["queue", "load", "jobs", path, "--resume"],
        &["log", "append", "app", path],
        &["table", "import", "rows", path, "--format", "jsonl"],
        &["table", "import", "rows", path, "--format", "csv", "--resume"],
        &["table", "export", "rows", path, "--format", "jsonl"],
        &["queue", "drain", "jobs", "--to", path],
        &["table", "properties", "set", path],
    ] {
        let ended = run(&server, args);

        let expected = format!("error: is a folder, not a file: file=`{path}`\n");
        assert_eq!((ended.code, &ended.errors), (Some(2), &expected), "{args:?}");
    }
}

#[test]
fn a_range_of_times_that_ends_before_it_begins_is_rejected_before_a_call() {
    let server = server();

    // A call would find that there is no such stream.
    for (verb, since, until) in [
        ("read", "1h", "2h"),
        ("read", "1h", "1h"),
        ("read", "2026-01-31", "2026-01-30T23:59:59Z"),
        ("segments", "1h", "2h"),
    ] {
        let ended = run(&server, &["log", verb, "app", "--since", since, "--until", until]);

        assert_eq!(ended.code, Some(2), "{ended:?}");
        let rule = "error: --until: must be after --since: since=`20";
        assert!(ended.errors.starts_with(rule), "{ended:?}");
    }
}

/// The variables of clients.
const VARIABLES: [&str; 14] = [
    "AZURE_STORAGE_CONNECTION_STRING",
    "TRESTLE_ACCOUNT",
    "TRESTLE_ACCOUNT_KEY",
    "TRESTLE_ACCOUNT_KEY_FILE",
    "TRESTLE_CA_FILE",
    "TRESTLE_CERT_FILE",
    "TRESTLE_CONFIG",
    "TRESTLE_CONNECTION_STRING",
    "TRESTLE_CONTEXT",
    "TRESTLE_ENDPOINT",
    "TRESTLE_KEY_FILE",
    "TRESTLE_SAS",
    "TRESTLE_SAS_FILE",
    "TRESTLE_SERVER_NAME",
];

#[test]
fn an_empty_variable_is_the_same_as_one_that_is_not_set() {
    let server = server();
    let all = VARIABLES.map(|variable| (variable, ""));
    let ended = |mut command: Command, variables: &[(&str, &str)]| {
        command.envs(variables.iter().copied());
        Ended::of(command)
    };

    for variable in all {
        let listed = ended(trestle(&server, &["table", "list"]), &[variable]);
        assert_eq!(listed.code, Some(0), "{variable:?}: {listed:?}");
    }
    let printed = ended(bare(&["config", "print"]), &all);
    let help = ended(bare(&["table", "list", "--help"]), &all).output;
    let import = ended(bare(&["import", "azure", "--source-file", "/nosuch"]), &all);
    let given = ended(bare(&["table", "list", "--ca-file", ""]), &[]);

    assert_eq!(printed.code, Some(0), "{printed:?}");
    let settings = [
        "TRESTLE__SERVER__LISTEN",
        "TRESTLE__SERVER__ROLES",
        "TRESTLE__STORAGE__DATA_DIR",
        "TRESTLE__STORAGE__MIN_FREE_BYTES",
        "TRESTLE__TLS__CERT_FILE",
        "TRESTLE__ACCOUNTS__ACME__KEY1",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ];
    let checked = ended(bare(&["config", "check"]), &settings.map(|variable| (variable, "")));
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(help.contains("[env: TRESTLE_CA_FILE=]"), "{help}");
    assert!(import.errors.contains("/nosuch"), "{import:?}");
    assert_eq!(given.code, Some(2), "an empty argument is a mistake: {given:?}");
}

#[test]
fn an_error_of_the_command_line_is_json_where_that_is_the_form_of_the_output() {
    for args in [
        &["entity", "query", "t", "--limit", "x", "-o", "json"][..],
        &["--json", "entity", "query", "t", "--limit", "x"],
    ] {
        let error: Value = serde_json::from_str(&usage(args)).unwrap();
        assert_eq!(error["error"]["exit_code"], 2, "{error}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("must be a whole number, 0 to 4294967295"), "{message}");
    }
    assert!(usage(&["entity", "query", "-o", "csv"]).starts_with("error: the following"));
}

/// A text that clears a terminal, and looks like a line of its own.
const HOSTILE: &str = "a\u{1b}[2J\u{9b}2J\r\nerror: b";

#[test]
fn control_characters_of_names_filters_and_paths_are_escaped_in_errors() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    let file = folder.path().join(format!("{HOSTILE}.jsonl"));
    std::fs::write(&file, "oops\n").unwrap();
    succeeds(&server, &["table", "create", "rows"]);
    let (file, filter) = (file.to_str().unwrap(), format!("{HOSTILE} eq 1"));

    for args in [
        &["table", "create", HOSTILE][..],
        &["entity", "query", "rows", "--filter", &filter],
        &["table", "import", "rows", HOSTILE, "--format", "csv"],
        &["table", "import", "rows", file, "--keep-going"],
        &["blob", "cp", HOSTILE, "blob://photos/cat.png"],
        &["queue", "get", HOSTILE],
        &["entity", "query", "rows", "--limit", HOSTILE],
        &["entity", HOSTILE],
        &["entity", "query", "rows", &format!("--{HOSTILE}")],
        &["table", "list", "--context", HOSTILE],
    ] {
        let failed = run(&server, args);
        assert!(!matches!(failed.code, None | Some(0)), "{args:?}: {failed:?}");
        one_line_each(&failed.errors, 1);
    }
    for (args, errors) in [
        // The mistake, and the number of mistakes.
        (&["serve", "--config", HOSTILE][..], 2),
        (&["compact", "--data-dir", HOSTILE], 1),
        (&["healthcheck", "--endpoint", HOSTILE], 1),
        (&["doctor", HOSTILE], 1),
    ] {
        let failed = Ended::of(bare(args));
        assert!(!matches!(failed.code, None | Some(0)), "{args:?}: {failed:?}");
        one_line_each(&failed.errors, errors);
    }
}

fn one_line_each(errors: &str, expected: usize) {
    assert!(errors.contains(r"a\u001b[2J\u009b2J\r\nerror: b"), "{errors}");
    assert!(!errors.replace('\n', "").contains(char::is_control), "{errors:?}");
    let lines = errors.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(lines, expected, "{errors}");
}

#[test]
fn every_error_as_json_has_its_exit_code() {
    let server = server();

    let missing = run(&server, &["table", "get", "nosuch", "-o", "json"]);

    let error: Value = serde_json::from_str(&missing.errors).unwrap();
    assert_eq!((missing.code, &error["error"]["exit_code"]), (Some(3), &3.into()), "{error}");
}

#[test]
fn usage_is_that_of_the_command_without_what_a_variable_has() {
    let mut query = bare(&["entity", "query"]);
    query.env("TRESTLE_ENDPOINT", "127.0.0.1:1");

    let query = Ended::of(query).errors;
    let form = usage(&["version", "-o", "csv"]);

    assert!(query.contains("Usage: trestle entity query [OPTIONS] <TABLE>"), "{query}");
    assert!(form.contains("`trestle version` has no form csv: use json"), "{form}");
    assert!(form.contains("Usage: trestle version"), "{form}");
}

#[test]
fn a_negative_number_is_a_value_where_texts_are_accepted() {
    let server = server();
    succeeds(&server, &["queue", "create", "jobs"]);
    succeeds(&server, &["message", "send", "jobs", "-1"]);

    assert!(succeeds(&server, &["message", "peek", "jobs", "--json"]).output.contains("\"-1\""));
}

#[test]
fn the_key_of_another_certificate_and_files_for_plain_text_are_rejected_before_a_call() {
    let authority = CertificateAuthority::new("ours");
    let (ours, theirs) = (authority.issue("127.0.0.1"), authority.issue("other"));
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let (certificate, key) = (path(&ours.certificate), path(&theirs.key));
    let files = ["--cert-file", &certificate, "--key-file", &key];
    let list = |endpoint: &str, more: &[&str]| {
        usage(&[&["table", "list", "--endpoint", endpoint][..], more].concat())
    };

    let mismatched = list("https://127.0.0.1:1", &files);
    let swapped =
        list("https://127.0.0.1:1", &["--cert-file", &certificate, "--key-file", &certificate]);
    let plain = list("http://127.0.0.1:1", &files);
    let misnamed = list("https://127.0.0.1:1", &["--server-name", "no name"]);

    let rule = "error: --key-file: is not the key of the certificate in --cert-file: `";
    assert_eq!(mismatched, format!("{rule}{key}`\n"));
    assert!(swapped.contains("--key-file: the file has no private key in PEM"), "{swapped}");
    assert!(plain.contains("must begin with https:// where files for TLS"), "{plain}");
    assert!(misnamed.contains("--server-name: must be a name such as"), "{misnamed}");
}

#[test]
fn what_does_not_exist_needs_no_confirmation() {
    let server = server();

    for args in [
        &["table", "delete", "nosuch"][..],
        &["queue", "delete", "nosuch"],
        &["queue", "clear", "nosuch"],
        &["log", "delete", "nosuch"],
        &["blob", "container", "delete", "nosuch"],
    ] {
        let ended = run(&server, args);
        assert_eq!(ended.code, Some(3), "{args:?}: {ended:?}");
        assert!(!ended.errors.contains("--yes"), "{ended:?}");
    }
    succeeds(&server, &["table", "create", "rows"]);
    let existing = run(&server, &["table", "delete", "rows"]);
    assert_eq!(existing.code, Some(2), "{existing:?}");
}

#[test]
fn a_stopped_import_names_fields_as_its_file_does_and_counts_each_run() {
    let (server, folder) = (server(), tempfile::tempdir().unwrap());
    succeeds(&server, &["table", "create", "rows"]);
    let file = folder.path().join("rows.jsonl");
    let row = |key: usize| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"{key}\"}}\n");
    let write = |bad: &str| {
        let rows = (0..60).map(|key| if key == 55 { bad.to_owned() } else { row(key) });
        std::fs::write(&file, rows.collect::<String>()).unwrap();
    };
    let import = ["table", "import", "rows", file.to_str().unwrap()];

    write("not json\n");
    let malformed = run(&server, &import);
    write(&row(55).replace("\"p\"", &format!("\"{}\"", "x".repeat(1100))));
    let rejected = run(&server, &[&import[..], &["--resume"]].concat());
    write(&row(55));
    let resumed = run(&server, &[&import[..], &["--resume"]].concat());

    let syntax =
        "rows.jsonl:56: value=`not json`: must be one JSON object: syntax error at column 2\n";
    assert!(malformed.errors.contains(syntax), "{malformed:?}");
    let stopped = "the chunk of the first failed row: 1 row failed, 55 rows written";
    assert!(malformed.errors.contains(stopped), "{malformed:?}");
    assert!(rejected.errors.contains("rows.jsonl:56: "), "{rejected:?}");
    assert!(rejected.errors.contains(": PartitionKey: "), "{rejected:?}");
    assert!(!rejected.errors.contains("chunk.entities"), "{rejected:?}");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.errors.contains(" before"), "{resumed:?}");
}
