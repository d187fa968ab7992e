//! Names of every form, what the target rejects, what differs, and an import that is interrupted.

use rustix::process::{Pid, Signal, kill_process};
use trestle_tests::Container;

use super::*;

/// Characters of a value: with it an entity has almost 1 MiB.
const LONG_CHARS: usize = 30_000;

#[tokio::test]
async fn empty_and_unusual_tables_queues_and_containers_are_copied() {
    let pair = Pair::new();
    let Pair { source, server, .. } = &pair;
    for command in [
        &["table", "create", "Empty"][..],
        &["queue", "create", "empty"],
        &["blob", "container", "create", "empty"],
        &["blob", "container", "create", "$root"],
        &["blob", "container", "create", "$web"],
        &["log", "create", "web"],
    ] {
        succeeds(source, command);
    }
    let root = Container::over(&source.channel(), "$root");
    let names = ["a b", "a%2Fb", "a//b/", "ü?#&", "zero/../x", "'quoted'"];
    for name in names {
        root.write(name, format!("content of {name}")).await.unwrap();
    }

    let ended = pair.run(&[]);

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = lines(&ended.output);
    let summary = found.last().unwrap();
    let count = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(["tables", "queues", "containers", "blobs"].map(count), [1, 1, 3, 6], "{summary}");
    let copied = Container::over(&server.channel(), "$root");
    let mut listed = copied.list("", "").await.unwrap();
    listed.sort();
    let mut expected = names;
    expected.sort_unstable();
    assert_eq!(listed, expected);
    for name in names {
        let content = copied.read(name).await.unwrap().data;
        assert_eq!(content, format!("content of {name}"), "{name}");
    }
    assert_eq!(succeeds(server, &["log", "list", "--json"]), "", "streams of logs are not copied");
}

#[test]
fn large_entities_are_copied_in_chunks_of_their_own() {
    let pair = Pair::new();
    let mut rows = String::new();
    for row in 0..6 {
        let mut entity = json!({ "PartitionKey": "p", "RowKey": row.to_string() });
        for property in 0..16 {
            entity[format!("long{property}")] = json!("x".repeat(LONG_CHARS + row));
        }
        writeln!(rows, "{entity}").unwrap();
    }
    import_rows(&pair.source, pair.folder.path(), "Large", &rows);

    let ended = pair.run(&["--table", "LARGE"]);

    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(lines(&ended.output)[0]["table"], "Large", "as the source spells it: {ended:?}");
    let exported = |server| succeeds(server, &["table", "export", "large", "-"]);
    assert!(exported(&pair.server) == exported(&pair.source), "every entity is equal");
}

#[test]
fn new_names_that_the_target_rejects_are_reported_and_the_rest_is_copied() {
    let pair = Pair::new();
    let Pair { source, server, folder, .. } = &pair;
    let _workspace = fill(source, folder.path());

    let ended = pair.run(&[
        "--table=orders=a-b",
        "--queue=jobs=No",
        "--queue=failed=kept",
        "--container=docs=c--d",
    ]);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = lines(&ended.output);
    for whose in ["table `a-b`", "queue `No`", "container `c--d`"] {
        let line = found.iter().find(|line| line["not_copied"] == whose);
        let line = line.unwrap_or_else(|| panic!("{whose}: {found:?}"));
        assert_eq!(line["which"], "", "all of it: {line}");
        assert!(line["why"].as_str().unwrap().contains("must"), "the rule: {line}");
    }
    let summary = found.last().unwrap();
    assert_eq!((&summary["queues"], &summary["not_copied"]), (&json!(1), &json!(3)), "{summary}");
    assert_eq!(one(server, &["queue", "get", "kept"])["queue"], "kept");
}

#[test]
fn an_entity_that_the_source_does_not_have_is_a_difference() {
    let pair = Pair::new();
    let Pair { source, server, .. } = &pair;
    let insert = |server: &Server, row: &str| {
        succeeds(server, &["entity", "insert", "orders", "-p", "p", "-r", row, "--set", "a=1"]);
    };
    for (server, row) in [(source, "1"), (server, "2")] {
        succeeds(server, &["table", "create", "orders"]);
        insert(server, row);
    }

    let ended = pair.run(&["--into-existing"]);

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("queues and containers that differ: 1,"), "{ended:?}");
    let table = &lines(&ended.output)[0];
    let counts = ["read", "written", "target"].map(|name| table[name].as_u64().unwrap());
    assert_eq!((counts, &table["match"]), ([1, 1, 2], &json!(false)), "{table}");
}

#[test]
fn an_interrupted_import_from_a_server_reports_how_to_resume() {
    let pair = Pair::new();
    let Pair { source, server, folder, .. } = &pair;
    import_rows(source, folder.path(), "Large", &many_rows());
    let import = pair.import(&[]);
    let import: Vec<_> = import.iter().map(String::as_str).collect();
    let mut command = trestle(server, &import);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let checkpoint = folder.path().join("checkpoint");
    let started = Instant::now();
    while !fs::read_to_string(&checkpoint).unwrap_or_default().contains("{\"Message\":") {
        assert!(started.elapsed() < HANG, "no progress");
    }

    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    let resumed = pair.run(&["--resume"]);

    assert_eq!(ended.code, Some(130), "{ended:?}");
    let hint = format!("continue with --resume: checkpoint=`{}`", checkpoint.display());
    assert!(ended.errors.contains(&hint), "{ended:?}");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let counts = format!("\"read\":{ENTITIES},\"written\":{ENTITIES},");
    assert!(resumed.output.contains(&counts), "{resumed:?}");
}
