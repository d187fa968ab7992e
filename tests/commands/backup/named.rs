//! Parts of a backup, copied into the running server, and what differs from it.

use super::*;

fn changes(output: &str) -> Vec<(String, String, Vec<String>)> {
    let change = |line: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| record[name].as_str().unwrap().to_owned();
        let names = record["properties"].as_array().unwrap().iter();
        let names = names.map(|name| name.as_str().unwrap().to_owned()).collect();
        (text("change"), text("row_key"), names)
    };
    output.lines().map(change).collect()
}

#[test]
fn a_mistake_is_found_by_diff_and_undone_beside_the_running_table() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    backups.create();
    let keys = |row| ["orders", "-p", "p", "-r", row];
    succeeds(&server, &[&["entity", "delete"], &keys("1")[..]].concat());
    let update = [&["entity", "upsert"], &keys("2")[..], &["--set", "v=new"]].concat();
    succeeds(&server, &update);
    succeeds(&server, &[&["entity", "insert"], &keys("4")[..], &["--set", "v=old"]].concat());
    // As it was, and so no change.
    succeeds(&server, &[&["entity", "upsert"], &keys("3")[..], &["--set", "v=old"]].concat());

    let target = backups.text("target");
    let diff = |table: &str, more: &[&str]| {
        run(&server, &[&["backup", "diff", &target, "--table", table], more].concat())
    };
    let found = diff("orders", &["-o", "jsonl"]);
    let change = |change: &str, row: &str, names: &[&str]| {
        (change.to_owned(), row.to_owned(), names.iter().map(|it| (*it).to_owned()).collect())
    };
    let expected =
        [change("removed", "1", &[]), change("changed", "2", &["v"]), change("added", "4", &[])];
    assert_eq!((found.code, changes(&found.output)), (Some(0), expected.into()), "{found:?}");
    let people = diff("orders", &[]);
    let counts = "orders: 3 entities differ: 1 added, 1 changed, 1 removed";
    assert!(people.errors.contains(counts), "{people:?}");
    let absent = diff("absent", &[]);
    assert!(absent.code == Some(2) && absent.errors.contains("table=`absent`"), "{absent:?}");

    let restore = |args: &[&str]| run(&server, &[&["backup", "restore", &target], args].concat());
    let filled = restore(&["--table", "orders"]);
    assert_eq!(filled.code, Some(2), "{filled:?}");
    assert!(filled.errors.contains("not empty"), "{filled:?}");
    let restored = restore(&["--table", "orders=ordersBefore"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let before = succeeds(&server, &["table", "export", "ordersBefore", "-"]).output;
    assert_eq!(before, exported);
    assert_eq!(
        succeeds(&server, &["entity", "query", "orders", "-o", "jsonl"]).output.lines().count(),
        3
    );

    succeeds(&server, &["table", "delete", "orders", "--yes"]);
    let found = diff("orders", &["-o", "jsonl"]);
    assert_eq!(changes(&found.output).len(), 3, "{found:?}");
    assert!(found.errors.contains("does not exist now"), "{found:?}");
    let restored =
        restore(&["--table", "orders", "--container", "pictures=album", "--queue", "jobs=again"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(succeeds(&server, &["table", "export", "orders", "-"]).output, exported);
    let copy = backups.text("copy");
    succeeds(&server, &["blob", "cp", "blob://album/cat", &copy]);
    assert!(fs::read(copy).unwrap() == content());
    let peeked = succeeds(&server, &["message", "peek", "again"]).output;
    assert!(peeked.contains("resize"), "{peeked}");
}

#[test]
fn names_that_are_wrong_are_named_and_nothing_is_written() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    backups.create();
    let target = backups.text("target");
    let before = succeeds(&server, &["table", "list"]).output;
    for (args, expected) in [
        (&["--table", "absent=x"][..], "--table"),
        (&["--table", "orders=a", "--table", "orders=b"], "once"),
        (&["--table", "orders=", "--table", "b"], "--table"),
        (&["--table", "orders=x", "--data-dir", "d"], "--data-dir"),
        (&["--into-existing", "--data-dir", "d"], "--table"),
        (&[], "--data-dir"),
        (&["--table", "orders=x", "--from-account", "UPPER"], "UPPER"),
        (&["--table", "orders=x", "--from-account", "another"], "--table"),
        (&["--table", "orders=x", "--id", "absent"], "id=`absent`"),
    ] {
        let refused = run(&server, &[&["backup", "restore", &target], args].concat());
        assert_eq!(refused.code, Some(2), "{args:?}: {refused:?}");
        assert!(refused.errors.contains(expected), "{args:?}: {refused:?}");
    }
    assert_eq!(succeeds(&server, &["table", "list"]).output, before);
    let listed = Ended::of(bare(&["backup", "list", &target, "--endpoint", "http://127.0.0.1:1"]));
    assert!(listed.code == Some(2) && listed.errors.contains("takes no --endpoint"), "{listed:?}");
}

#[test]
fn a_table_of_any_instant_is_put_back_beside_the_running_one() {
    let backups = Backups::new();
    let server = continuous::continuous(&backups, "log", &[]);
    scheduled::logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    continuous::insert(&server, "1");
    continuous::insert(&server, "2");
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    let before = continuous::now();
    succeeds(&server, &["entity", "delete", "orders", "-p", "p", "-r", "1"]);
    continuous::insert(&server, "3");
    let after = continuous::now();
    continuous::covered(&backups, &after);

    let target = backups.text("target");
    let diff = |when: [&str; 2]| {
        let table = ["backup", "diff", &target, "--table", "orders", "-o", "jsonl"];
        let found = succeeds(&server, &[&table[..], &when].concat());
        changes(&found.output).into_iter().map(|(change, row, _)| (change, row)).collect::<Vec<_>>()
    };
    let change = |change: &str, row: &str| (change.to_owned(), row.to_owned());
    let expected = [change("removed", "1"), change("added", "3")];
    assert_eq!(diff(["--since", &before]), expected);
    assert_eq!(diff(["--to", &after]), []);
    let restored = run(
        &server,
        &["backup", "restore", &target, "--to", &before, "--table", "orders=ordersBefore"],
    );
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(succeeds(&server, &["table", "export", "ordersBefore", "-"]).output, exported);
    let early = run(
        &server,
        &["backup", "restore", &target, "--to", "2020-01-01T00:00:00Z", "--table", "orders=x"],
    );
    assert!(early.code == Some(2) && early.errors.contains("cannot be restored"), "{early:?}");
}

/// A key of an account.
fn key_of(number: u8) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode([number; 64])
}

#[test]
fn an_encrypted_backup_of_several_accounts_is_read_by_account() {
    let backups = Backups::new();
    let (data, keys) = (backups.text("data"), [1, 2].map(key_of));
    let accounts = [
        ("TRESTLE__ACCOUNTS__FIRST__KEY1", keys[0].as_str()),
        ("TRESTLE__ACCOUNTS__SECOND__KEY1", keys[1].as_str()),
    ];
    let server = Server::start(&["--data-dir", &data], &accounts);
    let run_as = |account: usize, args: &[&str]| {
        let mut command = bare(args);
        command.env("TRESTLE_ENDPOINT", server.endpoint());
        command.env("TRESTLE_ACCOUNT", ["first", "second"][account]);
        command.env("TRESTLE_ACCOUNT_KEY", &keys[account]);
        command.current_dir(backups.folder.path());
        Ended::of(command)
    };
    let succeeds_as = |account: usize, args: &[&str]| {
        let ended = run_as(account, args);
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        ended.output
    };
    for (account, value) in [(0, "v=one"), (1, "v=two")] {
        succeeds_as(account, &["table", "create", "orders"]);
        let insert = ["entity", "insert", "orders", "-p", "p", "-r", "r", "--set", value];
        succeeds_as(account, &insert);
    }
    let [key, public] = encrypted::keys(&backups, "vault");
    assert_eq!(encrypted::create(&backups, &public).code, Some(0));
    let target = backups.text("target");
    let restore = |account: usize, args: &[&str]| {
        run_as(account, &[&["backup", "restore", &target], args].concat())
    };
    let without = restore(0, &["--table", "orders=mine"]);
    assert!(without.code == Some(2) && without.errors.contains("--decrypt"), "{without:?}");
    let own = restore(0, &["--table", "orders=mine", "--decrypt", &key]);
    assert_eq!(own.code, Some(0), "{own:?}");
    assert!(succeeds_as(0, &["table", "export", "mine", "-"]).contains("one"));
    let args = ["--table", "orders=other", "--from-account", "second", "--decrypt", &key];
    let other = restore(0, &args);
    assert_eq!(other.code, Some(0), "{other:?}");
    assert!(succeeds_as(0, &["table", "export", "other", "-"]).contains("two"));
    // Again, over what is there.
    let again = restore(0, &args);
    assert!(again.code == Some(2) && again.errors.contains("not empty"), "{again:?}");
    let again = restore(0, &[&args[..], &["--into-existing"]].concat());
    assert_eq!(again.code, Some(0), "{again:?}");
    let diff = ["backup", "diff", &target, "--table", "orders", "--decrypt", &key];
    let same = run_as(1, &diff);
    assert!(same.code == Some(0) && same.errors.contains("0 entities differ"), "{same:?}");
    let differs = run_as(1, &[&diff[..], &["--from-account", "first", "-o", "jsonl"]].concat());
    assert_eq!(changes(&differs.output).len(), 1, "{differs:?}");
}

#[test]
fn what_a_copy_has_not_is_named_and_the_rest_is_there() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    for number in 0..40 {
        succeeds(&server, &["message", "send", "jobs", &format!("job {number}")]);
    }
    succeeds(&server, &["blob", "snapshot", "blob://pictures/small"]);
    let later = backups.path("lines");
    fs::write(&later, "later").unwrap();
    succeeds(&server, &["blob", "cp", later.to_str().unwrap(), "blob://pictures/small"]);
    backups.create();
    let target = backups.text("target");
    let empty = backups.path("empty");
    fs::create_dir(&empty).unwrap();
    let restore = |args: &[&str]| {
        let mut restore = trestle(&server, &[&["backup", "restore", &target], args].concat());
        restore.current_dir(&empty);
        Ended::of(restore)
    };

    let queue = restore(&["--queue", "jobs=before"]);
    assert_eq!(queue.code, Some(0), "{queue:?}");
    let texts = |queue: &str| {
        let peeked = succeeds(&server, &["message", "peek", queue, "--all", "-o", "jsonl"]).output;
        let text = |line: &str| serde_json::from_str::<Value>(line).unwrap()["text"].to_string();
        peeked.lines().map(text).collect::<Vec<_>>()
    };
    let restored = texts("before");
    assert_eq!((restored.len(), restored[0].as_str()), (41, "\"resize\""), "{restored:?}");
    assert_eq!(restored[1..], texts("jobs")[1..41]);

    let listed = |container: &str, more: &[&str]| {
        let args = [&["blob", "ls", container, "-o", "jsonl"], more].concat();
        succeeds(&server, &args).output.lines().count()
    };
    let snapshots = |container: &str| listed(container, &["--snapshots"]) - listed(container, &[]);
    for (name, more, expected) in [("plain", &[][..], 0), ("all", &["--snapshots"], 1)] {
        let container = format!("pictures={name}");
        let copied = restore(&[&["--container", &container], more].concat());
        assert_eq!(copied.code, Some(0), "{copied:?}");
        assert_eq!(snapshots(name), expected, "{name}");
        let address = format!("blob://{name}/small");
        assert_eq!(succeeds(&server, &["blob", "cat", &address]).output, "later");
    }

    let left: Vec<_> = fs::read_dir(&empty).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(left.is_empty(), "no checkpoint is left: {left:?}");
    let resumed = restore(&["--table", "orders=resumed", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.errors.contains("no interrupted import was found"), "{resumed:?}");
}
