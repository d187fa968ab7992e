//! New stores that are filled in bulk.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use trestle_kv::Entry;
use trestle_kv::conformance::KEYSPACES;
use trestle_kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use trestle_kv_fjall::{FillError, FjallEngine, OpenError, StoreReader, StoreWriter, compact};
use trestle_model::time::{Clock as _, SystemClock, Ticks};

use crate::world::{commit, everything, get, key, noise, open, options, put};

fn create(path: &Path) -> StoreWriter {
    StoreWriter::create(path, KEYSPACES.to_vec()).unwrap()
}

fn row(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Entry {
    Entry { key: key.into(), value: value.into() }
}

fn fill(writer: &mut StoreWriter, keyspace: &str, rows: &[Entry]) -> Result<u64, FillError> {
    writer.fill(keyspace, rows.iter().cloned().map(Ok))
}

fn read(reader: &StoreReader, keyspace: &str) -> Vec<Entry> {
    reader.rows(keyspace, None).unwrap().map(|row| row.unwrap()).collect()
}

#[tokio::test]
async fn what_is_filled_is_read_by_readers_and_engines_and_written_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/store");
    let numbers = 0..3_000_u32;
    let first: Vec<_> = numbers.map(|it| row(key(it.to_be_bytes()), it.to_string())).collect();
    // The first and the last kind, the biggest key, an empty value and the biggest one.
    let second = [
        row([0x40].to_vec(), ""),
        row(vec![0x41; KEY_BYTES_MAX], "big key"),
        row([0x42].to_vec(), noise(1, VALUE_BYTES_MAX)),
        row([0x43].to_vec(), noise(2, VALUE_BYTES_MAX)),
        row([0xFF].to_vec(), "last"),
    ];
    let floor = SystemClock.now().plus(3_600 * 10_000_000);

    let mut writer = create(&path);
    assert_eq!(fill(&mut writer, "second", &second).unwrap(), 5);
    assert_eq!(fill(&mut writer, "first", &first).unwrap(), 3_000);
    writer.finish(floor).unwrap();
    let mut names: Vec<_> =
        fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["CLOSED", "LOCK", "MANIFEST", "db"]);

    let reader = StoreReader::open(&path, KEYSPACES.to_vec()).unwrap();
    assert_eq!(read(&reader, "first"), first);
    assert!(read(&reader, "second") == second);
    assert_eq!(reader.version_floor(), floor);
    drop(reader);
    let engine = open(&path);
    assert_eq!(everything(&*engine).await, first);
    let version = commit(&*engine, vec![put(first[7].key.clone(), "new")]).await.unwrap();
    assert!(version.ticks() > floor);
    drop(engine);
    compact(&options(&path)).unwrap();
    let engine = open(&path);
    assert_eq!(get(&*engine, &first[7].key).await, Some("new".into()));
    for row in &second {
        assert!(get(&*engine, &row.key).await.as_ref() == Some(&row.value), "{:?}", row.key);
    }
}

#[tokio::test]
async fn a_floor_in_the_past_is_raised_to_the_wall_clock() {
    let directory = tempfile::tempdir().unwrap();
    let before = SystemClock.now();
    create(directory.path()).finish(Ticks::MIN).unwrap();

    let reader = StoreReader::open(directory.path(), KEYSPACES.to_vec()).unwrap();
    assert!(reader.version_floor() >= before);
    assert_eq!((read(&reader, "first"), read(&reader, "second")), (vec![], vec![]));
    drop(reader);
    let engine = open(directory.path());
    assert!(commit(&*engine, vec![put(key("a"), "1")]).await.unwrap().ticks() > before);
}

fn open_errors(path: &Path) -> [OpenError; 3] {
    [
        FjallEngine::open(options(path)).err().unwrap(),
        StoreReader::open(path, KEYSPACES.to_vec()).err().unwrap(),
        StoreWriter::create(path, KEYSPACES.to_vec()).err().unwrap(),
    ]
}

#[test]
fn a_fill_that_was_interrupted_is_never_opened_and_never_removed() {
    for is_filled in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let mut writer = create(path);
        if is_filled {
            fill(&mut writer, "first", &[row(key("a"), "1")]).unwrap();
        }
        let locked = StoreReader::open(path, KEYSPACES.to_vec()).err().unwrap();
        assert!(matches!(locked, OpenError::Manifest { .. }), "{locked}");
        drop(writer);

        // Twice: none of them changes that.
        for error in [open_errors(path), open_errors(path)].into_iter().flatten() {
            assert!(matches!(error, OpenError::Manifest { .. }), "{error}");
        }
        let opened = FjallEngine::open(options(path)).err().unwrap().to_string();
        assert!(opened.contains("a restore into it was not finished"), "{opened}");
        assert!(path.join("db/keyspaces/1").exists());
        assert!(!path.join("MANIFEST").exists() && !path.join("CREATING").exists());
        // Without the mark too, as in a crash between its removal and the manifest.
        fs::remove_file(path.join("RESTORING")).unwrap();
        for error in open_errors(path) {
            assert!(matches!(error, OpenError::Manifest { .. }), "{error}");
        }
    }
}

#[test]
fn only_an_empty_directory_is_filled() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "kept").unwrap();
    let error = StoreWriter::create(directory.path(), KEYSPACES.to_vec()).err().unwrap();
    assert!(error.to_string().contains("found=`file`"), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

    let store = tempfile::tempdir().unwrap();
    drop(open(store.path()));
    let error = StoreWriter::create(store.path(), KEYSPACES.to_vec()).err().unwrap();
    assert!(matches!(error, OpenError::Manifest { .. }), "{error}");
    drop(open(store.path()));
}

#[test]
fn rows_that_do_not_ascend_or_are_of_another_keyspace_or_too_big_are_rejected() {
    let (a, b) = (|| row(key("a"), "1"), || row(key("b"), "1"));
    let cases = [
        ("first", vec![b(), a()], "must ascend by key: keyspace=`first`, key=`\\x01a`"),
        ("first", vec![a(), a()], "must ascend by key"),
        ("first", vec![a(), row([0x40].to_vec(), "")], "of another keyspace: keyspace=`first`"),
        ("first", vec![row([0].to_vec(), "")], "key=`\\x00`"),
        ("second", vec![row([0x3F].to_vec(), "")], "of another keyspace"),
        ("first", vec![row("", "")], "of another keyspace"),
        ("first", vec![row(vec![1; KEY_BYTES_MAX + 1], "")], "key_bytes=`60001`"),
        ("first", vec![row(key("a"), vec![0; VALUE_BYTES_MAX + 1])], "value_bytes=`8388609`"),
        ("third", vec![a()], "no such keyspace: keyspace=`third`"),
    ];
    for (keyspace, rows, expected) in cases {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = create(directory.path());
        let error = fill(&mut writer, keyspace, &rows).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        // What was filled in part is neither filled again nor finished.
        if keyspace != "third" {
            let again = fill(&mut writer, keyspace, &[]).unwrap_err().to_string();
            assert!(again.contains("filled once"), "{again}");
            let unfinished = writer.finish(Ticks::MIN).unwrap_err().to_string();
            assert!(unfinished.contains("was not filled to its end"), "{unfinished}");
            open_errors(directory.path());
        }
    }
}

#[derive(Debug)]
enum SourceError {
    Source,
    Fill,
}

impl From<FillError> for SourceError {
    fn from(_: FillError) -> Self {
        Self::Fill
    }
}

#[test]
fn an_error_of_the_rows_ends_a_fill_and_is_returned() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = create(directory.path());
    let rows = [Ok(row(key("a"), "1")), Err(SourceError::Source), Ok(row(key("b"), "1"))];
    let error = writer.fill("first", rows.into_iter()).unwrap_err();
    assert!(matches!(error, SourceError::Source), "{error:?}");
    let error = writer.fill("third", std::iter::empty()).unwrap_err();
    assert!(matches!(error, SourceError::Fill), "{error:?}");
    assert!(writer.finish(Ticks::MIN).is_err());
}
