//! How commands end: with nobody at standard error, interrupted, and with which codes.

use std::{fmt::Write as _, fs, io, process::Command};

use tempfile::tempdir;

use crate::client::{Ended, becomes, ended, interrupt, server, spawned, succeeds, trestle, wait};

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
