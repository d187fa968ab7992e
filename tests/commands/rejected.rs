//! Values that are rejected before a call, with their rule and in the form of the output.

mod escaped;
mod ranges;
mod variables;

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
        &["log", "export", "app", path, "--format", "csv"],
        &["queue", "drain", "jobs", "--to", path],
        &["table", "properties", "set", path],
    ] {
        let ended = run(&server, args);

        let expected = format!("error: is a folder, not a file: file=`{path}`\n");
        assert_eq!((ended.code, &ended.errors), (Some(2), &expected), "{args:?}");
    }
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

#[test]
fn a_value_that_the_server_rejects_is_named_by_its_flag_for_people_only() {
    let server = server();
    succeeds(&server, &["queue", "create", "jobs"]);
    let send = ["message", "send", "jobs", "a", "--visibility-timeout", "3d", "--ttl", "1d"];

    let text = run(&server, &send);
    let json = run(&server, &[&send[..], &["--json"]].concat());

    assert_eq!(text.code, Some(2), "{text:?}");
    assert!(text.errors.starts_with("error: --visibility-timeout: must be less than"), "{text:?}");
    assert!(!text.errors.contains("messages[0]"), "{text:?}");
    let json: Value = serde_json::from_str(&json.errors).unwrap();
    let field = &json["error"]["violations"][0]["field"];
    assert_eq!(field, "messages[0].visibility_delay");
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
