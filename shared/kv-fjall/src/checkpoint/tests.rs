//! What happens in the middle of a checkpoint.

use std::time::{Duration, Instant};

use bytes::Bytes;
use fjall::{AbstractTree as _, PersistMode};

use super::*;
use crate::compactions;
use crate::options::FjallOptions;
use crate::reader::StoreReader;
use crate::reclaim_run::flush;
use crate::shared::Tree;
use crate::{journal, open};
use trestle_kv::{Keyspace, key_domain};

/// The bound of a wait for a condition.
const HANG: Duration = Duration::from_secs(120);

fn keyspaces() -> Vec<Keyspace> {
    let of = |name, kind| Keyspace { name, kinds: kind..=kind, domain: key_domain };
    vec![of("a", 1), of("b", 2)]
}

fn store(path: &Path) -> EngineState {
    let options = FjallOptions { min_free_bytes: 0, ..FjallOptions::new(path, keyspaces()) };
    open::open(&options).unwrap()
}

fn put(store: &EngineState, tree: &Tree, key: &[u8], value: &[u8]) {
    let mut batch = store.database.batch().durability(Some(PersistMode::Buffer));
    batch.insert(&tree.handle, Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
    let _in_order = store.written.lock();
    batch.commit().unwrap();
}

fn rows(directory: &Path, keyspace: &str) -> Vec<(Bytes, usize)> {
    let reader = StoreReader::open(directory, keyspaces()).unwrap();
    let rows = reader.rows(keyspace, None).unwrap().map(Result::unwrap);
    rows.map(|row| (row.key, row.value.len())).collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < HANG, "{what}");
        std::thread::yield_now();
    }
}

/// Writes until the journal is sealed, in which the other keyspace has a row in memory only.
fn seal_journal(store: &EngineState) {
    let [a, b] = &*store.trees else { panic!("two keyspaces") };
    put(store, b, &[2, b'b'], b"early");
    // Does not compress.
    let mut state = 1_u64;
    let value = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    });
    let value: Vec<u8> = value.take(8 * 1024 * 1024).collect();
    for row in 0..9 {
        put(store, a, &[1, row], &value);
    }
    flush(a).unwrap();
    let database = store.path.join(DATABASE);
    wait_until("a second journal", || journal::list(&database).unwrap().len() == 2);
    assert!(b.handle.tree.current_version().table_count() == 0, "the row is in the journal alone");
}

#[test]
fn rows_that_are_flushed_in_the_middle_are_in_the_copy_though_their_journal_is_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let (from, into) = (directory.path().join("store"), directory.path().join("copy"));
    let store = store(&from);
    seal_journal(&store);
    let source = from.join(DATABASE);
    let before = journal::list(&source).unwrap();

    let target = into.join(DATABASE);
    fs::create_dir_all(target.join(KEYSPACES)).unwrap();
    let copying = Copying { store: &store, into: &into };
    let mut journals = CopiedJournals::new(&source, &target);
    journals.copy().unwrap();
    let flushed = || {
        assert!(store.written.is_locked(), "no write may come in between");
        flush(store.trees.last().unwrap()).unwrap();
        wait_until("the first journal is deleted", || {
            journal::list(&source).unwrap().first() > before.first()
        });
    };
    let (_, trees) = copying.instant(&mut journals, &flushed).unwrap();
    assert!(!store.written.is_locked(), "writes go on");
    journals.finish().unwrap();
    copying.link(&trees, &target.join(KEYSPACES)).unwrap();
    copying.copy_rest(&source, &target).unwrap();

    assert_eq!(rows(&into, "b"), [(Bytes::from_static(&[2, b'b']), 5)]);
    assert_eq!(rows(&into, "a").len(), 9);
}

#[test]
fn tables_that_are_replaced_in_the_middle_can_be_linked() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(&directory.path().join("store"));
    let tree = store.trees.first().unwrap();
    for row in 0..3 {
        put(&store, tree, &[1, row], &[7; 1000]);
        flush(tree).unwrap();
    }
    let tables = tree.handle.path().join("tables");
    let names = || -> Vec<_> {
        fs::read_dir(&tables).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };

    let frozen = frozen::freeze(&store.trees).unwrap();
    let before = names();
    compactions::compact_whole(tree, store.database.visible_seqno()).unwrap();
    assert!(store.release_files(Duration::ZERO), "no snapshot is open");
    assert_eq!(tree.handle.tree.current_version().table_count(), 1, "they were replaced");
    let copy = directory.path().join("copy");
    fs::create_dir(&copy).unwrap();
    frozen.iter().for_each(|tree| tree.link(&copy).unwrap());
    drop(frozen);

    let linked = fs::read_dir(copy.join(tree.handle.path().file_name().unwrap()).join("tables"));
    assert_eq!(linked.unwrap().count(), before.len());
    assert!(names().iter().all(|name| !before.contains(name)), "they are kept no longer");
}

#[test]
fn copies_of_journals_grow_with_them_and_are_removed_with_them() {
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("source"), directory.path().join("target"));
    fs::create_dir(&source).unwrap();
    fs::create_dir(&target).unwrap();
    let write = |number: u64, bytes: &[u8]| {
        // As the database makes them: with zeros to come.
        let bytes = [bytes, &[0; 1000]].concat();
        fs::write(source.join(journal::file_name(number)), bytes).unwrap();
    };
    let mut journals = CopiedJournals::new(&source, &target);

    write(1, b"first");
    write(2, b"sec");
    journals.copy().unwrap();
    fs::remove_file(source.join(journal::file_name(1))).unwrap();
    write(2, b"second");
    write(3, b"");
    journals.copy().unwrap();

    assert_eq!(journals.finish().unwrap(), 6);
    assert_eq!(journal::list(&target).unwrap(), [2, 3]);
    let copy = |number| fs::read(target.join(journal::file_name(number))).unwrap();
    assert_eq!((copy(2), copy(3)), (b"second".to_vec(), vec![]));
}

#[test]
fn a_closed_store_that_is_read_keeps_its_marker_and_its_journals() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    seal_journal(&store);
    drop(store);
    let (marker, database) = (directory.path().join("CLOSED"), directory.path().join(DATABASE));
    let left = (fs::read(&marker).unwrap(), journal::list(&database).unwrap());
    let as_it_is = || (fs::read(&marker).unwrap(), journal::list(&database).unwrap());

    let reader = StoreReader::open(directory.path(), keyspaces()).unwrap();
    let read = reader.rows("a", None).unwrap().map(Result::unwrap).count();
    assert_eq!((read, as_it_is()), (9, left.clone()), "what one that is killed leaves");
    drop(reader);
    assert_eq!(as_it_is(), left);
    assert_eq!(rows(directory.path(), "b").len(), 1);
}
