//! Commands that are killed, and their successors.

use std::process::{Child, Stdio};

use super::*;
use crate::client::becomes;

/// Starts a command that is killed before it ends.
fn started(backups: &Backups, args: &[&str]) -> Child {
    let target = backups.text("target");
    let mut command = bare(&[&["backup", args[0], &target], &args[1..]].concat());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn requests(backups: &Backups) -> Vec<PathBuf> {
    let entries = fs::read_dir(backups.path("data/backup")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_backup_that_was_killed_continues_at_its_instant() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let data = backups.text("data");
    let killed = started(&backups, &["create", "--data-dir", &data, "--max-rate", "1"]);
    let is_answered = || requests(&backups).iter().any(|it| it.join("READY").exists());
    assert!(becomes(is_answered));
    kill(killed);
    succeeds(&server, &["entity", "insert", "orders", "-p", "p", "-r", "4", "--set", "v=new"]);
    // Deletes of objects wait for the backup.
    succeeds(&server, &["blob", "rm", "blob://pictures/cat"]);

    let data = backups.text("data");
    let created = backups.backup("create", &["--data-dir", &data]);
    assert_eq!(created.code, Some(0), "{created:?}");
    assert!(created.errors.contains("continuing an interrupted backup"), "{created:?}");
    assert!(requests(&backups).is_empty());
    assert_eq!(backups.restore("restored", &[]).code, Some(0));
    let copy = backups.serve("restored");
    shown(&copy, backups.folder.path());
    assert_eq!(run(&copy, &["entity", "get", "orders", "-p", "p", "-r", "4"]).code, Some(3));
}

#[test]
fn a_restore_that_was_killed_is_no_store_until_it_is_repeated() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    backups.create();
    let data_dir = backups.text("restored");
    let killed = started(&backups, &["restore", "--data-dir", &data_dir]);
    assert!(becomes(|| backups.path("restored/RESTORING").exists()));
    kill(killed);
    // It may have ended just before.
    fs::write(backups.path("restored/RESTORING"), "").unwrap();
    for command in ["serve", "compact", "repair", "doctor"] {
        let refused = Ended::of(bare(&[command, "--data-dir", &data_dir]));
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(refused.errors.contains("restore"), "{refused:?}");
    }
    assert_eq!(backups.restore("restored", &[]).code, Some(0));
    shown(&backups.serve("restored"), backups.folder.path());
}

fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

/// Kills a command once a folder has this number of files, or it has ended.
fn kill_at(mut child: Child, folder: &Path, count: usize) {
    let is_due = || files(folder) >= count || child.try_wait().unwrap().is_some();
    assert!(becomes(is_due));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn kills_at_any_part_of_a_backup_and_of_a_restore_lose_nothing() {
    let backups = Backups::new();
    let server = backups.serve("data");
    fill(&server, backups.folder.path());
    let (data, restored) = (backups.text("data"), backups.text("restored"));
    for round in 0..12 {
        let row = format!("k{round}");
        succeeds(&server, &["entity", "insert", "orders", "-p", "p", "-r", &row, "--set", "v=1"]);
        let parts = files(&backups.path("target"));
        let create = started(&backups, &["create", "--data-dir", &data]);
        kill_at(create, &backups.path("target"), parts + round * 2);
        // Every backup that exists is whole.
        if backups.path("target/backups").exists() {
            let verified = backups.backup("verify", &["--all"]);
            assert_eq!(verified.code, Some(0), "{verified:?}");
        }
    }
    // The last checkpoint may be of an earlier round.
    backups.create();
    backups.create();
    let expected = shown(&server, backups.folder.path());
    for count in 0..12 {
        let restore = started(&backups, &["restore", "--data-dir", &restored]);
        kill_at(restore, &backups.path("restored"), count * 3);
        if backups.path("restored/kv/MANIFEST").exists()
            && !backups.path("restored/RESTORING").exists()
        {
            break;
        }
        if backups.path("restored").exists() {
            let refused = Ended::of(bare(&["repair", "--data-dir", &restored]));
            assert_eq!(refused.code, Some(4), "{refused:?}");
        }
    }
    fs::remove_dir_all(&restored).unwrap();
    assert_eq!(backups.restore("restored", &[]).code, Some(0));
    assert_eq!(shown(&backups.serve("restored"), backups.folder.path()), expected);
}
