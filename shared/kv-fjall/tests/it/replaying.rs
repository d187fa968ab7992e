//! Changes of a log that are applied to a store that is being filled.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use trestle_kv::conformance::KEYSPACES;
use trestle_kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use trestle_kv::{Engine as _, Entry, Span};
use trestle_kv_fjall::{FillError, LoggedChange, OpenError, StoreReader, StoreWriter};
use trestle_model::time::Ticks;

use crate::world::{commit, get, key, noise, open, put};

type Rows = BTreeMap<Bytes, Bytes>;

fn create(path: &Path) -> StoreWriter {
    StoreWriter::create(path, KEYSPACES.to_vec()).unwrap()
}

fn set(key: impl Into<Bytes>, value: impl Into<Bytes>) -> LoggedChange {
    LoggedChange::Put(Entry { key: key.into(), value: value.into() })
}

fn second(name: impl AsRef<[u8]>) -> Bytes {
    [&[0x40], name.as_ref()].concat().into()
}

fn written(writer: &StoreWriter) -> Rows {
    let rows = ["first", "second"].map(|name| writer.rows(name, None).unwrap());
    rows.into_iter().flatten().map(|row| row.unwrap()).map(|row| (row.key, row.value)).collect()
}

fn read(path: &Path) -> Rows {
    let reader = StoreReader::open(path, KEYSPACES.to_vec()).unwrap();
    let rows = ["first", "second"].map(|name| reader.rows(name, None).unwrap());
    rows.into_iter().flatten().map(|row| row.unwrap()).map(|row| (row.key, row.value)).collect()
}

fn apply_to(rows: &mut Rows, change: &LoggedChange) {
    match change {
        LoggedChange::Put(Entry { key, value }) => _ = rows.insert(key.clone(), value.clone()),
        LoggedChange::Delete(key) => _ = rows.remove(key),
        LoggedChange::Discard(span) => rows.retain(|key, _| *key < span.start || *key >= span.end),
    }
}

#[tokio::test]
async fn changes_apply_in_order_over_what_was_filled_and_stay() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = create(directory.path());
    let filled = (0..2_000_u32).map(|it| Entry { key: key(it.to_be_bytes()), value: "old".into() });
    writer.fill::<FillError>("first", filled.clone().map(Ok)).unwrap();
    let mut expected: Rows = filled.map(|row| (row.key, row.value)).collect();

    let calls = [
        // A key twice in a call, in both orders.
        vec![set(key("a"), "1"), set(key("a"), "2"), LoggedChange::Delete(key("a"))],
        vec![LoggedChange::Delete(key("b")), set(key("b"), "3"), set(second("b"), "")],
        // What is filled and what was just applied, and what comes after it stays.
        vec![
            set(key(600_u32.to_be_bytes()), "new"),
            LoggedChange::Discard(Span::new(
                key(500_u32.to_be_bytes()),
                key(700_u32.to_be_bytes()),
            )),
            set(key(650_u32.to_be_bytes()), "after"),
            LoggedChange::Discard(Span::new(key("z"), key("y"))),
        ],
        vec![LoggedChange::Delete(key(3_u32.to_be_bytes())), LoggedChange::Delete(second("none"))],
        vec![],
    ];
    for changes in calls {
        changes.iter().for_each(|change| apply_to(&mut expected, change));
        writer.apply(changes).unwrap();
        assert_eq!(written(&writer), expected);
    }
    assert_eq!(expected.len(), 2_000 - 200 + 1 - 1 + 2);
    let after = writer.rows("first", Some(&key("a"))).unwrap().map(|row| row.unwrap().key);
    assert_eq!(after.collect::<Vec<_>>(), [key("b")]);
    assert!(writer.rows("third", None).err().unwrap().to_string().contains("keyspace=`third`"));
    writer.finish(Ticks::MIN).unwrap();

    assert_eq!(read(directory.path()), expected);
    let engine = open(directory.path());
    assert_eq!(get(&*engine, &key("b")).await, Some("3".into()));
    commit(&*engine, vec![put(key("b"), "4")]).await.unwrap();
    assert_eq!(get(&*engine, &key("b")).await, Some("4".into()));
    assert!(engine.status().stopped.is_none());
}

#[test]
fn random_changes_leave_what_a_map_has() {
    let mut random = StdRng::seed_from_u64(7);
    let directory = tempfile::tempdir().unwrap();
    let (mut writer, mut expected) = (create(directory.path()), Rows::new());
    for round in 0..60 {
        let mut changes = Vec::new();
        for _ in 0..random.random_range(0..400) {
            let name = random.random_range(0..3_000_u32).to_be_bytes();
            let row = if random.random() { key(name) } else { second(name) };
            changes.push(match random.random_range(0..100) {
                0 => LoggedChange::Discard(Span::new(row.clone(), [&row[..1], &[0xFF]].concat())),
                1..30 => LoggedChange::Delete(row),
                _ => set(row, noise(random.random(), random.random_range(0..3_000))),
            });
        }
        changes.iter().for_each(|change| apply_to(&mut expected, change));
        writer.apply(changes).unwrap();
        assert!(round % 10 != 0 || written(&writer) == expected, "round {round}");
    }
    writer.finish(Ticks::MIN).unwrap();
    assert!(read(directory.path()) == expected);
}

/// More than the write buffer, most of it over itself, in short calls and in a long one, and then discarded.
#[test]
fn memory_and_journals_stay_bounded_in_calls_of_any_length() {
    const MEBIBYTE: u64 = 1024 * 1024;
    let directory = tempfile::tempdir().unwrap();
    let mut writer = create(directory.path());
    // Cancelled by each other in one memtable.
    writer.apply([set(second("cancelled"), "1")]).unwrap();
    writer.apply([LoggedChange::Delete(second("cancelled"))]).unwrap();
    let value = Bytes::from(noise(1, 2_000));
    let mut journals = 0;
    let mut change = |number: u32| {
        if number.is_multiple_of(10_000) {
            let bytes = trestle_kv_fjall::journal_bytes(directory.path()).unwrap();
            journals = journals.max(bytes);
        }
        let row = number % 13_000;
        match number % 4 {
            3 => LoggedChange::Delete(key(((row + 6_000) % 13_000).to_be_bytes())),
            _ => set(key(row.to_be_bytes()), value.clone()),
        }
    };
    let mut memory = 0;
    for call in 0..60 {
        writer.apply((call * 3_000..(call + 1) * 3_000).map(&mut change)).unwrap();
        memory = memory.max(writer.memtable_bytes());
    }
    writer.apply((180_000..300_000).map(&mut change)).unwrap();
    memory = memory.max(writer.memtable_bytes());

    assert!(journals > 64 * MEBIBYTE, "not enough was written: {journals}");
    assert!(journals < 4 * 64 * MEBIBYTE, "journals grew to {} MiB", journals / MEBIBYTE);
    assert!(memory > 16 * MEBIBYTE, "not enough was written: {memory}");
    assert!(memory < 80 * MEBIBYTE, "memtables grew to {} MiB", memory / MEBIBYTE);
    writer.apply([LoggedChange::Discard(Span::prefix(&[1]))]).unwrap();
    assert_eq!(writer.rows("first", None).unwrap().count(), 0);
    writer.finish(Ticks::MIN).unwrap();
}

#[test]
fn changes_of_no_keyspace_or_too_big_are_rejected_and_the_store_is_not_finished() {
    let big = vec![0; VALUE_BYTES_MAX + 1];
    let cases = [
        (set([0].to_vec(), "own"), "no keyspace holds the key: kind=`0x00`"),
        (LoggedChange::Delete(Bytes::new()), "no keyspace holds the key: kind=`none`"),
        (set(vec![1; KEY_BYTES_MAX + 1], ""), "keyspace=`first`, key_bytes=`60001`"),
        (set(second("a"), big), "value_bytes=`8388609`"),
        (LoggedChange::Discard(Span::new(key("a"), second("b"))), "span crosses keyspaces"),
        (LoggedChange::Discard(Span::new([0].to_vec(), key("b"))), "no keyspace holds the key"),
    ];
    for (change, expected) in cases {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = create(directory.path());
        let error = writer.apply([set(key("a"), "1"), change]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        // Nor is it after a call that succeeds.
        writer.apply([set(key("a"), "1")]).unwrap();
        let error = writer.finish(Ticks::MIN).unwrap_err();
        assert!(error.to_string().contains("not applied to their end"), "{error}");
        let opened = StoreReader::open(directory.path(), KEYSPACES.to_vec()).err().unwrap();
        assert!(matches!(opened, OpenError::Manifest { .. }), "{opened}");
    }
}

#[test]
fn a_keyspace_with_changes_is_not_filled_and_another_one_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = create(directory.path());
    writer.apply([set(key("a"), "1")]).unwrap();
    let row = Entry { key: second("b"), value: "2".into() };
    assert_eq!(writer.fill::<FillError>("second", [Ok(row)].into_iter()).unwrap(), 1);
    assert_eq!(written(&writer).len(), 2);
    let error = writer.fill::<FillError>("first", std::iter::empty()).unwrap_err();
    assert!(matches!(error, FillError::Repeated { keyspace: "first" }), "{error}");
    // An error of a keyspace that was filled again; what it has is not known to be whole.
    assert!(writer.finish(Ticks::MIN).is_err());
}
