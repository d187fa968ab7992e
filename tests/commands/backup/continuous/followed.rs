//! What is followed, and who follows it.

use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::backup::scheduled::child_of;

fn put(server: &Server, backups: &Backups, content: &[u8]) {
    let file = backups.path("content");
    fs::write(&file, content).unwrap();
    succeeds(server, &["blob", "cp", file.to_str().unwrap(), "blob://pictures/cat"]);
}

/// The content of the blob in a restored instant; none where there is no blob.
fn cat_at(backups: &Backups, instant: &str) -> Option<Vec<u8>> {
    let name = format!("at-{}", instant.replace(':', "-"));
    let restored = backups.restore(&name, &["--to", instant]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let file = backups.path("found");
    let copied =
        run(&backups.serve(&name), &["blob", "cp", "blob://pictures/cat", file.to_str().unwrap()]);
    let read = (copied.code == Some(0)).then(|| fs::read(&file).unwrap());
    let _ = fs::remove_file(file);
    read
}

#[test]
fn a_blob_has_in_each_instant_the_content_that_it_had_then() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["blob", "container", "create", "pictures"]);
    // More than one piece, and in an object of its own.
    let first: Vec<u8> = content();
    let second: Vec<u8> = content().into_iter().rev().collect();
    put(&server, &backups, &first);
    let one = now();
    put(&server, &backups, &second);
    let two = now();
    succeeds(&server, &["blob", "rm", "blob://pictures/cat"]);
    let none = now();
    put(&server, &backups, b"short");
    let last = now();
    covered(&backups, &last);
    assert_eq!(server.terminate(), Some(0));
    assert!(cat_at(&backups, &one).unwrap() == first);
    assert!(cat_at(&backups, &two).unwrap() == second);
    assert_eq!(cat_at(&backups, &none), None);
    assert_eq!(cat_at(&backups, &last).unwrap(), b"short");
    assert_eq!(backups.backup("verify", &["--all"]).code, Some(0));
}

#[test]
fn messages_and_records_are_those_of_the_instant() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["queue", "create", "jobs"]);
    succeeds(&server, &["log", "create", "app"]);
    let lines = backups.path("lines");
    let append = |text: &str| {
        fs::write(&lines, format!("{{\"body\":\"{text}\"}}\n")).unwrap();
        succeeds(&server, &["log", "append", "app", lines.to_str().unwrap()]);
    };
    succeeds(&server, &["message", "send", "jobs", "first"]);
    append("first");
    let one = now();
    succeeds(&server, &["message", "send", "jobs", "second"]);
    append("second");
    let two = now();
    succeeds(&server, &["queue", "clear", "jobs", "--yes"]);
    let three = now();
    covered(&backups, &three);
    drop(server);
    for (instant, messages, records) in [(&one, 1, 1), (&two, 2, 2), (&three, 0, 2)] {
        let name = format!("at-{}", instant.replace(':', "-"));
        assert_eq!(backups.restore(&name, &["--to", instant]).code, Some(0));
        let restored = backups.serve(&name);
        let read = succeeds(&restored, &["log", "read", "app", "--json"]).output;
        let found = (crate::client::messages(&restored, "jobs"), read.lines().count());
        assert_eq!(found, (messages, records), "{read}");
    }
}

#[test]
fn a_restored_store_goes_on_and_is_followed_to_a_target_of_its_own() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    insert(&server, "1");
    covered(&backups, &now());
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(backups.restore("data-2", &["--to", "latest"]).code, Some(0));

    // The target is that of another data directory.
    let (data, target) = (backups.text("data-2"), backups.text("target"));
    let settings = |target: &str| {
        let own = [("TRESTLE__BACKUP__TARGET", target), ("TRESTLE__BACKUP__CONTINUOUS", "true")];
        own.map(|(name, value)| (name, value.to_owned()))
    };
    let start = |log: &str, target: &str| {
        let settings = settings(target);
        let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
        Server::start_logging(&backups.path(log), &["--data-dir", &data], &settings)
    };
    let server = start("refused", &target);
    logged(&backups, "refused", &["not sent", "the backups of another data directory"]);
    insert(&server, "2");
    assert_eq!(server.terminate(), Some(0));
    let server = start("own", &backups.text("target-2"));
    logged(&backups, "own", &["a backup was made"]);
    assert_eq!(run(&server, &["entity", "get", "orders", "-p", "p", "-r", "2"]).code, Some(0));
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_clean_restart_goes_on_with_the_line_and_makes_no_other_backup() {
    let backups = Backups::new();
    let server = continuous(&backups, "first", &[]);
    logged(&backups, "first", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    insert(&server, "1");
    let between = now();
    covered(&backups, &between);
    assert_eq!(server.terminate(), Some(0));
    let server = continuous(&backups, "second", &[]);
    insert(&server, "2");
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    covered(&backups, &now());
    let log = fs::read_to_string(backups.path("second")).unwrap();
    assert!(!log.contains("every instant can be restored"), "{log}");
    assert!(!log.contains("a backup was made"), "{log}");
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(fs::read_dir(backups.path("target/changes")).unwrap().count(), 1, "lines");
    assert_eq!(orders_at(&backups, "latest").output, exported);
    assert_eq!(run(&backups.serve("data"), &["table", "export", "orders", "-"]).output, exported);
}

#[test]
fn what_was_written_while_changes_were_not_followed_is_in_the_next_backup() {
    let backups = Backups::new();
    let server = continuous(&backups, "first", &[]);
    logged(&backups, "first", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    insert(&server, "1");
    let followed = now();
    covered(&backups, &followed);
    assert_eq!(server.terminate(), Some(0));
    let server = backups.serve("data");
    insert(&server, "2");
    let unfollowed = now();
    assert_eq!(server.terminate(), Some(0));

    let server = continuous(&backups, "third", &[]);
    logged(&backups, "third", &["every instant can be restored"]);
    logged(&backups, "third", &["a backup was made"]);
    insert(&server, "3");
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    covered(&backups, &now());
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(orders_at(&backups, "latest").output, exported);
    let refused = backups.restore("refused", &["--to", &unfollowed]);
    assert_eq!(refused.code, Some(2), "nothing shows what there was: {refused:?}");
    let earlier = orders_at(&backups, &followed).output;
    assert!(exported.starts_with(&earlier) && earlier.lines().count() == 1, "{earlier}");
}

/// Whether a process exists.
fn exists(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn the_command_of_a_server_that_was_killed_ends_and_one_that_was_killed_begins_anew() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    let mut found = None;
    assert!(becomes(|| {
        found = child_of(&server);
        found.is_some()
    }));
    let first = found.unwrap();
    kill_process(first, Signal::KILL).unwrap();
    logged(&backups, "log", &["WARN", "changes are not sent to the backup target"]);
    insert(&server, "1");
    covered(&backups, &now());
    let mut found = None;
    assert!(becomes(|| {
        found = child_of(&server);
        found.is_some_and(|pid| pid != first)
    }));
    let second = found.unwrap();
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    server.kill();
    assert!(becomes(|| !exists(second)), "it ends with its server");
    assert_eq!(orders_at(&backups, "latest").output, exported);
}

#[test]
fn a_second_command_and_a_target_without_a_setting_are_refused() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["every instant can be restored"]);
    let data = backups.text("data");
    let second = backups.backup("follow", &["--data-dir", &data]);
    assert_eq!(second.code, Some(5), "{second:?}");
    assert!(second.errors.contains("another command follows the changes"), "{second:?}");
    assert_eq!(server.terminate(), Some(0));
    let inside =
        Ended::of(bare(&["backup", "follow", &format!("{data}/target"), "--data-dir", &data]));
    assert_eq!(inside.code, Some(2), "{inside:?}");
    assert!(inside.errors.contains("must be outside of the data directory"), "{inside:?}");
    let nowhere = Ended::of(bare(&["backup", "follow", "./x", "--data-dir", "/does/not/exist"]));
    assert!(nowhere.errors.contains("there is no store"), "{nowhere:?}");

    let mut check = bare(&["config", "check"]);
    check.env("TRESTLE__BACKUP__CONTINUOUS", "true");
    check.env("TRESTLE__BACKUP__SPOOL_BYTES", "1MiB");
    let checked = Ended::of(check);
    assert_ne!(checked.code, Some(0), "{checked:?}");
    let text = format!("{}{}", checked.output, checked.errors);
    assert!(text.contains("backup.continuous: needs backup.target"), "{text}");
    assert!(text.contains("backup.spool_bytes"), "{text}");
}

#[test]
fn changes_under_load_arrive_in_order_and_once() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[("TRESTLE__STORAGE__DURABILITY", "interval")]);
    logged(&backups, "log", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    let rows: String = (0..3000).map(|row| format!("p{},{row:05},{row}\n", row % 7)).collect();
    let file = backups.path("rows.csv");
    fs::write(&file, format!("PartitionKey,RowKey,v\n{rows}")).unwrap();
    let file = file.to_str().unwrap();
    let mut instants = Vec::new();
    for _ in 0..3 {
        succeeds(&server, &["table", "import", "orders", file, "--mode", "merge"]);
        succeeds(&server, &["entity", "delete", "orders", "-p", "p0", "-r", "00000"]);
        instants.push((now(), succeeds(&server, &["table", "export", "orders", "-"]).output));
    }
    covered(&backups, &now());
    let metrics = page(&server);
    assert_eq!(metric(&metrics, "trestle_backup_gaps_total"), Some(0.0), "{metrics}");
    for (instant, exported) in instants {
        assert!(orders_at(&backups, &instant).output == exported, "{instant}");
    }
    assert_eq!(server.terminate(), Some(0));
}
