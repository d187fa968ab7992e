//! Backups that a server makes by itself.

use rustix::process::{Pid, Signal, kill_process};
use trestle_tests::metric;

use super::*;
use crate::client::becomes;

/// Starts a server that backs `data` up, with more settings; its log is a file of this name.
fn scheduled(backups: &Backups, log: &str, settings: &[(&str, &str)]) -> Server {
    let (data, target) = (backups.text("data"), backups.text("target"));
    let all = [&[("TRESTLE__BACKUP__TARGET", target.as_str())], settings].concat();
    Server::start_logging(&backups.path(log), &["--data-dir", &data], &all)
}

/// Waits until a line of a log has these texts; the line.
pub(super) fn logged(backups: &Backups, log: &str, texts: &[&str]) -> String {
    let mut found = None;
    let is_logged = || {
        let text = fs::read_to_string(backups.path(log)).unwrap();
        found = text
            .lines()
            .find(|line| texts.iter().all(|text| line.contains(text)))
            .map(str::to_owned);
        found.is_some()
    };
    let becomes_logged = becomes(is_logged);
    let text = fs::read_to_string(backups.path(log)).unwrap();
    assert!(becomes_logged, "{texts:?}: {text}");
    found.unwrap()
}

pub(super) fn page(server: &Server) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(server.page("/metrics"))
}

fn runs(page: &str, result: &str) -> Option<f64> {
    metric(page, &format!("trestle_backup_runs_total{{trestle_backup_result=\"{result}\""))
}

/// Waits until one run with a result is counted, and none with another one; the page of metrics.
fn counted(server: &Server, result: &str, other: &str) -> String {
    let mut metrics = String::new();
    let is_counted = || {
        metrics = page(server);
        runs(&metrics, result) == Some(1.0)
    };
    assert!(becomes(is_counted), "{result}");
    assert_eq!(runs(&metrics, other), Some(0.0), "{metrics}");
    metrics
}

fn ids(backups: &Backups) -> Vec<String> {
    let listed = backups.backup("list", &["-o", "jsonl"]).output;
    let id = |line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().map(str::to_owned);
    listed.lines().filter_map(id).collect()
}

fn checkpoints(backups: &Backups) -> Vec<PathBuf> {
    let entries = fs::read_dir(backups.path("data/backup")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_first_backup_is_made_at_the_start_and_a_restart_makes_no_other() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let before = shown(&server, backups.folder.path());
    assert_eq!(server.terminate(), Some(0));

    // What a command would read of the environment and of the working directory is not read by that of a server.
    let wrong = [("TRESTLE__BACKUP__EVERY", "2h"), ("TRESTLE_BACKUP_TARGET", "/dev/null/other")];
    let server = scheduled(&backups, "first", &wrong);
    logged(&backups, "first", &["INFO", "backups are scheduled", "every=7200s"]);
    let line = logged(&backups, "first", &["INFO", "a backup was made", "objects=3"]);
    let id = ids(&backups).pop().unwrap();
    assert!(
        line.contains(&id) && line.contains("sent_bytes=") && line.contains("seconds="),
        "{line}"
    );
    let page = counted(&server, "complete", "failed");
    assert!(
        metric(&page, "trestle_backup_sent_bytes_total").unwrap() > BLOB_BYTES as f64,
        "{page}"
    );
    assert_eq!(metric(&page, "trestle_backup_interval_seconds"), Some(7200.0), "{page}");
    for series in ["trestle_backup_age_seconds", "trestle_backup_duration_seconds"] {
        assert!(metric(&page, series).is_some(), "{series}: {page}");
    }
    assert_eq!(server.terminate(), Some(0));

    let server = scheduled(&backups, "second", &[]);
    let line = logged(&backups, "second", &["backups are scheduled", "newest_age_seconds="]);
    assert!(line.contains("every=3600s"), "{line}");
    assert_eq!(server.terminate(), Some(0));
    // A command that had begun would have left its checkpoint.
    assert_eq!((ids(&backups), checkpoints(&backups).len()), (vec![id], 0));
    assert_eq!(backups.restore("restored", &[]).code, Some(0));
    assert_eq!(shown(&backups.serve("restored"), backups.folder.path()), before);
}

#[test]
fn a_target_that_cannot_be_used_is_reported_and_the_server_serves() {
    let backups = Backups::new();
    fs::write(backups.path("target"), "a file").unwrap();
    let server = scheduled(&backups, "log", &[]);

    let line = logged(&backups, "log", &["WARN", "no backup was made", "cannot be used"]);
    assert!(line.contains("target="), "{line}");
    succeeds(&server, &["table", "create", "orders"]);
    counted(&server, "failed", "complete");
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(fs::read(backups.path("target")).unwrap(), b"a file");
}

#[test]
fn a_backup_that_a_shutdown_ended_is_continued_by_the_next_start() {
    let backups = Backups::new();
    let server = scheduled(&backups, "first", &[("TRESTLE__BACKUP__MAX_RATE", "1")]);
    let is_answered = || checkpoints(&backups).iter().any(|it| it.join("READY").exists());
    assert!(becomes(is_answered));
    let begun = checkpoints(&backups);
    assert_eq!(server.terminate(), Some(0));
    assert_eq!(checkpoints(&backups), begun);

    let server = scheduled(&backups, "second", &[]);
    let id = begun[0].file_name().unwrap().to_str().unwrap();
    logged(&backups, "second", &["a backup was made", id]);
    assert_eq!(checkpoints(&backups), [""; 0].map(PathBuf::from));
    drop(server);
}

/// The process that a server has started.
pub(super) fn child_of(server: &Server) -> Option<Pid> {
    let is_child = |stat: &str| {
        // The name of a program is in parentheses, and may have any character.
        let rest = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace());
        rest.and_then(|mut rest| rest.nth(1)) == Some(&server.pid().to_string())
    };
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    processes.find_map(|process| {
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        let id = process.file_name().to_str()?.parse().ok()?;
        is_child(&stat).then(|| Pid::from_raw(id)).flatten()
    })
}

#[test]
fn what_no_rule_keeps_is_deleted_after_a_backup() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    assert_eq!(server.terminate(), Some(0));
    let settings = [("TRESTLE__BACKUP__KEEP_LAST", "1"), ("TRESTLE__BACKUP__MAX_RATE", "2MiB")];
    let server = scheduled(&backups, "log", &settings);
    let is_answered = || checkpoints(&backups).iter().any(|it| it.join("READY").exists());
    assert!(becomes(is_answered));
    let child = child_of(&server).unwrap();
    // It is stopped while a later backup is made.
    kill_process(child, Signal::STOP).unwrap();
    let later = backups.create()["id"].as_str().unwrap().to_owned();
    let before = ids(&backups);
    kill_process(child, Signal::CONT).unwrap();

    logged(&backups, "log", &["INFO", "old backups were deleted", "backups=1"]);
    assert_eq!((before, ids(&backups)), (vec![later.clone()], vec![later]));
    assert_eq!(backups.backup("verify", &["--all"]).code, Some(0));
    drop(server);
}
