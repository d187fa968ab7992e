//! Continuous backups: any instant is restored.

mod copies;
mod followed;
mod lost;
mod windows;

use std::time::{Duration, SystemTime};

use trestle_tests::metric;

use super::{
    scheduled::{logged, page},
    *,
};
use crate::client::becomes;

/// Starts a server that sends every change to the target; its log is a file of this name.
pub(super) fn continuous(backups: &Backups, log: &str, settings: &[(&str, &str)]) -> Server {
    let (data, target) = (backups.text("data"), backups.text("target"));
    let own = [
        ("TRESTLE__BACKUP__TARGET", target.as_str()),
        ("TRESTLE__BACKUP__CONTINUOUS", "true"),
        ("TRESTLE__BACKUP__EVERY", "30d"),
    ];
    Server::start_logging(&backups.path(log), &["--data-dir", &data], &[&own, settings].concat())
}

/// The time, by RFC 3339, which is later than that of everything acknowledged before, and earlier than of all after it.
#[expect(clippy::disallowed_methods, reason = "a person names the time of the clock")]
pub(super) fn now() -> String {
    let pause = || std::thread::sleep(Duration::from_millis(30));
    pause();
    let time: prost_types::Timestamp = SystemTime::now().into();
    pause();
    time.to_string()
}

/// Waits until an instant can be restored.
pub(super) fn covered(backups: &Backups, instant: &str) {
    let until = || {
        let listed = backups.backup("list", &["-o", "jsonl"]).output;
        let record: Value = serde_json::from_str(listed.lines().last()?).ok()?;
        record["restorable_until"].as_str().map(str::to_owned)
    };
    assert!(becomes(|| until().is_some_and(|until| *until > *instant)), "{instant}: {:?}", until());
}

/// Restores an instant, and shows the orders of it.
fn orders_at(backups: &Backups, instant: &str) -> Ended {
    let name = format!("at-{}", instant.replace(':', "-"));
    let restored = backups.restore(&name, &["--to", instant]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    run(&backups.serve(&name), &["table", "export", "orders", "-"])
}

pub(super) fn insert(server: &Server, row: &str) {
    succeeds(server, &["entity", "insert", "orders", "-p", "p", "-r", row, "--set", "v=1"]);
}

#[test]
fn any_instant_is_restored() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["every instant can be restored"]);
    logged(&backups, "log", &["a backup was made"]);
    fill(&server, backups.folder.path());
    let before = shown(&server, backups.folder.path());
    let whole = now();
    insert(&server, "4");
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    let four = now();
    succeeds(&server, &["table", "delete", "orders", "--yes"]);
    succeeds(&server, &["blob", "rm", "blob://pictures/cat"]);
    let deleted = now();
    covered(&backups, &deleted);

    assert_eq!(orders_at(&backups, &four).output, exported);
    assert_eq!(orders_at(&backups, &deleted).code, Some(3));
    assert_eq!(backups.restore("whole", &["--to", &whole]).code, Some(0));
    assert_eq!(shown(&backups.serve("whole"), backups.folder.path()), before);
    let page = page(&server);
    assert_eq!(metric(&page, "trestle_backup_gaps_total"), Some(0.0), "{page}");
    for series in ["trestle_backup_lag_seconds", "trestle_backup_spool_bytes"] {
        assert!(metric(&page, series).is_some(), "{series}: {page}");
    }
    assert_eq!(backups.backup("verify", &[]).code, Some(0));
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn kills_leave_no_gap() {
    let backups = Backups::new();
    let mut instants = Vec::new();
    for round in 0..6 {
        let server = continuous(&backups, &format!("log-{round}"), &[]);
        if round == 0 {
            logged(&backups, "log-0", &["a backup was made"]);
            succeeds(&server, &["table", "create", "orders"]);
        }
        for row in 0..5 {
            insert(&server, &format!("{round}-{row}"));
        }
        let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
        instants.push((now(), exported));
        server.kill();
    }
    let server = continuous(&backups, "last", &[]);
    insert(&server, "last");
    let last = succeeds(&server, &["table", "export", "orders", "-"]).output;
    covered(&backups, &now());
    let log = fs::read_to_string(backups.path("last")).unwrap();
    assert!(!log.contains("cannot be restored until"), "{log}");
    // After a crash the time of a store is up to a second ahead.
    for (instant, exported) in instants {
        let found = orders_at(&backups, &instant).output;
        assert!(exported.starts_with(&found) || found == exported, "{instant}: {found}");
    }
    assert_eq!(orders_at(&backups, "latest").output, last);
    drop(server);
}

#[test]
fn a_target_that_is_away_costs_no_write_and_no_gap_once_it_is_back() {
    let backups = Backups::new();
    let server = continuous(&backups, "first", &[]);
    logged(&backups, "first", &["a backup was made"]);
    succeeds(&server, &["table", "create", "orders"]);
    covered(&backups, &now());
    assert_eq!(server.terminate(), Some(0));
    let (target, away) = (backups.path("target"), backups.path("away"));
    fs::rename(&target, &away).unwrap();
    fs::write(&target, "a file").unwrap();
    let server = continuous(&backups, "second", &[]);
    logged(&backups, "second", &["changes are not sent to the backup target"]);
    insert(&server, "1");
    let exported = succeeds(&server, &["table", "export", "orders", "-"]).output;
    let instant = now();
    insert(&server, "2");
    fs::remove_file(&target).unwrap();
    fs::rename(&away, &target).unwrap();
    covered(&backups, &now());
    assert_eq!(orders_at(&backups, &instant).output, exported);
    let log = fs::read_to_string(backups.path("second")).unwrap();
    assert!(!log.contains("every instant can be restored"), "the same line: {log}");
    assert_eq!(metric(&page(&server), "trestle_backup_gaps_total"), Some(0.0));
    drop(server);
}

#[test]
fn any_instant_is_shown_without_a_restore() {
    let backups = Backups::new();
    let server = continuous(&backups, "log", &[]);
    logged(&backups, "log", &["a backup was made"]);
    fill(&server, backups.folder.path());
    let before = shown(&server, backups.folder.path());
    let whole = now();
    succeeds(&server, &["table", "delete", "orders", "--yes"]);
    succeeds(&server, &["blob", "rm", "blob://pictures/cat"]);
    succeeds(&server, &["message", "receive", "jobs"]);
    let deleted = now();
    covered(&backups, &deleted);
    assert_eq!(server.terminate(), Some(0));
    fs::remove_dir_all(backups.path("data")).unwrap();

    let (target, scratch) = (backups.text("target"), backups.text("scratch"));
    fs::create_dir(&scratch).unwrap();
    let at = |instant: &str| {
        let args = ["--backup", &target, "--backup-to", instant];
        Server::start(&args, &[("TMPDIR", &scratch)])
    };
    let copy = at(&whole);
    assert_eq!(shown(&copy, backups.folder.path()), before);
    let rejected = run(&copy, &["table", "create", "later"]);
    assert!(rejected.errors.contains("a backup, which accepts no writes"), "{rejected:?}");
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 1, "its changes are there");
    assert_eq!(copy.terminate(), Some(0));
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);

    let copy = at("latest");
    assert_eq!(run(&copy, &["entity", "query", "orders"]).code, Some(3));
    assert_eq!(run(&copy, &["blob", "stat", "blob://pictures/cat"]).code, Some(3));
    drop(copy);
    let absent = ["serve", "--backup", &target, "--backup-to", "latest", "--backup-id", "absent"];
    let refused = Ended::of(bare(&absent));
    assert!(refused.code == Some(2) && refused.errors.contains("id=`absent`"), "{refused:?}");
    let refused = Ended::of(bare(&["serve", "--backup", &target, "--backup-to", "yesterday"]));
    assert!(refused.code == Some(2) && refused.errors.contains("RFC 3339"), "{refused:?}");
}
