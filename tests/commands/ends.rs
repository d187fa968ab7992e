//! How commands end: with standard error closed, interrupted, and with which codes.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::tempdir;
use trestle_tests::Server;

use crate::client::{
    Ended, bare, becomes, interrupt, run, server, spawned, succeeds, trestle, wait,
};

/// A command whose standard error is closed.
fn unread(mut command: Command) -> Ended {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    command.stderr(writer);
    Ended::of(command)
}

#[test]
fn closed_standard_error_does_not_change_the_exit_code() {
    let (server, directory) = (server(), tempdir().unwrap());
    let file = directory.path().join("rows.jsonl");
    fs::write(&file, "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}\noops\n").unwrap();
    succeeds(&server, &["table", "create", "rows"]);
    let file = file.to_str().unwrap();

    for (args, code) in [
        (&["table", "query", "rows", "--cost"][..], 0),
        (&["table", "query", "nosuch"], 3),
        (&["table", "export", "rows", "-"], 0),
        (&["table", "export", "rows", "-", "--format", "parquet"], 0),
        (&["table", "import", "rows", file, "--keep-going"], 1),
        (&["queue", "load", "nosuch", file], 3),
    ] {
        let unread = unread(trestle(&server, args));
        assert_eq!(unread.code, Some(code), "{args:?}: {unread:?}");
    }
}

/// How a row is written.
fn row(number: usize) -> String {
    format!(r#"{{"PartitionKey":"p","RowKey":"{number:05}","n":{number}}}"#)
}

/// A server with a rate of entities a second for a partition, and a burst.
fn limited(a_second: &str, at_once: &str) -> Server {
    let settings = [
        ("TRESTLE__QUOTAS__PARTITION_ENTITIES_PER_SECOND", a_second),
        ("TRESTLE__QUOTAS__PARTITION_BURST_ENTITIES", at_once),
    ];
    Server::start(&["--ephemeral"], &settings)
}

#[test]
fn an_interrupted_import_reports_its_progress_and_how_to_resume() {
    // All rows take minutes. The first chunk of 500 takes two seconds and writes a checkpoint.
    let (server, directory) = (limited("250", "250"), tempdir().unwrap());
    let path = |name: &str| directory.path().join(name);
    let (file, checkpoint) = (path("rows.jsonl"), path("rows.jsonl.trestle-import"));
    let rows: Vec<_> = (0..60_000).map(row).collect();
    fs::write(&file, rows.join("\n")).unwrap();
    succeeds(&server, &["table", "create", "rows"]);
    let import = ["table", "import", "rows", file.to_str().unwrap()];

    let child = spawned(&server, &import);
    assert!(becomes(|| checkpoint.exists()), "the import saves its progress");
    interrupt(&child);
    let ended = wait(child);

    assert_eq!(ended.code, Some(130), "{ended:?}");
    for text in ["interrupted", &server.endpoint(), " rows written", "continue with --resume"] {
        assert!(ended.errors.contains(text), "{text}: {ended:?}");
    }
    let saved: Value = serde_json::from_slice(&fs::read(&checkpoint).unwrap()).unwrap();
    let done = usize::try_from(saved["state"]["done"]["row"].as_u64().unwrap()).unwrap();
    // The rest of the file may have changed: now it is short.
    fs::write(&file, rows[..done + 10].join("\n")).unwrap();
    let resumed = succeeds(&server, &[&import[..], &["--resume"]].concat());
    assert!(resumed.errors.contains("resumed after row"), "{resumed:?}");
}

#[test]
fn an_import_that_fails_at_a_row_does_not_wait_for_more_input() {
    let server = server();
    succeeds(&server, &["table", "create", "rows"]);
    succeeds(&server, &["table", "insert", "rows", "-p", "p", "-r", "00000", "-s", "mine=1"]);
    let mut import = trestle(&server, &["table", "import", "rows", "-"]);
    import.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = import.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();

    // More than a chunk, without the end of the input.
    for number in 0..600 {
        writeln!(input, "{}", row(number)).unwrap();
    }
    let ended = wait(child);
    drop(input);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.errors.contains("stopped after the chunk of the first failed row: 1 row failed, "),
        "{ended:?}"
    );
}

/// A workspace of Azurite with one table of one partition.
fn write_workspace(folder: &Path, entities: usize) {
    let entity = |number: usize| {
        let keys = format!(r#""PartitionKey":"p","RowKey":"{number:05}""#);
        format!(r#"{{{keys},"properties":{{{keys},"n":{number}}},"eTag":"x","$loki":1}}"#)
    };
    let entities: Vec<_> = (0..entities).map(entity).collect();
    let database = |collections: &[(&str, &str)]| {
        let collection = |(name, data): &(&str, &str)| {
            format!(r#"{{"name":"{name}","data":[{data}],"idIndex":[],"maxId":3}}"#)
        };
        let collections: Vec<_> = collections.iter().map(collection).collect();
        format!(r#"{{"filename":"x","collections":[{}]}}"#, collections.join(","))
    };
    let table = r#"{"account":"devstoreaccount1","table":"Rows","$loki":1}"#;
    let tables = [
        ("$TABLES_COLLECTION$", table),
        ("$SERVICES_COLLECTION$", ""),
        ("devstoreaccount1$Rows", &entities.join(",")),
    ];
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("__azurite_db_table__.json"), database(&tables)).unwrap();
}

#[test]
fn an_import_interrupted_during_the_comparison_reports_how_to_resume() {
    // The copy exhausts the quota, so that the comparison takes minutes.
    let (server, directory) = (limited("1", "200"), tempdir().unwrap());
    let path = |name: &str| directory.path().join(name);
    let (workspace, checkpoint) = (path("ws"), path("ws.trestle-import"));
    write_workspace(&workspace, 200);

    let child = spawned(&server, &["import", "azurite", workspace.to_str().unwrap()]);
    let copied = || {
        fs::read_to_string(&checkpoint)
            .is_ok_and(|checkpoint| checkpoint.contains("\"complete\":true"))
    };
    assert!(becomes(copied), "everything is copied");
    interrupt(&child);
    let ended = wait(child);

    assert_eq!(ended.code, Some(130), "{ended:?}");
    let hint = format!("continue with --resume: checkpoint=`{}`", checkpoint.display());
    for text in ["interrupted", &server.endpoint(), "200 entities", &hint] {
        assert!(ended.errors.contains(text), "{text}: {ended:?}");
    }
}

fn code(server: &Server, args: &[&str]) -> (Option<i32>, String) {
    let ended = run(server, args);
    (ended.code, ended.errors)
}

#[test]
fn a_malformed_row_that_stops_an_import_is_counted_among_the_rows() {
    let (server, directory) = (server(), tempdir().unwrap());
    let file = directory.path().join("rows.jsonl");
    succeeds(&server, &["table", "create", "rows"]);

    for (text, rows) in [("oops\n".to_owned(), 1), (format!("{}\noops\n{}", row(1), row(2)), 2)] {
        fs::write(&file, text).unwrap();
        let ended =
            run(&server, &["table", "import", "rows", file.to_str().unwrap(), "-o", "json"]);

        assert_eq!(ended.code, Some(1), "{ended:?}");
        let found: Value = serde_json::from_str(&ended.output).unwrap();
        assert_eq!((&found["rows"], &found["failed"]), (&rows.into(), &1.into()), "{ended:?}");
    }
}

#[test]
fn a_bench_whose_server_stops_prints_its_measurements_and_what_remains() {
    for (noun, op, show) in
        [("table", "insert", ["entity", "query"]), ("queue", "send", ["message", "peek"])]
    {
        let server = server();
        let bench = ["bench", noun, "--op", op, "--duration", "3s", "--warmup", "1ms", "--json"];
        let mut command = trestle(&server, &bench);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let is_under_load = || {
            let listed = succeeds(&server, &[noun, "list", "--json"]).output;
            let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
            listed[noun].as_str().is_some_and(|name| {
                let show = [&show[..], &[name, "--limit", "1", "--json"]].concat();
                !succeeds(&server, &show).output.is_empty()
            })
        };
        assert!(becomes(is_under_load), "the bench made calls");

        server.kill();
        let ended = wait(child);

        assert_eq!(ended.code, Some(5), "{ended:?}");
        assert!(ended.output.contains("\"latency_us\":"), "{ended:?}");
        let hint = format!("\"hint\":\"{noun} `bench");
        assert!(ended.errors.contains(&hint), "{ended:?}");
        assert!(!ended.errors.contains("nothing was sent"), "{ended:?}");
    }
}

#[test]
fn files_that_are_missing_or_malformed_are_usage_errors() {
    let (server, directory) = (server(), tempdir().unwrap());
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (absent, bad) = (file("absent.jsonl"), file("bad.jsonl"));
    fs::write(&bad, "oops\n").unwrap();
    succeeds(&server, &["table", "create", "rows"]);
    succeeds(&server, &["queue", "create", "jobs"]);

    for args in [
        &["table", "import", "rows", &absent][..],
        &["queue", "load", "jobs", &absent],
        &["queue", "load", "jobs", &bad],
        &["queue", "properties", "set", &absent],
        &["import", "azurite", &absent],
        &["table", "list", "--account", "acme", "--account-key-file", &absent],
        &["table", "list", "--account", "acme", "--sas-file", &absent],
        &["table", "list", "--sas", "foo"],
        &["queue", "create", "more", "--metadata", "a=b", "--metadata", "a=c"],
    ] {
        let (code, errors) = code(&server, args);
        assert_eq!(code, Some(2), "{args:?}: {errors}");
    }
    let https = ["--endpoint", "https://127.0.0.1:1", "--ca-file"];
    for authorities in [&absent, &bad] {
        let args = [&["table", "list"][..], &https, &[authorities]].concat();
        let ended = Ended::of(bare(&args));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let is_reported = ended.errors.contains("has no certificates");
        assert_eq!(is_reported, authorities == &bad, "{ended:?}");
    }
}
