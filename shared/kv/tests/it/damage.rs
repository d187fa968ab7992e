//! What is missing or damaged is refused, and never opened without it.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use trestle_kv::{FjallEngine, OpenError};

use crate::child;
use crate::world::{commit, get, key, open, options, put};

/// A store with a row in each keyspace, closed. Returns the row of the first.
async fn closed(directory: &Path) -> bytes::Bytes {
    let engine = open(directory);
    for kind in [1, 0x41] {
        commit(&*engine, vec![put(vec![kind, b'a'], "there")]).await.unwrap();
    }
    key("a")
}

/// The reason for which the directory is refused, again and again. Nothing in it changes by that.
fn refused(directory: &Path) -> String {
    let before = listing(directory);
    let refuse = || match FjallEngine::open(options(directory)) {
        Err(error @ OpenError::Damaged { .. }) => error.to_string(),
        Err(other) => panic!("refused for another reason: {other}"),
        Ok(_) => panic!("opened"),
    };
    let (first, second) = (refuse(), refuse());
    assert_eq!(first, second);
    assert_eq!(listing(directory), before);
    assert!(first.contains(directory.to_str().unwrap()), "{first}");
    first
}

/// Every file below a directory with its length.
fn listing(directory: &Path) -> Vec<(String, u64)> {
    let mut files = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        for entry in fs::read_dir(&path).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                left.push(entry.path());
            }
            let name = entry.path().strip_prefix(directory).unwrap().display().to_string();
            files.push((name, entry.metadata().unwrap().len()));
        }
    }
    files.sort();
    files
}

fn overwrite(journal: &Path, place: u64, bytes: &[u8]) {
    let mut file = fs::File::options().write(true).open(journal).unwrap();
    file.seek(SeekFrom::Start(place)).unwrap();
    file.write_all(bytes).unwrap();
}

#[tokio::test]
async fn a_journal_that_is_damaged_after_a_clean_end_is_refused() {
    for place in [0, 13, 40, 90] {
        let directory = tempfile::tempdir().unwrap();
        closed(directory.path()).await;
        let journal = directory.path().join("db/0.jnl");
        overwrite(&journal, place, &[0xab; 20]);

        let reason = refused(directory.path());

        assert!(reason.contains("db/0.jnl"), "{reason}");
        assert!(reason.contains("CLOSED"), "does not say what can be done: {reason}");
    }
}

#[tokio::test]
async fn without_the_note_what_is_left_of_a_damaged_journal_opens() {
    let directory = tempfile::tempdir().unwrap();
    let row = closed(directory.path()).await;
    let engine = open(directory.path());
    commit(&*engine, vec![put(key("last"), "there")]).await.unwrap();
    drop(engine);
    let journal = directory.path().join("db/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    let place = bytes.windows(4).rposition(|window| window == b"last").unwrap();
    overwrite(&journal, place as u64, &vec![0; bytes.len() - place]);
    refused(directory.path());

    fs::remove_file(directory.path().join("CLOSED")).unwrap();

    let engine = open(directory.path());
    assert_eq!(get(&*engine, &row).await, Some("there".into()));
    assert_eq!(get(&*engine, &key("last")).await, None);
}

#[tokio::test]
async fn an_opening_that_fails_keeps_the_note_for_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path()).await;
    let names = directory.path().join("db/keyspaces/0/current");
    let sound = fs::read(&names).unwrap();
    fs::write(&names, b"damaged").unwrap();

    assert!(FjallEngine::open(options(directory.path())).is_err());

    fs::write(&names, sound).unwrap();
    overwrite(&directory.path().join("db/0.jnl"), 40, &[0xab; 20]);
    refused(directory.path());
}

#[tokio::test]
async fn a_journal_that_is_shorter_after_a_clean_end_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path()).await;
    let journal = fs::File::options().write(true).open(directory.path().join("db/0.jnl")).unwrap();
    journal.set_len(100).unwrap();

    let reason = refused(directory.path());

    assert!(reason.contains("shorter"), "{reason}");
}

#[tokio::test]
async fn a_store_without_its_journals_is_refused_after_a_crash_too() {
    for note in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        closed(directory.path()).await;
        fs::remove_file(directory.path().join("db/0.jnl")).unwrap();
        if !note {
            fs::remove_file(directory.path().join("CLOSED")).unwrap();
        }

        let reason = refused(directory.path());

        assert!(reason.contains("journal"), "{reason}");
    }
}

#[tokio::test]
async fn a_store_without_the_folder_of_a_keyspace_is_refused_and_the_others_stay() {
    for (note, folder) in [true, false].into_iter().flat_map(|note| (0..3).map(move |n| (note, n)))
    {
        let directory = tempfile::tempdir().unwrap();
        closed(directory.path()).await;
        let part = format!("db/keyspaces/{folder}");
        fs::remove_dir_all(directory.path().join(&part)).unwrap();
        if !note {
            fs::remove_file(directory.path().join("CLOSED")).unwrap();
        }

        let reason = refused(directory.path());

        assert!(reason.contains(&part), "{part}: {reason}");
    }
}

#[tokio::test]
async fn a_copy_without_the_version_of_the_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path()).await;
    fs::remove_file(directory.path().join("db/version")).unwrap();

    assert!(refused(directory.path()).contains("db/version"));
}

#[tokio::test]
async fn the_note_of_a_clean_end_is_there_only_while_the_store_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let note = directory.path().join("CLOSED");
    let row = closed(directory.path()).await;
    assert!(note.exists());

    let engine = open(directory.path());
    assert!(!note.exists());
    assert_eq!(get(&*engine, &row).await, Some("there".into()));
    let view = trestle_kv::Engine::snapshot(&*engine).await.unwrap();
    drop(engine);
    assert!(!note.exists(), "it is still read");
    drop(view);
    assert!(note.exists());

    // Killed while it was open.
    let mut process = child::command("commit-until-killed", directory.path()).spawn().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(15);
    while note.exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!note.exists());
    assert_eq!(get(&*open(directory.path()), &row).await, Some("there".into()));
}

#[tokio::test]
async fn a_store_that_an_older_release_wrote_to_since_opens_with_what_it_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let note = directory.path().join("CLOSED");
    closed(directory.path()).await;
    let old = fs::read(&note).unwrap();
    let engine = open(directory.path());
    commit(&*engine, vec![put(key("later"), "there")]).await.unwrap();
    drop(engine);
    // As a release leaves it that does not know the note.
    fs::write(&note, old).unwrap();

    let engine = open(directory.path());

    assert_eq!(get(&*engine, &key("later")).await, Some("there".into()));
}

#[tokio::test]
async fn a_copy_of_a_closed_store_opens_whatever_the_copy_does_with_zeros() {
    let directory = tempfile::tempdir().unwrap();
    let row = closed(directory.path()).await;
    let journal = directory.path().join("db/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    fs::write(&journal, &bytes).unwrap();
    drop(open(directory.path()));
    fs::write(&journal, &bytes[..end]).unwrap();

    assert_eq!(get(&*open(directory.path()), &row).await, Some("there".into()));
}
