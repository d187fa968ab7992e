//! How commands end: with nobody at standard error, interrupted, and with which codes.

use std::{fs, io, process::Command};

use tempfile::tempdir;

use crate::client::{Ended, ended, server, succeeds, trestle};

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
