//! What is missing or damaged is rejected, and never opened without it.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use trestle_kv_fjall::{FjallEngine, OpenError};

use crate::child;
use crate::world::{commit, get, key, open, options, put};

/// A store with a row in each keyspace, closed. Returns the row of the first.
async fn closed(directory: &Path) -> bytes::Bytes {
    let engine = open(directory);
    for kind in [1, 0x41] {
        commit(&*engine, vec![put(vec![kind, b'a'], "value")]).await.unwrap();
    }
    key("a")
}

/// The reason for which the directory is rejected, again and again. Nothing in it changes by that.
fn rejected(directory: &Path) -> String {
    let before = listing(directory);
    let reject = || match FjallEngine::open(options(directory)) {
        Err(error @ OpenError::Damaged { .. }) => error.to_string(),
        Err(other) => panic!("rejected for another reason: {other}"),
        Ok(_) => panic!("opened"),
    };
    let (first, second) = (reject(), reject());
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

fn overwrite(journal: &Path, position: u64, bytes: &[u8]) {
    let mut file = fs::File::options().write(true).open(journal).unwrap();
    file.seek(SeekFrom::Start(position)).unwrap();
    file.write_all(bytes).unwrap();
}

#[tokio::test]
async fn rejects_a_journal_damaged_after_a_clean_shutdown() {
    for position in [0, 13, 40, 90] {
        let directory = tempfile::tempdir().unwrap();
        closed(directory.path()).await;
        let journal = directory.path().join("db/0.jnl");
        overwrite(&journal, position, &[0xab; 20]);

        let reason = rejected(directory.path());

        assert!(reason.contains("db/0.jnl"), "{reason}");
        assert!(reason.contains("trestle repair"), "does not say what can be done: {reason}");
    }
}

#[tokio::test]
async fn opens_a_damaged_journal_up_to_the_damage_without_the_marker() {
    let directory = tempfile::tempdir().unwrap();
    let row = closed(directory.path()).await;
    let engine = open(directory.path());
    commit(&*engine, vec![put(key("last"), "value")]).await.unwrap();
    drop(engine);
    let journal = directory.path().join("db/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    let position = bytes.windows(4).rposition(|window| window == b"last").unwrap();
    overwrite(&journal, position as u64, &vec![0; bytes.len() - position]);
    rejected(directory.path());

    fs::remove_file(directory.path().join("CLOSED")).unwrap();

    let engine = open(directory.path());
    assert_eq!(get(&*engine, &row).await, Some("value".into()));
    assert_eq!(get(&*engine, &key("last")).await, None);
}

#[tokio::test]
async fn a_failed_open_keeps_the_clean_shutdown_marker() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path()).await;
    let names = directory.path().join("db/keyspaces/0/current");
    let sound = fs::read(&names).unwrap();
    fs::write(&names, b"damaged").unwrap();

    assert!(FjallEngine::open(options(directory.path())).is_err());

    fs::write(&names, sound).unwrap();
    overwrite(&directory.path().join("db/0.jnl"), 40, &[0xab; 20]);
    rejected(directory.path());
}

#[tokio::test]
async fn rejects_a_journal_truncated_after_a_clean_shutdown() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path()).await;
    let journal = fs::File::options().write(true).open(directory.path().join("db/0.jnl")).unwrap();
    journal.set_len(100).unwrap();

    let reason = rejected(directory.path());

    assert!(reason.contains("shorter"), "{reason}");
}

#[tokio::test]
async fn rejects_a_store_without_journals_even_after_a_crash() {
    for marker in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        closed(directory.path()).await;
        fs::remove_file(directory.path().join("db/0.jnl")).unwrap();
        if !marker {
            fs::remove_file(directory.path().join("CLOSED")).unwrap();
        }

        let reason = rejected(directory.path());

        assert!(reason.contains("journal"), "{reason}");
    }
}

#[tokio::test]
async fn rejects_a_store_without_a_keyspace_directory_and_keeps_the_others() {
    for (marker, folder) in
        [true, false].into_iter().flat_map(|marker| (0..3).map(move |n| (marker, n)))
    {
        let directory = tempfile::tempdir().unwrap();
        closed(directory.path()).await;
        let part = format!("db/keyspaces/{folder}");
        fs::remove_dir_all(directory.path().join(&part)).unwrap();
        if !marker {
            fs::remove_file(directory.path().join("CLOSED")).unwrap();
        }

        let reason = rejected(directory.path());

        assert!(reason.contains(&part), "{part}: {reason}");
    }
}

#[tokio::test]
async fn rejects_a_copy_without_the_version_file_of_the_database() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path()).await;
    fs::remove_file(directory.path().join("db/version")).unwrap();

    assert!(rejected(directory.path()).contains("db/version"));
}

#[tokio::test]
async fn the_clean_shutdown_marker_exists_only_while_the_store_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let marker = directory.path().join("CLOSED");
    let row = closed(directory.path()).await;
    assert!(marker.exists());

    let engine = open(directory.path());
    assert!(!marker.exists());
    assert_eq!(get(&*engine, &row).await, Some("value".into()));
    let view = trestle_kv::Engine::snapshot(&*engine).await.unwrap();
    drop(engine);
    assert!(!marker.exists(), "it is still read");
    drop(view);
    assert!(marker.exists());

    // Killed while it was open.
    let mut process = child::command("commit-until-killed", directory.path()).spawn().unwrap();
    let deadline = std::time::Instant::now() + crate::HANG;
    while marker.exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!marker.exists());
    assert_eq!(get(&*open(directory.path()), &row).await, Some("value".into()));
}

#[tokio::test]
async fn opens_a_copy_with_and_without_trailing_zeros() {
    let directory = tempfile::tempdir().unwrap();
    let row = closed(directory.path()).await;
    let journal = directory.path().join("db/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    let end = crate::fixture_files::data_length(&bytes);
    fs::write(&journal, &bytes).unwrap();
    drop(open(directory.path()));
    fs::write(&journal, &bytes[..end]).unwrap();

    assert_eq!(get(&*open(directory.path()), &row).await, Some("value".into()));
}

#[tokio::test]
async fn a_damaged_index_of_tables_is_reported_in_words_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    closed(directory.path()).await;
    let keyspace = directory.path().join("db/keyspaces/1");
    let current = fs::read_dir(&keyspace).unwrap().map(|entry| entry.unwrap().file_name());
    let version =
        current.map(|name| name.into_string().unwrap()).find(|name| name.starts_with('v'));
    fs::write(keyspace.join(version.unwrap()), [0; 8]).unwrap();

    let Err(error) = FjallEngine::open(options(directory.path())) else { panic!("opened") };

    let text = error.to_string();
    for part in [directory.path().to_str().unwrap(), "is damaged or missing", "restore a backup"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("FjallError") && !text.contains("LsmTreeError"), "{text}");
}
