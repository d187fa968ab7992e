//! Input that is read and checked before any call.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use tempfile::tempdir;

use crate::client::{Ended, bare, run, server, succeeds};

/// A command against an address where nothing listens.
fn without_server(args: &[&str]) -> Command {
    bare(&[args, &["--endpoint", "http://127.0.0.1:1"]].concat())
}

/// A command with this standard input.
fn fed(mut command: Command, input: &str) -> Ended {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the client runs");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().expect("the client ends").into()
}

#[test]
fn mistakes_of_files_and_values_are_reported_where_no_server_answers() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (absent, object, csv) = (path("absent.jsonl"), path("object.json"), path("rows.csv"));
    let directory = path("");
    fs::write(&object, "{\n").unwrap();
    fs::write(&csv, "PartitionKey\n").unwrap();

    for (args, problem) in [
        (&["table", "import", "rows", &absent][..], "No such file"),
        (&["table", "import", "rows", &csv], "RowKey"),
        (&["queue", "load", "jobs", &absent], "No such file"),
        (&["queue", "load", "jobs", &directory], "is a folder"),
        (&["queue", "drain", "jobs", "--to", &directory], "is a folder"),
        (&["log", "append", "app", &absent], "No such file"),
        (&["log", "read", "app", "--since", "1h", "--until", "2h"], "must be after --since"),
        (&["log", "segments", "app", "--since", "1h", "--until", "2h"], "must be after --since"),
        (&["table", "properties", "set", &object], "properties must be an object"),
        (&["table", "policy", "set", "rows", "id", "--expiry", "soon"], "--expiry"),
        (&["blob", "cp", &absent, "blob://files/a"], "No such file"),
        (&["entity", "insert", "rows", "--json-entity", "{"], "entity is malformed"),
    ] {
        let ended = Ended::of(without_server(args));

        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.errors.contains(problem), "{args:?}: {ended:?}");
    }
    let piped = fed(without_server(&["entity", "insert", "rows", "--json-entity", "-"]), "{");
    assert_eq!(piped.code, Some(2), "{piped:?}");
}

#[test]
fn a_command_without_a_server_reports_that_alone_and_leaves_no_file() {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (rows, out) = (path("rows.jsonl"), path("out.jsonl"));
    fs::write(&rows, "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\n").unwrap();

    for args in [
        &["table", "list"][..],
        &["table", "delete", "rows"],
        &["queue", "clear", "jobs"],
        &["table", "import", "rows", &rows],
        &["table", "export", "rows", &out],
        &["queue", "load", "jobs", &rows],
        &["queue", "drain", "jobs", "--to", &out],
        &["log", "append", "app", &rows],
        &["log", "export", "app", &out],
        &["log", "tail", "app"],
        &["blob", "cp", &rows, "blob://files/a"],
        &["blob", "cp", "blob://files/a", &out],
        &["status"],
        &["bench", "table"],
    ] {
        let ended = Ended::of(without_server(args));

        let whole = "error: cannot connect to http://127.0.0.1:1\n  hint: is the server running there? nothing was \
                     sent\n  cause: Connection refused\n";
        assert_eq!((ended.code, ended.errors.as_str()), (Some(5), whole), "{args:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the input");
}

#[test]
fn a_byte_order_mark_at_the_beginning_of_input_is_no_content() {
    let (server, folder) = (server(), tempdir().unwrap());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let marked = |name: &str, text: &str| {
        fs::write(path(name), format!("\u{feff}{text}")).unwrap();
        path(name)
    };
    let rows = marked("rows.jsonl", "{\"PartitionKey\":\"p\",\"RowKey\":\"a\"}\n");
    let cells = marked("rows.csv", "PartitionKey,RowKey\np,b\n");
    let messages = marked("jobs.jsonl", "{\"text\":\"one\"}\n");
    let lines = marked("app.json", "{\"msg\":\"one\"}\n");
    let properties = marked("properties.json", "{\"logging\":{\"read\":true}}");
    for create in
        [["table", "create", "rows"], ["log", "create", "app"], ["queue", "create", "jobs"]]
    {
        succeeds(&server, &create);
    }

    for args in [
        &["table", "import", "rows", &rows][..],
        &["table", "import", "rows", &cells],
        &["queue", "load", "jobs", &messages],
        &["log", "append", "app", &lines, "--format", "json", "--strict"],
        &["table", "properties", "set", &properties],
    ] {
        let ended = run(&server, args);
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    }
    let found = succeeds(&server, &["entity", "query", "rows", "-o", "jsonl"]).output;
    assert_eq!(found.lines().count(), 2, "{found}");
}
