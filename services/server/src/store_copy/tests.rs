//! Copies between engines: interrupted at every step, compared, and taken over.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use trestle_backup::{NamedObject, ObjectAreaName, ObjectName};
use trestle_command::{
    flags::ClientFlags,
    output::{Output, OutputArgs},
};
use trestle_kv::{
    Change, ChangeSpec, CommitError, Domain, Engine, EngineError, EngineStatus, Keyspace, Limits,
    MemoryEngine, Reads, Snapshot, Version, Writes, key_domain,
    limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX},
    transact, visit_rows,
};
use trestle_kv_fjall::{FjallEngine, FjallOptions};
use trestle_model::time::{Clock, Ticks};
use trestle_objects::{ObjectStorage, SourceObjects};

use super::{
    marker::{CopyMarker, HeldMarker},
    page::span,
    *,
};
use crate::storage;

/// The kind of rows that name an object of a blob: their value is its path, and what it has.
const NAMES_OBJECT: u8 = 7;
/// The kind of rows that no copy has.
const LEFT_OUT: u8 = 8;

fn test_rules() -> StoreRules {
    let keyspace = |name, kinds| Keyspace { name, kinds, domain: key_domain };
    StoreRules {
        keyspaces: vec![keyspace("first", 1..=4), keyspace("second", 5..=9)],
        objects_of: |row| {
            let path = String::from_utf8_lossy(&row.value).into_owned();
            if path == "corrupt" {
                return Err("it is corrupt".to_owned());
            }
            let bytes = path.len() as u64;
            let object =
                NamedObject { name: ObjectName { area: ObjectAreaName::Blobs, path }, bytes };
            Ok((row.key.first() == Some(&NAMES_OBJECT)).then_some(object).into_iter().collect())
        },
        restored: |row| Ok(Some(row).filter(|row| row.key.first() != Some(&LEFT_OUT))),
        ..rules()
    }
}

fn keyspaces() -> Vec<Keyspace> {
    test_rules().keyspaces.into_iter().chain([marker::KEYSPACE]).collect()
}

fn output() -> OutputArgs {
    ClientFlags::default().output()
}

async fn put(engine: &dyn Engine, key: &[u8], value: Vec<u8>) -> Version {
    let key = Bytes::copy_from_slice(key);
    let spec = ChangeSpec::new(Domain::of_key(&key, key_domain));
    let decide = move |_: &Reads<'_>, version: Version| {
        let mut writes = Writes::new();
        writes.put(key.clone(), value.clone());
        Ok::<_, CommitError>((writes, version))
    };
    transact(engine, spec, decide).await.unwrap().unwrap()
}

/// Every row of the keyspaces that are copied.
async fn rows_of(engine: &dyn Engine) -> BTreeMap<Bytes, Bytes> {
    let mut rows = BTreeMap::new();
    for keyspace in test_rules().keyspaces {
        let visit = |row: &Entry| drop(rows.insert(row.key.clone(), row.value.clone()));
        visit_rows(engine, span(&keyspace), visit).await.unwrap();
    }
    rows
}

/// When a target works.
enum Works {
    /// For a number of changes.
    Before,
    /// After as many that found it busy.
    After,
}

/// A target that does not always work.
struct FailingTarget {
    inner: MemoryEngine,
    left: AtomicUsize,
    works: Works,
}

#[async_trait]
impl Engine for FailingTarget {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, EngineError> {
        self.inner.snapshot().await
    }

    async fn commit(&self, change: Change) -> Result<Version, CommitError> {
        let counted = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        match (&self.works, counted) {
            (Works::Before, Ok(_)) | (Works::After, Err(_)) => self.inner.commit(change).await,
            (Works::Before, Err(_)) => {
                Err(CommitError::Stopped { reason: "it was interrupted".into() })
            }
            (Works::After, Ok(_)) => Err(CommitError::Busy { reason: "flushes".into() }),
        }
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn now(&self) -> Ticks {
        self.inner.now()
    }

    fn status(&self) -> EngineStatus {
        self.inner.status()
    }
}

fn target(engine: Arc<dyn Engine>, marker: Option<HeldMarker>) -> TargetRows {
    TargetRows { engine, marker, pause: Duration::from_millis(1) }
}

/// Two stores.
struct CopyWorld {
    rules: StoreRules,
    from: SourceRows,
    source: MemoryEngine,
    source_objects: ObjectStorage,
    target: MemoryEngine,
    target_objects: Option<ObjectStorage>,
    accepts_loss: bool,
}

impl CopyWorld {
    /// A source with rows of every size, and three objects.
    async fn new() -> Self {
        let (source, target) = (MemoryEngine::new(keyspaces()), MemoryEngine::new(keyspaces()));
        let source_objects = ObjectStorage::in_memory();
        for number in 0..1200_u16 {
            let key = [&[1 + u8::from(number >= 700) * 4][..], &number.to_be_bytes()].concat();
            put(&source, &key, vec![7; usize::from(number % 50)]).await;
        }
        put(&source, &[&[2][..], &vec![0xFF; KEY_BYTES_MAX - 1]].concat(), Vec::new()).await;
        put(&source, &[3], vec![1; VALUE_BYTES_MAX]).await;
        put(&source, &[4], vec![2; VALUE_BYTES_MAX]).await;
        put(&source, &[LEFT_OUT, 1], b"retired".to_vec()).await;
        for name in ["one", "two", "three"] {
            put(&source, &[&[NAMES_OBJECT], name.as_bytes()].concat(), name.into()).await;
            source_objects.blobs.put(name, name.into()).await.unwrap();
        }
        let (rules, from) = (test_rules(), SourceRows::Engine(Arc::new(source.clone())));
        let target_objects = Some(ObjectStorage::in_memory());
        let accepts_loss = false;
        Self { rules, from, source, source_objects, target, target_objects, accepts_loss }
    }

    /// Marks the target, as a command that begins or continues a copy does.
    async fn mark(&self) -> HeldMarker {
        let found = marker::of_database(&self.target).await.unwrap();
        let run = found.as_ref().map_or(0, String::len).to_string();
        let text = |text: &str| text.to_owned();
        let marker = CopyMarker { source: text("s"), from: text("./data"), run };
        HeldMarker::put(&self.target, found, &marker).await.unwrap().expect("no other command")
    }

    async fn copy_to(&self, to: &TargetRows) -> Result<CopySummary, CliError> {
        let (blobs, logs) = (&self.source_objects.blobs, &self.source_objects.logs);
        let from = SourceObjects { blobs: Arc::clone(&blobs.store), logs: Arc::clone(&logs.store) };
        let (target, accepts_loss) = (&self.target_objects, self.accepts_loss);
        let objects = ObjectCopy { from: &from, to: target, accepts_loss };
        let copy = StoreCopy { rules: &self.rules, from: &self.from, to };
        copy.run(&objects, &Output::standard(&output())).await
    }

    async fn copy(&self) -> CopySummary {
        let marker = Some(self.mark().await);
        let engine = Arc::new(self.target.clone());
        self.copy_to(&target(engine, marker)).await.unwrap()
    }
}

#[tokio::test]
async fn a_copy_goes_on_where_it_was_interrupted_at_any_step() {
    let mut steps = 0;
    loop {
        let world = CopyWorld::new().await;
        let marker = Some(world.mark().await);
        let inner = world.target.clone();
        let engine =
            Arc::new(FailingTarget { inner, left: AtomicUsize::new(steps), works: Works::Before });
        let first = world.copy_to(&target(engine, marker)).await;
        let before = rows_of(&world.target).await.len();

        let summary = world.copy().await;

        let mut expected = rows_of(&world.source).await;
        expected.retain(|key, _| key.first() != Some(&LEFT_OUT));
        assert_eq!(summary.rows(), expected.len() as u64);
        assert_eq!(summary.copied(), (expected.len() - before) as u64, "after {steps}");
        assert_eq!((summary.objects, summary.object_bytes), (3, 11));
        assert_eq!((summary.differences.count, summary.missing.count), (0, 0));
        assert!(rows_of(&world.target).await == expected, "after {steps}");
        match first {
            Ok(first) => {
                assert_eq!(first.copied(), expected.len() as u64);
                break;
            }
            Err(error) => assert!(error.to_string().contains("it was interrupted"), "{error}"),
        }
        steps += 1;
    }
    assert!(steps > 4, "in several changes: {steps}");
}

#[tokio::test]
async fn changes_that_may_succeed_later_are_repeated() {
    let world = CopyWorld::new().await;
    let commits = async |busy: usize| {
        let marker = Some(world.mark().await);
        let inner = world.target.clone();
        let engine =
            Arc::new(FailingTarget { inner, left: AtomicUsize::new(busy), works: Works::After });
        world.copy_to(&target(engine, marker)).await
    };

    let error = commits(100).await.unwrap_err();
    assert!(matches!(&error, CliError::Source { busy: true, .. }), "{error:?}");
    assert!(rows_of(&world.target).await.is_empty());
    let summary = commits(4).await.unwrap();
    assert_eq!((summary.differences.count, summary.copied()), (0, summary.rows()));
}

#[tokio::test]
async fn an_earlier_command_writes_nothing_once_another_one_continues() {
    let world = CopyWorld::new().await;
    let marker = Some(world.mark().await);
    let engine: Arc<dyn Engine> = Arc::new(world.target.clone());
    let earlier = target(Arc::clone(&engine), marker);
    let later = world.mark().await;

    let error = world.copy_to(&earlier).await.unwrap_err().to_string();

    assert_eq!(error, "another `trestle store copy` continues this copy");
    assert!(rows_of(&world.target).await.is_empty());
    assert!(later.remove(&*engine).await.unwrap());
    world.copy_to(&earlier).await.unwrap_err();
    assert!(rows_of(&world.target).await.is_empty(), "nor once it is complete");
}

#[tokio::test]
async fn differences_of_rows_and_objects_are_found() {
    let world = CopyWorld::new().await;
    assert_eq!(world.copy().await.differences.count, 0);
    for (key, value) in [(&[1, 0, 0][..], "other"), (&[9], "more")] {
        put(&world.target, key, value.into()).await;
    }
    let objects = &world.target_objects.as_ref().unwrap().blobs;
    objects.delete("one").await.unwrap();
    objects.put("one", "longer".into()).await.unwrap();
    objects.delete("two").await.unwrap();

    let summary = world.copy().await;

    assert_eq!((summary.copied(), summary.differences.count), (0, 4));
    let places = CopyPlaces::parse(&args("from", "to")).unwrap();
    let printed = summary.print(&places, false, &mut Output::standard(&output()));
    assert!(matches!(printed, Err(CliError::Rejected)), "{printed:?}");
}

#[tokio::test]
async fn what_the_source_lacks_ends_the_copy_or_is_left_out() {
    let mut world = CopyWorld::new().await;
    world.source_objects.blobs.delete("two").await.unwrap();
    put(&world.source, &[6], b"corrupt".to_vec()).await;
    let marker = Some(world.mark().await);
    let engine = Arc::new(world.target.clone());
    let ended = world.copy_to(&target(engine, marker)).await.unwrap_err().to_string();
    assert!(ended.contains("blob/two") && ended.contains("--accept-loss"), "{ended}");
    let named = [&[NAMES_OBJECT], &b"two"[..]].concat();
    assert!(!rows_of(&world.target).await.contains_key(&named[..]), "no row without its object");

    world.accepts_loss = true;
    let summary = world.copy().await;
    assert!(summary.is_whole(true) && !summary.is_whole(false));

    assert_eq!((summary.objects, summary.missing.count, summary.differences.count), (2, 2, 0));
    assert_eq!(rows_of(&world.target).await.get(&[6][..]).map(|it| &it[..]), Some(&b"corrupt"[..]));
}

#[tokio::test]
async fn an_object_that_is_cut_short_in_the_source_is_as_good_as_none() {
    let mut world = CopyWorld::new().await;
    let objects = &world.source_objects.blobs;
    objects.delete("three").await.unwrap();
    objects.put("three", "thr".into()).await.unwrap();
    let to = target(Arc::new(world.target.clone()), Some(world.mark().await));

    let ended = world.copy_to(&to).await.unwrap_err().to_string();

    assert!(
        ended.contains("is not whole, ") && ended.contains("bytes=`3`, expected=`5`"),
        "{ended}"
    );
    assert!(ended.contains("object=`blob/three`") && ended.contains("--accept-loss"), "{ended}");
    let named = [&[NAMES_OBJECT], &b"three"[..]].concat();
    assert!(!rows_of(&world.target).await.contains_key(&named[..]), "no row without its object");
    world.accepts_loss = true;
    let summary = world.copy().await;
    assert!(summary.is_whole(true) && !summary.is_whole(false));
    assert_eq!((summary.objects, summary.missing.count, summary.differences.count), (2, 1, 0));
}

#[tokio::test]
async fn an_object_of_something_else_ends_the_copy_before_its_row() {
    let mut world = CopyWorld::new().await;
    let objects = &world.target_objects.as_ref().unwrap().blobs;
    objects.put("two", "own".into()).await.unwrap();
    let marker = Some(world.mark().await);
    let to = target(Arc::new(world.target.clone()), marker);

    let error = world.copy_to(&to).await.unwrap_err().to_string();

    assert!(error.contains("another object has this name: path=`two`"), "{error}");
    let named = rows_of(&world.target).await;
    assert!(named.keys().all(|key| key.first() != Some(&NAMES_OBJECT)));
    world.target_objects = None;
    let error = world.copy_to(&to).await.unwrap_err().to_string();
    assert!(error.contains("--to-blob-url is required: the source has objects"), "{error}");
}

fn args(from: &str, to: &str) -> StoreCopyArgs {
    StoreCopyArgs {
        from: from.to_owned(),
        to: to.to_owned(),
        from_password_file: None,
        to_password_file: None,
        to_blob_url: None,
        accept_loss: false,
    }
}

/// A clock that is years ahead.
#[derive(Debug)]
struct FutureClock;

impl Clock for FutureClock {
    fn now(&self) -> Ticks {
        Ticks::from_unix(9_000_000_000, 0).unwrap()
    }

    fn elapsed(&self) -> Duration {
        trestle_model::time::SystemClock.elapsed()
    }

    fn boot_id(&self) -> Option<u128> {
        None
    }
}

fn open(data_dir: &Path, clock: Option<Arc<dyn Clock>>) -> FjallEngine {
    let options = FjallOptions::new(data_dir.join(storage::ENGINE_DIR), storage::keyspaces());
    let clock = clock.unwrap_or_else(|| Arc::clone(&options.clock));
    FjallEngine::open(FjallOptions { clock, ..options }).unwrap()
}

#[tokio::test]
async fn the_time_of_a_copied_directory_goes_on_after_that_of_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let (from_text, to_text) = (from.to_str().unwrap(), to.to_str().unwrap());
    let key = trestle_table::KEYSPACES.first().map(|it| *it.kinds.start()).unwrap();
    let source = open(&from, Some(Arc::new(FutureClock)));
    let version = transact_at(&source, key).await;
    let busy = run(&args(from_text, to_text), &output()).await.unwrap_err();
    assert!(matches!(&busy, CliError::Source { busy: true, .. }), "{busy:?}");
    assert!(!to.exists());
    drop(source);

    run(&args(from_text, to_text), &output()).await.unwrap();

    let copy = open(&to, None);
    assert!(copy.now() >= version.ticks());
    assert!(transact_at(&copy, key).await > version);
    drop(copy);
    let error = run(&args(from_text, to_text), &output()).await.unwrap_err().to_string();
    assert!(error.starts_with("--to cannot be used: it is not empty"), "{error}");
    let inside = from.join("copy");
    let error = run(&args(from_text, inside.to_str().unwrap()), &output()).await.unwrap_err();
    assert!(error.to_string().starts_with("--to must be outside of --from"), "{error}");
    assert!(!inside.exists());
    let absent = folder.path().join("absent");
    let error = run(&args(absent.to_str().unwrap(), to_text), &output()).await.unwrap_err();
    assert!(error.to_string().starts_with("there is no store in --from"), "{error}");
    assert!(!absent.exists());
}

/// The version of a change of a row of tables.
async fn transact_at(engine: &dyn Engine, kind: u8) -> Version {
    let key = Bytes::from(vec![kind, b'a']);
    let keyspace = &trestle_table::KEYSPACES[0];
    let spec = ChangeSpec::new(Domain::of_key(&key, keyspace.domain));
    let decide = move |_: &Reads<'_>, version: Version| {
        let mut writes = Writes::new();
        writes.put(key.clone(), "value");
        Ok::<_, CommitError>((writes, version))
    };
    transact(engine, spec, decide).await.unwrap().unwrap()
}
