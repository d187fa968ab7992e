//! The change log: what is read from linked journals is what was committed, up to any position.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::{JoinSet, spawn_blocking};
use trestle_kv::conformance::KEYSPACES;
use trestle_kv::limits::VALUE_BYTES_MAX;
use trestle_kv::{Engine, Entry, Span, Write, after_key};
use trestle_kv_fjall::{
    ChangeGroup, ChangeLogError, ChangeReader, FjallEngine, FjallOptions, LogEnd, LogPosition,
    LoggedChange, MIN_FREE_BYTES_MIN, StoreReader, StoreWriter, drop_links, linked_bytes,
};
use trestle_model::time::Ticks;

use crate::world::{NO_LIMIT, commit, key, noise, options, put};

pub(crate) type Rows = BTreeMap<Bytes, Bytes>;

/// A store that marks its groups, with the directory of its links.
pub(crate) struct LoggedStore {
    directory: tempfile::TempDir,
}

impl LoggedStore {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn links(&self) -> PathBuf {
        self.path("links/of the log")
    }

    pub(crate) fn options(&self) -> FjallOptions {
        let options = options(&self.path("store"));
        FjallOptions { marks_groups: true, memtable_bytes: 256 * 1024, ..options }
    }

    pub(crate) fn open(&self) -> Arc<FjallEngine> {
        Arc::new(FjallEngine::open(self.options()).unwrap())
    }

    pub(crate) async fn link(&self, engine: &FjallEngine) -> LogEnd {
        link(engine, self.links()).await.unwrap()
    }
}

pub(crate) async fn link(engine: &FjallEngine, links: PathBuf) -> Result<LogEnd, ChangeLogError> {
    let log = engine.change_log();
    spawn_blocking(move || log.link(&links)).await.unwrap()
}

pub(crate) fn second(name: impl AsRef<[u8]>) -> Bytes {
    [&[0x40], name.as_ref()].concat().into()
}

/// Every group from one position to another.
pub(crate) fn read(
    links: &Path,
    from: LogPosition,
    until: LogPosition,
) -> Result<Vec<ChangeGroup>, ChangeLogError> {
    let mut reader = ChangeReader::open(links, from)?;
    std::iter::from_fn(|| reader.next(until).transpose()).collect()
}

/// Every row of an engine.
pub(crate) async fn live(engine: &dyn Engine) -> Rows {
    let view = engine.snapshot().await.unwrap();
    let mut rows = Rows::new();
    for mut span in [Span::prefix(&[1]), Span::new([0x40].to_vec(), vec![0xFF; 9])] {
        loop {
            let page = view.scan(&span, NO_LIMIT).await.unwrap();
            let last = page.entries.last().map(|row| after_key(&row.key));
            rows.extend(page.entries.into_iter().map(|row| (row.key, row.value)));
            let Some(last) = last.filter(|_| page.more) else { break };
            span = Span::new(last, span.end);
        }
    }
    rows
}

pub(crate) fn apply(rows: &mut Rows, groups: &[ChangeGroup]) {
    for change in groups.iter().flat_map(|group| &group.changes) {
        match change {
            LoggedChange::Put(Entry { key, value }) => _ = rows.insert(key.clone(), value.clone()),
            LoggedChange::Delete(key) => _ = rows.remove(key),
            LoggedChange::Discard(span) => {
                rows.retain(|key, _| *key < span.start || *key >= span.end);
            }
        }
    }
}

fn stored<'a>(rows: impl Iterator<Item = Result<Entry, trestle_kv::EngineError>> + 'a) -> Rows {
    rows.map(|row| row.unwrap()).map(|row| (row.key, row.value)).collect()
}

fn in_writer(writer: &StoreWriter) -> Rows {
    let rows = ["first", "second"].map(|name| writer.rows(name, None).unwrap());
    stored(rows.into_iter().flatten())
}

/// A store that is filled from a checkpoint.
fn filled_from(checkpoint: &Path, into: &Path) -> (StoreWriter, Rows) {
    let reader = StoreReader::open(checkpoint, KEYSPACES.to_vec()).unwrap();
    let mut writer = StoreWriter::create(into, KEYSPACES.to_vec()).unwrap();
    for name in ["first", "second"] {
        let rows = reader.rows(name, None).unwrap().map(|row| row.unwrap());
        writer.fill::<trestle_kv_fjall::FillError>(name, rows.map(Ok)).unwrap();
    }
    let rows = in_writer(&writer);
    (writer, rows)
}

/// Commits random changes from several tasks, each in a domain of its own; some are big, some rows are hot.
async fn load(engine: &Arc<FjallEngine>, seed: u64, changes: usize) {
    let mut tasks = JoinSet::new();
    for task in 0..4_u64 {
        let engine = Arc::clone(engine);
        let mut random = StdRng::seed_from_u64(seed * 100 + task);
        tasks.spawn(async move {
            for _ in 0..changes {
                let writes = (0..random.random_range(1..8)).map(|_| {
                    let name = format!("{task}/{}", random.random_range(0..60));
                    let big = format!("big {}/{}", task, random.random_range(0..20));
                    match random.random_range(0..12) {
                        0 => put(key(big), noise(random.random(), random.random_range(0..200_000))),
                        1 => put(second(big), vec![7; random.random_range(0..200_000)]),
                        2 | 3 => Write::Delete { key: key(name) },
                        4 => Write::Delete { key: second(name) },
                        5..8 => put(second("hot"), noise(random.random(), 100)),
                        8..10 => put(second(name), noise(random.random(), 5_000)),
                        _ => put(key(name), noise(random.random(), 60)),
                    }
                });
                commit(&*engine, writes.collect()).await.unwrap();
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_with_the_groups_after_it_is_the_store_at_each_instant() {
    let store = LoggedStore::new();
    let engine = store.open();
    let start = store.link(&engine).await;
    assert_eq!(live(&*engine).await, Rows::new());

    let mut instants = Vec::new();
    for seed in 0..6 {
        load(&engine, seed, 180).await;
        instants.push((store.link(&engine).await, live(&*engine).await));
        if seed == 1 {
            // The checkpoint is of an instant within this load.
            let (checkpointer, copy) = (engine.checkpointer(), store.path("copy"));
            let made = spawn_blocking(move || checkpointer.make(&copy).unwrap());
            load(&engine, 100, 60).await;
            let at = made.await.unwrap().at;
            instants.push((store.link(&engine).await, live(&*engine).await));
            let (mut writer, copied) = filled_from(&store.path("copy"), &store.path("filled"));
            // The groups up to its version are what it has.
            let groups = read(&store.links(), start.position, instants[2].0.position).unwrap();
            let (before, after): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|group| group.version <= at);
            let mut rows = Rows::new();
            apply(&mut rows, &before);
            assert!(rows == copied, "groups up to its version are not the checkpoint");
            after.into_iter().for_each(|group| writer.apply(group.changes).unwrap());
            assert!(in_writer(&writer) == instants[2].1);
        }
    }

    let end = instants.last().unwrap().0.position;
    assert!(end.journal() >= start.position.journal() + 2, "not enough was written: {end}");
    let (mut writer, _) = filled_from(&store.path("copy"), &store.path("again"));
    let mut reader = ChangeReader::open(&store.links(), start.position).unwrap();
    let at = StoreReader::open(&store.path("copy"), KEYSPACES.to_vec()).unwrap().version_floor();
    let (mut rows, mut before) = (Rows::new(), Ticks::MIN);
    for (instant, expected) in &instants {
        while let Some(group) = reader.next(instant.position).unwrap() {
            assert!(group.version > before && group.version <= instant.newest);
            assert!(group.end <= instant.position && group.end == reader.position());
            before = group.version;
            apply(&mut rows, std::slice::from_ref(&group));
            // Groups that it has already do no harm, as long as all are applied in order.
            writer.apply(group.changes).unwrap();
        }
        assert_eq!(before, instant.newest);
        assert!(rows == *expected, "{instant:?}");
        assert!(instant.newest < at || in_writer(&writer) == *expected, "{instant:?}");
    }
    writer.finish(before).unwrap();
    let engine = FjallEngine::open(options(&store.path("again"))).unwrap();
    assert!(live(&engine).await == instants.last().unwrap().1);
}

/// Counts in one row until it is over.
async fn count(engine: Arc<FjallEngine>, is_over: Arc<AtomicBool>, acknowledged: Arc<AtomicU64>) {
    for number in 1_u64.. {
        let value = number.to_be_bytes().to_vec();
        let writes = vec![put(key("counter"), value.clone()), put(second("counter"), value)];
        commit(&*engine, writes).await.unwrap();
        acknowledged.store(number, SeqCst);
        if is_over.load(SeqCst) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_beside_a_server_that_appends_reads_every_group_up_to_the_end_and_none_after_it() {
    let store = LoggedStore::new();
    let engine = store.open();
    let mut reader = {
        let start = store.link(&engine).await;
        ChangeReader::open(&store.links(), start.position).unwrap()
    };
    let (is_over, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let counts = count(Arc::clone(&engine), Arc::clone(&is_over), Arc::clone(&acknowledged));
    let counts = tokio::spawn(counts);

    let (mut read, mut ends) = (0_u64, 0);
    while ends < 200 || read < 500 {
        let before = acknowledged.load(SeqCst);
        let end = store.link(&engine).await;
        assert!(end.now >= end.newest);
        while let Some(group) = reader.next(end.position).unwrap() {
            read += 1;
            let value = Bytes::from(read.to_be_bytes().to_vec());
            let row = |key| LoggedChange::Put(Entry { key, value: value.clone() });
            assert_eq!(group.changes.len(), 2);
            assert!(group.changes.contains(&row(key("counter"))), "{read}");
            assert!(group.changes.contains(&row(second("counter"))), "{read}");
            assert!(group.end <= end.position && group.version <= end.newest);
        }
        assert_eq!(reader.position(), end.position);
        assert!(reader.next(end.position).unwrap().is_none());
        assert!(read >= before, "acknowledged before the end, and not before the position");
        ends += 1;
    }
    is_over.store(true, SeqCst);
    counts.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discard_is_in_the_log_between_the_groups_before_and_after_it() {
    let store = LoggedStore::new();
    // With small files, so that several lie in the span.
    let options = FjallOptions { min_free_bytes: MIN_FREE_BYTES_MIN, ..store.options() };
    let engine = Arc::new(FjallEngine::open(options).unwrap());
    let start = store.link(&engine).await;
    for row in 0..200_u64 {
        let writes = vec![put(second(format!("dropped/{row:03}")), noise(row, 200_000))];
        commit(&*engine, writes).await.unwrap();
    }
    // Flushes, so that files lie in the span.
    let (checkpointer, flushed) = (engine.checkpointer(), store.path("flushed"));
    spawn_blocking(move || checkpointer.make(&flushed).unwrap()).await.unwrap();
    commit(&*engine, vec![put(second("kept"), "1")]).await.unwrap();
    let before = store.link(&engine).await;
    let (checkpointer, copy) = (engine.checkpointer(), store.path("copy"));
    let at = spawn_blocking(move || checkpointer.make(&copy).unwrap().at).await.unwrap();
    let span = Span::prefix(&second("dropped/"));
    engine.discard(&span).await.unwrap();
    let between = store.link(&engine).await;
    commit(&*engine, vec![put(second("kept"), "2")]).await.unwrap();
    // Too little to drop a file, so nothing is done.
    engine.discard(&Span::prefix(&second("other/"))).await.unwrap();
    let end = store.link(&engine).await;

    let discards = read(&store.links(), before.position, between.position).unwrap();
    assert_eq!(discards.len(), 1);
    assert_eq!(discards[0].changes, [LoggedChange::Discard(span)]);
    assert_eq!((discards[0].version, between.newest), (before.newest, before.newest));
    assert_eq!(at, before.newest);
    let groups = read(&store.links(), start.position, end.position).unwrap();
    assert_eq!(groups.len(), 203);
    let mut rows = Rows::new();
    apply(&mut rows, &groups);
    assert_eq!(rows, Rows::from([(second("kept"), "2".into())]));
    // The store dropped files of it, and a copy of before has them all.
    assert!(live(&*engine).await.len() < 150);
    let (mut writer, copied) = filled_from(&store.path("copy"), &store.path("filled"));
    assert_eq!(copied.len(), 201);
    let after = read(&store.links(), before.position, end.position).unwrap();
    after.into_iter().for_each(|group| writer.apply(group.changes).unwrap());
    assert_eq!(in_writer(&writer), rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_every_size_are_read_as_they_were_written() {
    let store = LoggedStore::new();
    let engine = store.open();
    let start = store.link(&engine).await;
    let sizes = [0, 1, 4_095, 4_096, 70_000, VALUE_BYTES_MAX];
    let values = sizes.map(|bytes| [noise(1, bytes)[..bytes].to_vec(), vec![0; bytes]]);
    let values: Vec<_> = values.into_iter().flatten().collect();
    for (number, value) in values.iter().enumerate() {
        commit(&*engine, vec![put(key(format!("{number}")), value.clone())]).await.unwrap();
    }
    let end = store.link(&engine).await;
    // In the journal they are shorter.
    assert!(end.position.offset() < 2 * VALUE_BYTES_MAX as u64);

    let groups = read(&store.links(), start.position, end.position).unwrap();
    for (number, (group, value)) in groups.iter().zip(&values).enumerate() {
        let row = Entry { key: key(format!("{number}")), value: value.clone().into() };
        assert!(group.changes == [LoggedChange::Put(row)], "{number}");
    }
    assert_eq!(groups.len(), values.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_keep_journals_that_the_database_deletes_until_they_are_dropped() {
    let store = LoggedStore::new();
    let links = store.links();
    assert_eq!(linked_bytes(&links).unwrap(), 0);
    drop_links(&links, "9:0:0000000000000000".parse().unwrap()).unwrap();
    let engine = store.open();
    let start = store.link(&engine).await;
    let mut end = start;
    for row in 0_u64.. {
        commit(&*engine, vec![put(key(format!("{}", row % 9)), noise(row, 500_000))])
            .await
            .unwrap();
        end = store.link(&engine).await;
        if linked_bytes(&links).unwrap() > 0 && end.position.journal() > 1 {
            break;
        }
        assert!(row < 2_000, "the database deletes no journal");
    }
    assert!(linked_bytes(&links).unwrap() > 60_000_000);
    assert!(!store.path("store/db/0.jnl").exists());
    assert!(read(&links, start.position, end.position).is_ok());

    drop_links(&links, end.position).unwrap();
    let left: Vec<_> =
        fs::read_dir(&links).unwrap().map(|link| link.unwrap().file_name()).collect();
    assert_eq!(left, [format!("{}.jnl", end.position.journal()).as_str()]);
    assert_eq!(linked_bytes(&links).unwrap(), 0);
    assert!(matches!(
        ChangeReader::open(&links, start.position).err().unwrap(),
        ChangeLogError::Missing { path } if path.ends_with("0.jnl")
    ));
    // The journal of the end is still there.
    commit(&*engine, vec![put(key("a"), "1")]).await.unwrap();
    let later = store.link(&engine).await;
    assert_eq!(read(&links, end.position, later.position).unwrap().len(), 1);
}

/// Groups and syncs of the same changes, with and without marks.
async fn syncs(marks_groups: bool) -> (u64, u64, u64) {
    let directory = tempfile::tempdir().unwrap();
    let (groups, syncs) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (on_group, on_sync) = (Arc::clone(&groups), Arc::clone(&syncs));
    let options = FjallOptions {
        marks_groups,
        // No heartbeat joins a group.
        tick: std::time::Duration::from_secs(3_600),
        on_group: Arc::new(move |_| _ = on_group.fetch_add(1, SeqCst)),
        on_sync: Arc::new(move |_| _ = on_sync.fetch_add(1, SeqCst)),
        ..options(directory.path())
    };
    let engine = FjallEngine::open(options).unwrap();
    for row in 0..50_u64 {
        commit(&engine, vec![put(key(row.to_be_bytes()), "1")]).await.unwrap();
    }
    // Changes that write nothing make no group.
    commit(&engine, Vec::new()).await.unwrap();
    let bytes = trestle_kv_fjall::journal_bytes(directory.path()).unwrap();
    (groups.load(SeqCst), syncs.load(SeqCst), bytes)
}

#[tokio::test]
async fn a_mark_costs_a_row_in_the_journal_and_no_sync() {
    let (groups, synced, bytes) = syncs(false).await;
    let (marked_groups, marked_syncs, marked_bytes) = syncs(true).await;
    assert_eq!((groups, synced), (50, 50));
    assert_eq!((marked_groups, marked_syncs), (50, 50));
    // A floor of versions may join more or fewer groups, as time passes.
    let per_group = (marked_bytes - bytes).div_ceil(50);
    assert!((31..=45).contains(&per_group), "{per_group} bytes for each group");
}
