//! Copies of many blobs and snapshots, into targets that exist, and beside restarts of the source.

use trestle_tests::Container;

use super::*;

/// More snapshots of a blob than a page of the list of its name has.
const SNAPSHOTS: usize = 130;

#[tokio::test]
async fn a_killed_import_copies_each_blob_and_snapshot_of_a_server_once() {
    let pair = Pair::new();
    let Pair { source, server, folder, .. } = &pair;
    let workspace = written(&many());
    succeeds(source, &["import", "azurite", &path(&workspace), "--snapshots"]);

    kill_after_progress(server, &pair.import(&["--snapshots"]), folder.path(), "Marker");
    let without_snapshots = pair.run(&["--resume"]);
    let resumed = pair.run(&["--snapshots", "--resume"]);

    assert_eq!(without_snapshots.code, Some(2), "{without_snapshots:?}");
    assert!(without_snapshots.errors.contains("was another one"), "{without_snapshots:?}");
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let copied = MANY + MANY / 10;
    let found = lines(&resumed.output);
    assert_eq!(found[0]["read"], copied, "{resumed:?}");
    assert_eq!(found.last().unwrap()["blobs"], copied, "{resumed:?}");
    assert_eq!(described(server, true).await, described(source, true).await);
}

#[tokio::test]
async fn every_snapshot_of_a_blob_is_copied_in_its_order() {
    let pair = Pair::new();
    let Pair { source, server, .. } = &pair;
    let container = Container::over(&source.channel(), "docs");
    container.create().await.unwrap();
    for number in 0..SNAPSHOTS {
        container.write("a", format!("state {number}")).await.unwrap();
        container.snapshot("a").await.unwrap();
    }
    container.write("a", "last").await.unwrap();
    // Their names begin with that of the other one.
    for name in ["a/b", "ab"] {
        container.write(name, name).await.unwrap();
        container.snapshot(name).await.unwrap();
    }

    let ended = pair.run(&["--snapshots"]);

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let listed =
        |server| lines(&succeeds(server, &["blob", "ls", "docs", "--snapshots", "--json"]));
    let (copied, original) = (listed(server), listed(source));
    assert_eq!((copied.len(), original.len()), (SNAPSHOTS + 5, SNAPSHOTS + 5));
    let copies = Container::over(&server.channel(), "docs");
    let mut states = Vec::new();
    for snapshot in copied.iter().filter(|it| it["blob"] == "a" && !it["snapshot"].is_null()) {
        let snapshot = snapshot["snapshot"].as_str().unwrap().to_owned();
        let request = trestle_proto::blob::v1::ReadBlobRequest { snapshot, ..copies.reading("a") };
        let content = copies.read_with(request).await.unwrap().data;
        states.push(String::from_utf8(content.to_vec()).unwrap());
    }
    let expected: Vec<_> = (0..SNAPSHOTS).map(|number| format!("state {number}")).collect();
    assert_eq!(states, expected);
    assert_eq!(succeeds(server, &["blob", "cat", "docs/a"]), "last");
    assert_eq!(succeeds(server, &["blob", "cat", "docs/a/b"]), "a/b");
}

#[test]
fn existing_targets_are_filled_only_with_into_existing() {
    let pair = Pair::new();
    let Pair { source, server, folder, .. } = &pair;
    let _workspace = fill(source, folder.path());
    for command in [
        &["table", "create", "orders"][..],
        &["entity", "insert", "orders", "-p", "it's ä", "-r", "", "--set", "old=yes"],
        &["queue", "create", "jobs"],
        &["message", "send", "jobs", "mine"],
        &["blob", "container", "create", "docs"],
    ] {
        succeeds(server, command);
    }

    let rejected = pair.run(&[]);
    let filled = pair.run(&["--into-existing"]);

    assert_eq!(rejected.code, Some(2), "{rejected:?}");
    let rule = "targets are not empty: table `Orders`, queue `jobs`; nothing was copied";
    assert!(rejected.errors.contains(rule), "{rejected:?}");
    assert_eq!(filled.code, Some(0), "{filled:?}");
    let exported = |server| succeeds(server, &["table", "export", "orders", "-"]);
    assert_eq!(exported(server), exported(source), "the entity is replaced");
    let texts: Vec<_> = messages(server, "jobs").into_iter().map(|(text, ..)| text).collect();
    assert_eq!(texts, [json!("mine"), json!("first"), json!("second"), Value::Null]);
    let settings = one(server, &["queue", "get", "jobs"]);
    assert_eq!(settings["dead_letter"], "failed", "{settings}");
    assert_eq!(settings["metadata"]["owner"], "me", "{settings}");
}

#[test]
fn blobs_are_not_copied_where_they_are_skipped() {
    let pair = Pair::new();
    let _workspace = fill(&pair.source, pair.folder.path());

    let ended = pair.run(&["--skip-blobs"]);

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let found = lines(&ended.output);
    let summary = found.last().unwrap();
    assert_eq!((&summary["tables"], &summary["containers"]), (&json!(1), &json!(0)), "{summary}");
    assert_eq!(succeeds(&pair.server, &["blob", "container", "list", "--json"]), "");
}

#[test]
fn an_import_survives_a_restart_of_the_source_and_keeps_its_checkpoint_beside_it() {
    let Pair { _data: data, folder, source, server } = Pair::new();
    import_rows(&source, folder.path(), "Large", &many_rows());
    let address = source.address("grpc");
    let mut import = trestle(&server, &["import", "trestle", &address, "--json"]);
    import.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut import = import.spawn().unwrap();
    let name = format!("{}.trestle-import", address.replace(':', "-"));
    let checkpoint = folder.path().join(name);
    let started = Instant::now();
    while !fs::read_to_string(&checkpoint).unwrap_or_default().contains("{\"Message\":") {
        assert!(started.elapsed() < HANG, "no progress");
        assert!(import.try_wait().unwrap().is_none(), "the import ended before the restart");
    }

    source.kill();
    let data_dir = data[0].path().to_str().unwrap();
    let source = Server::start_at(&address, &["--data-dir", data_dir], &[]);
    let ended = Ended::from(import.wait_with_output().unwrap());

    assert_eq!(ended.code, Some(0), "{ended:?}");
    let counts = format!("\"table\":\"Large\",\"read\":{ENTITIES},\"written\":{ENTITIES},");
    assert!(ended.output.contains(&counts), "{ended:?}");
    let exported = |server| succeeds(server, &["table", "export", "large", "-"]);
    assert!(exported(&server) == exported(&source), "every entity is equal");
    assert!(!checkpoint.exists(), "it is removed at the end");
}
