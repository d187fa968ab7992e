//! Opening: once at a time, only known formats, and everything is still there.

use std::fs;
use std::path::Path;

use trestle_kv::Keyspace;
use trestle_kv::conformance::domain_of;
use trestle_kv_fjall::{FjallEngine, FjallOptions, OpenError, SyncPolicy};

use crate::child;
use crate::world::{commit, everything, get, key, open, options, put};

fn with_keyspaces(path: &Path, keyspaces: Vec<Keyspace>) -> Result<FjallEngine, OpenError> {
    FjallEngine::open(FjallOptions { keyspaces, ..options(path) })
}

fn open_error(opened: Result<FjallEngine, OpenError>) -> OpenError {
    opened.err().expect("it must not open")
}

#[tokio::test]
async fn reopens_with_other_options_and_keeps_the_data() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();

    for round in 0..5_u8 {
        let defaults = options(path);
        let durability = if round % 2 == 0 { SyncPolicy::Os } else { SyncPolicy::Always };
        let cache_bytes = 1024 * 1024 * (1 + u64::from(round));
        let engine = FjallEngine::open(FjallOptions { durability, cache_bytes, ..defaults });
        let engine = engine.unwrap();
        assert_eq!(everything(&engine).await.len(), usize::from(round));
        commit(&engine, vec![put(key([round]), [round].to_vec())]).await.unwrap();
    }

    let engine = open(path);
    for round in 0..5_u8 {
        assert_eq!(get(&*engine, &key([round])).await, Some(vec![round].into()));
    }
}

pub(crate) fn try_to_open(directory: &Path) {
    let event = match FjallEngine::open(options(directory)) {
        Ok(_) => "opened".to_owned(),
        Err(OpenError::Locked { .. }) => "locked".to_owned(),
        Err(other) => format!("failed: {other}"),
    };
    child::report(&event);
}

#[test]
fn a_second_open_is_rejected_until_the_first_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let other_process = || {
        let output = child::command("open", directory.path()).output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        output.lines().find(|line| ["opened", "locked"].contains(line)).map(str::to_owned)
    };

    let first = open(directory.path());
    let second = FjallEngine::open(options(directory.path()));
    let elsewhere = other_process();
    drop(first);

    assert!(matches!(open_error(second), OpenError::Locked { .. }));
    assert_eq!(elsewhere.as_deref(), Some("locked"));
    assert_eq!(other_process().as_deref(), Some("opened"));
    drop(open(directory.path()));
}

#[tokio::test]
async fn a_snapshot_outlives_its_engine_and_keeps_the_directory_locked() {
    use trestle_kv::Engine as _;
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    commit(&*engine, vec![put(key("a"), "1")]).await.unwrap();

    let view = engine.snapshot().await.unwrap();
    drop(engine);

    assert_eq!(view.get(&key("a")).await.unwrap(), Some("1".into()));
    let second = FjallEngine::open(options(directory.path()));
    assert!(matches!(open_error(second), OpenError::Locked { .. }));
    drop(view);
    drop(open(directory.path()));
}

#[test]
fn a_manifest_of_another_version_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    let manifest = directory.path().join("MANIFEST");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replacen("trestle-kv 1", "trestle-kv 2", 1)).unwrap();

    let error = open_error(FjallEngine::open(options(directory.path())));

    assert!(matches!(error, OpenError::Manifest { .. }));
    assert!(error.to_string().contains("found=`2`, known=`1`"), "{error}");
}

#[test]
fn rejects_a_directory_with_foreign_files_and_keeps_them() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("letter.txt"), "dear").unwrap();

    let error = open_error(FjallEngine::open(options(directory.path())));

    assert!(error.to_string().contains("letter.txt"), "{error}");
    assert_eq!(fs::read_to_string(directory.path().join("letter.txt")).unwrap(), "dear");
    assert!(!directory.path().join("db").exists());
}

#[test]
fn rejects_data_without_a_manifest_and_recreates_an_unfinished_directory() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    fs::remove_file(directory.path().join("MANIFEST")).unwrap();

    let lost = open_error(FjallEngine::open(options(directory.path())));
    assert!(matches!(lost, OpenError::Manifest { .. }), "{lost}");

    // As a crash leaves it that came before the manifest.
    fs::write(directory.path().join("CREATING"), "").unwrap();
    fs::remove_file(directory.path().join("db/version")).unwrap();
    drop(open(directory.path()));
    assert!(!directory.path().join("CREATING").exists());
}

#[tokio::test]
async fn keyspaces_may_be_added_but_neither_moved_nor_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let first = Keyspace { name: "first", kinds: 1..=1, domain: domain_of };
    let second = Keyspace { name: "second", kinds: 2..=9, domain: domain_of };
    let engine = with_keyspaces(path, vec![first.clone()]).unwrap();
    commit(&engine, vec![put(key("a"), "1")]).await.unwrap();
    drop(engine);

    let engine = with_keyspaces(path, vec![second.clone(), first.clone()]).unwrap();
    commit(&engine, vec![put(vec![2, 2], "2")]).await.unwrap();
    assert_eq!(get(&engine, &key("a")).await, Some("1".into()));
    drop(engine);

    let moved = vec![Keyspace { name: "first", kinds: 1..=2, domain: domain_of }];
    for wrong in [vec![first.clone()], moved] {
        assert!(matches!(open_error(with_keyspaces(path, wrong)), OpenError::Manifest { .. }));
    }
    let engine = with_keyspaces(path, vec![first, second]).unwrap();
    assert_eq!(get(&engine, &[2, 2]).await, Some("2".into()));
}

#[test]
fn rejects_invalid_keyspaces_before_creating_files() {
    let keyspace = |name, kinds| Keyspace { name, kinds, domain: domain_of };
    let many: Vec<_> = (0..17_u8).map(|kind| keyspace("k", kind + 1..=kind + 1)).collect();
    let wrong = [
        vec![],
        many,
        vec![keyspace("a", 0..=4)],
        vec![keyspace("", 1..=4)],
        vec![keyspace("a/b", 1..=4)],
        vec![keyspace("a", 1..=4), keyspace("b", 4..=5)],
        vec![keyspace("a", 1..=4), keyspace("a", 5..=5)],
    ];

    for keyspaces in wrong {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data");
        let error = open_error(with_keyspaces(&path, keyspaces));
        assert!(matches!(error, OpenError::Options { .. }), "{error}");
        assert!(!path.exists());
    }
}

/// Three rows, each in a change of its own, the journal as a crash leaves it, and its bytes.
async fn journal_with_three_rows(directory: &Path) -> (std::path::PathBuf, Vec<u8>) {
    let engine = open(directory);
    for row in ["first", "second", "third"] {
        commit(&*engine, vec![put(key(row), format!("value of {row}"))]).await.unwrap();
    }
    drop(engine);
    fs::remove_file(directory.join("CLOSED")).unwrap();
    let journal = directory.join("db/0.jnl");
    let bytes = fs::read(&journal).unwrap();
    (journal, bytes)
}

fn position_of(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()
}

#[tokio::test]
async fn a_journal_cut_inside_its_last_change_opens_without_that_change() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, mut bytes) = journal_with_three_rows(directory.path()).await;

    let end = position_of(&bytes, "value of third") + 3;
    bytes[end..].fill(0);
    fs::write(&journal, bytes).unwrap();

    let engine = open(directory.path());
    assert_eq!(get(&*engine, &key("second")).await, Some("value of second".into()));
    assert_eq!(get(&*engine, &key("third")).await, None);
    commit(&*engine, vec![put(key("third"), "again")]).await.unwrap();
}

#[tokio::test]
async fn a_journal_with_a_flipped_bit_is_rejected_rather_than_read_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let (journal, mut bytes) = journal_with_three_rows(directory.path()).await;

    let position = position_of(&bytes, "value of second");
    bytes[position] ^= 1;
    fs::write(&journal, bytes).unwrap();

    let error = open_error(FjallEngine::open(options(directory.path())));
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}
