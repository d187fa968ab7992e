//! How commands end: with nobody at standard error, interrupted, and with which codes.

use std::{fmt::Write as _, fs, io, process::Command};

use tempfile::tempdir;
use trestle_tests::Server;

use crate::client::{
    Ended, bare, becomes, ended, interrupt, run, server, spawned, succeeds, trestle, wait,
};

/// A command whose standard error nobody reads.
fn unheard(mut command: Command) -> Ended {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    command.stderr(writer);
    ended(command)
}

#[test]
fn a_command_whose_standard_error_is_closed_ends_as_it_would() {
    let (server, directory) = (server(), tempdir().unwrap());
    let file = directory.path().join("rows.jsonl");
    fs::write(&file, "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\noops\n").unwrap();
    succeeds(&server, &["table", "create", "rows"]);
    let file = file.to_str().unwrap();

    for (args, code) in [
        (&["table", "query", "rows", "--cost"][..], 0),
        (&["table", "query", "nosuch"], 3),
        (&["table", "export", "rows", "-"], 0),
        (&["table", "import", "rows", file, "--keep-going"], 1),
        (&["queue", "load", "nosuch", file], 3),
    ] {
        let unheard = unheard(trestle(&server, args));
        assert_eq!(unheard.code, Some(code), "{args:?}: {unheard:?}");
    }
}

fn write_rows(file: &std::path::Path) {
    let mut text = String::new();
    for row in 0..60_000 {
        writeln!(text, r#"{{"PartitionKey":"p","RowKey":"{row:05}","n":{row}}}"#).unwrap();
    }
    fs::write(file, text).unwrap();
}

#[test]
fn an_import_that_is_interrupted_says_how_far_it_came_and_how_to_go_on() {
    let (server, directory) = (server(), tempdir().unwrap());
    let path = |name: &str| directory.path().join(name);
    let (file, notes) = (path("rows.jsonl"), path("rows.jsonl.trestle-import"));
    write_rows(&file);
    succeeds(&server, &["table", "create", "rows"]);
    let import = ["table", "import", "rows", file.to_str().unwrap()];

    let child = spawned(&server, &import);
    let has_progress = || fs::read_to_string(&notes).is_ok_and(|n| !n.contains("\"byte\":0"));
    assert!(becomes(has_progress), "the import notes its progress");
    interrupt(&child);
    let ended = wait(child);

    assert_eq!(ended.code, Some(130), "{ended:?}");
    for said in ["interrupted", &server.endpoint(), " rows are done", "go on with --resume"] {
        assert!(ended.errors.contains(said), "{said}: {ended:?}");
    }
    let resumed = succeeds(&server, &[&import[..], &["--resume"]].concat());
    assert!(resumed.errors.contains("resumed after row"), "{resumed:?}");
}

fn code(server: &Server, args: &[&str]) -> (Option<i32>, String) {
    let ended = run(server, args);
    (ended.code, ended.errors)
}

#[test]
fn files_that_are_missing_or_malformed_are_usage_errors() {
    let (server, directory) = (server(), tempdir().unwrap());
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (gone, bad) = (file("gone.jsonl"), file("bad.jsonl"));
    fs::write(&bad, "oops\n").unwrap();
    succeeds(&server, &["table", "create", "rows"]);
    succeeds(&server, &["queue", "create", "jobs"]);

    for args in [
        &["table", "import", "rows", &gone][..],
        &["queue", "load", "jobs", &gone],
        &["queue", "load", "jobs", &bad],
        &["queue", "properties", "set", &gone],
        &["import", "azurite", &gone],
        &["table", "list", "--account", "acme", "--account-key-file", &gone],
        &["table", "list", "--account", "acme", "--sas-file", &gone],
        &["queue", "create", "more", "--metadata", "a=b", "--metadata", "a=c"],
    ] {
        let (code, errors) = code(&server, args);
        assert_eq!(code, Some(2), "{args:?}: {errors}");
    }
    let https = ["--endpoint", "https://127.0.0.1:1", "--ca-file"];
    for authorities in [&gone, &bad] {
        let args = [&["table", "list"][..], &https, &[authorities]].concat();
        let ended = ended(bare(&args));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let said = ended.errors.contains("holds no certificate");
        assert_eq!(said, authorities == &bad, "{ended:?}");
    }
}
