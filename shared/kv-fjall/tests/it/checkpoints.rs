//! Copies of a store at one instant, while it goes on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use tokio::task::{JoinSet, spawn_blocking};
use trestle_kv::conformance::KEYSPACES;
use trestle_kv::{CommitPoint, Engine, Span, Write};
use trestle_kv_fjall::{
    CheckpointError, Checkpointer, FjallEngine, FjallOptions, OpenError, StoreReader, SyncPolicy,
    compact,
};
use trestle_model::time::Ticks;

use crate::world::{commit, everything, get, key, noise, open, options, put};

const POLICIES: [SyncPolicy; 3] =
    [SyncPolicy::Always, SyncPolicy::Interval(Duration::from_millis(10)), SyncPolicy::Os];

/// Copies for each policy.
const COPIES: usize = 8;

fn second(name: impl AsRef<[u8]>) -> Bytes {
    [&[0x40], name.as_ref()].concat().into()
}

fn numbered(number: u64) -> Bytes {
    second(format!("n/{number:08}"))
}

fn read(directory: &Path) -> StoreReader {
    StoreReader::open(directory, KEYSPACES.to_vec()).unwrap()
}

fn rows(reader: &StoreReader, keyspace: &str) -> BTreeMap<Bytes, Bytes> {
    let rows = reader.rows(keyspace, None).unwrap().map(|row| row.unwrap());
    rows.map(|row| (row.key, row.value)).collect()
}

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().unwrap())
}

/// What wrote so far, and whether it is to go on.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
    /// Changes that were acknowledged.
    acknowledged: AtomicU64,
}

/// Counts in both keyspaces by one change after the other; their versions.
async fn count(engine: Arc<FjallEngine>, load: Arc<Load>) -> Vec<Ticks> {
    let mut versions = vec![Ticks::MIN];
    while !load.is_over.load(SeqCst) {
        let next = versions.len() as u64;
        let value = next.to_be_bytes().to_vec();
        let writes = vec![
            put(key("counter"), value.clone()),
            put(numbered(next), noise(next, 3_000)),
            put(second("counter"), value),
        ];
        versions.push(commit(&*engine, writes).await.unwrap().ticks());
        load.acknowledged.store(next, SeqCst);
    }
    versions
}

/// Overwrites the same rows, so that compactions replace tables.
async fn overwrite(engine: Arc<FjallEngine>, load: Arc<Load>) {
    for round in 0_u64.. {
        if load.is_over.load(SeqCst) {
            return;
        }
        let row = key(format!("o/{}", round % 50));
        commit(&*engine, vec![put(row, noise(round, 20_000))]).await.unwrap();
    }
}

/// Fills ranges and discards them as a whole.
async fn discard(engine: Arc<FjallEngine>, load: Arc<Load>) {
    for round in 0_u64.. {
        for row in 0..80_u64 {
            if load.is_over.load(SeqCst) {
                return;
            }
            let row = second(format!("z{}/{row}", round % 2));
            commit(&*engine, vec![put(row, noise(round, 64 * 1024))]).await.unwrap();
        }
        engine.discard(&Span::prefix(&second(format!("z{}/", round % 2)))).await.unwrap();
    }
}

/// Whether a copy has what it must have; its counter.
fn check_copy(copy: &Path, acknowledged_before: u64) -> u64 {
    let reader = read(copy);
    let (first, other) = (rows(&reader, "first"), rows(&reader, "second"));
    let counter = |rows: &BTreeMap<Bytes, Bytes>, key| rows.get(&key).map_or(0, |it| number(it));
    let count = counter(&first, key("counter"));
    assert_eq!(counter(&other, second("counter")), count, "half of a change");
    assert!(count >= acknowledged_before, "{count} of {acknowledged_before}");
    let last = other.range(..numbered(99_999_999)).next_back();
    for number in 1..=count {
        let value = other.get(&numbered(number));
        assert_eq!(value.map(|it| &**it), Some(&*noise(number, 3_000)), "{number} of {count}");
    }
    if let Some((key, _)) = last.filter(|(key, _)| key.starts_with(&second("n/"))) {
        assert_eq!(*key, numbered(count), "a row of a later change");
    }
    count
}

async fn copies_of_one_instant(durability: SyncPolicy) {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    let options = FjallOptions { durability, memtable_bytes: 256 * 1024, ..options(&store) };
    let engine = Arc::new(FjallEngine::open(options).unwrap());
    let checkpointer = engine.checkpointer();
    let load = Arc::new(Load::default());
    let counting = tokio::spawn(count(Arc::clone(&engine), Arc::clone(&load)));
    let mut others = JoinSet::new();
    others.spawn(overwrite(Arc::clone(&engine), Arc::clone(&load)));
    others.spawn(discard(Arc::clone(&engine), Arc::clone(&load)));

    let mut made = Vec::new();
    for copy in 0..COPIES {
        let into = directory.path().join(format!("copy-{copy}"));
        let (checkpointer, load) = (checkpointer.clone(), Arc::clone(&load));
        let copied = spawn_blocking(move || {
            let before = load.acknowledged.load(SeqCst);
            let at = checkpointer.make(&into).unwrap().at;
            let count = check_copy(&into, before);
            (into, before, at, count)
        });
        made.push(copied.await.unwrap());
    }
    load.is_over.store(true, SeqCst);
    let versions = counting.await.unwrap();
    others.join_all().await;

    for (_, _, at, count) in &made {
        let count = usize::try_from(*count).unwrap();
        assert!(versions[count] <= *at, "a change up to it is in the copy");
        assert!(versions.get(count + 1).is_none_or(|next| next > at), "and none after it");
    }
    // All were read while the store went on. What it deleted of theirs since they have still.
    drop(engine);
    fs::remove_dir_all(&store).unwrap();
    for (into, before, _, count) in &made {
        assert_eq!(check_copy(into, *before), *count);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_is_of_one_instant_under_writes_flushes_compactions_and_discards() {
    for durability in POLICIES {
        copies_of_one_instant(durability).await;
    }
}

/// A store with rows in tables, and a copy of it.
async fn store_with_copy(store: &Path, copy: &Path) -> Arc<FjallEngine> {
    let options = FjallOptions { memtable_bytes: 256 * 1024, ..options(store) };
    let engine = Arc::new(FjallEngine::open(options).unwrap());
    for row in 0..100_u64 {
        commit(&*engine, vec![put(key(format!("{row:03}")), noise(row, 20_000))]).await.unwrap();
    }
    make(&engine.checkpointer(), copy).await.unwrap();
    engine
}

async fn make(checkpointer: &Checkpointer, into: &Path) -> Result<Ticks, CheckpointError> {
    let (checkpointer, into) = (checkpointer.clone(), into.to_owned());
    spawn_blocking(move || checkpointer.make(&into).map(|made| made.at)).await.unwrap()
}

fn files(folder: &Path) -> Vec<fs::DirEntry> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let (folders, files): (Vec<_>, Vec<_>) =
        entries.partition(|entry| entry.file_type().unwrap().is_dir());
    files.into_iter().chain(folders.iter().flat_map(|entry| self::files(&entry.path()))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_a_checkpoint_are_links_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let (store, copy) = (directory.path().join("store"), directory.path().join("copy"));
    let _engine = store_with_copy(&store, &copy).await;

    let is_table = |file: &fs::DirEntry| file.path().parent().unwrap().ends_with("tables");
    let files = files(&copy);
    assert!(files.iter().filter(|file| is_table(file)).count() >= 2, "{files:?}");
    for file in &files {
        let is_link = file.metadata().unwrap().nlink() > 1;
        // The store may have deleted a table of its own since.
        assert!(is_table(file) || !is_link, "{file:?}");
    }
    assert!(files.iter().any(|file| file.metadata().unwrap().nlink() > 1), "{files:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_overwritten_and_compacted_leaves_its_copy_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let (store, copy) = (directory.path().join("store"), directory.path().join("copy"));
    let engine = store_with_copy(&store, &copy).await;
    let before = everything(&*engine).await;

    for row in 0..100 {
        commit(&*engine, vec![Write::Delete { key: key(format!("{row:03}")) }]).await.unwrap();
    }
    drop(engine);
    assert!(compact(&options(&store)).unwrap().iter().all(|done| done.bytes_after < 20_000));

    let reader = read(&copy);
    let rows: Vec<_> = reader.rows("first", None).unwrap().map(|row| row.unwrap()).collect();
    assert_eq!(rows, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_written_compacted_and_deleted_leaves_the_store_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let (store, copy) = (directory.path().join("store"), directory.path().join("copy"));
    let engine = store_with_copy(&store, &copy).await;
    let before = everything(&*engine).await;

    let other = open(&copy);
    assert_eq!(everything(&*other).await, before);
    for row in 0..100 {
        commit(&*other, vec![Write::Delete { key: key(format!("{row:03}")) }]).await.unwrap();
    }
    drop(other);
    compact(&options(&copy)).unwrap();
    fs::remove_dir_all(&copy).unwrap();

    assert_eq!(everything(&*engine).await, before);
    drop(engine);
    // From the disk, and not from memory.
    let engine = open(&store);
    assert_eq!(everything(&*engine).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_of_an_engine_on_a_copy_go_on_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy");
    let engine = open(&directory.path().join("store"));
    let last = commit(&*engine, vec![put(key("a"), "1")]).await.unwrap();
    let at = make(&engine.checkpointer(), &copy).await.unwrap();
    commit(&*engine, vec![put(key("a"), "2")]).await.unwrap();
    assert!(last.ticks() <= at);
    assert!(read(&copy).version_floor() >= at);

    let copied = open(&copy);
    assert_eq!(get(&*copied, &key("a")).await, Some("1".into()));
    assert!(commit(&*copied, vec![put(key("b"), "1")]).await.unwrap().ticks() > at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_that_cannot_be_made_leaves_nothing_and_touches_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory.path().join("store"));
    commit(&*engine, vec![put(key("a"), "1")]).await.unwrap();
    let checkpointer = engine.checkpointer();

    let existing = directory.path().join("existing");
    fs::create_dir(&existing).unwrap();
    fs::write(existing.join("file"), "kept").unwrap();
    let error = make(&checkpointer, &existing).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Io { .. }), "{error}");
    assert_eq!(fs::read(existing.join("file")).unwrap(), b"kept");

    let error = make(&checkpointer, &directory.path().join("absent/copy")).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Io { .. }), "{error}");
    assert!(!directory.path().join("absent").exists());

    drop(engine);
    let copy = directory.path().join("copy");
    let error = make(&checkpointer, &copy).await.unwrap_err();
    assert!(matches!(error, CheckpointError::Closed), "{error}");
    assert!(!copy.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_checkpoint_is_made_of_an_engine_that_failed() {
    let directory = tempfile::tempdir().unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    let hook = Arc::clone(&fails);
    let options = FjallOptions {
        on_point: Some(Arc::new(move |point| match point {
            CommitPoint::BeforeJournal if hook.load(SeqCst) => Err("the disk is broken".into()),
            _ => Ok(()),
        })),
        ..options(&directory.path().join("store"))
    };
    let engine = FjallEngine::open(options).unwrap();
    commit(&engine, vec![put(key("a"), "1")]).await.unwrap();
    fails.store(true, SeqCst);
    commit(&engine, vec![put(key("a"), "2")]).await.unwrap_err();

    let copy = directory.path().join("copy");
    let error = make(&engine.checkpointer(), &copy).await.unwrap_err();
    assert!(error.to_string().contains("the disk is broken"), "{error}");
    assert!(!copy.exists());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_on_another_file_system_is_rejected_and_the_directory_named() {
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    assert_ne!(device(directory.path()), device(elsewhere.path()), "TMPDIR is in /dev/shm");
    let engine = open(&directory.path().join("store"));
    commit(&*engine, vec![put(key("a"), "1")]).await.unwrap();

    let copy = elsewhere.path().join("copy");
    let error = make(&engine.checkpointer(), &copy).await.unwrap_err();

    assert!(matches!(error, CheckpointError::Links { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("hard links") && text.contains(copy.to_str().unwrap()), "{text}");
    assert!(!copy.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_starts_after_a_key_and_leaves_out_the_rows_of_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(directory.path());
    let names = ["a", "b", "c"];
    let writes = names.iter().flat_map(|it| [put(key(it), "1"), put(second(it), "2")]);
    commit(&*engine, writes.collect()).await.unwrap();
    drop(engine);

    let reader = read(directory.path());
    let keys = |keyspace: &str, after: Option<&[u8]>| -> Vec<Bytes> {
        reader.rows(keyspace, after).unwrap().map(|row| row.unwrap().key).collect()
    };
    for (keyspace, of) in [("first", key as fn(&'static str) -> Bytes), ("second", second)] {
        let all = names.map(of);
        assert_eq!(keys(keyspace, None), all, "{keyspace}");
        assert_eq!(keys(keyspace, Some(&[0])), all, "before all of them");
        assert_eq!(keys(keyspace, Some(&all[0])), all[1..], "that one is left out");
        assert_eq!(keys(keyspace, Some(&of("bb"))), all[2..], "one that is absent");
        assert_eq!(keys(keyspace, Some(&all[2])), [""; 0]);
        assert_eq!(keys(keyspace, Some(&[0xFF; 9])), [""; 0], "after all of them");
    }
    assert!(reader.rows("third", None).is_err());
}

#[tokio::test]
async fn a_reader_makes_no_store_and_locks_the_one_it_reads() {
    let directory = tempfile::tempdir().unwrap();
    let open_error = |path: &Path| StoreReader::open(path, KEYSPACES.to_vec()).err().unwrap();
    assert!(matches!(open_error(directory.path()), OpenError::Manifest { .. }));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let absent = directory.path().join("absent");
    assert!(matches!(open_error(&absent), OpenError::Manifest { .. }));
    assert!(!absent.exists());

    let engine = open(directory.path());
    assert!(matches!(open_error(directory.path()), OpenError::Locked { .. }));
    drop(engine);
    let reader = read(directory.path());
    let second = FjallEngine::open(options(directory.path())).err().unwrap();
    assert!(matches!(second, OpenError::Locked { .. }), "{second}");
    drop(reader);
    drop(open(directory.path()));
}
