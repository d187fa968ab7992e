use std::collections::BTreeMap;

use bytes::Bytes;
use futures::StreamExt as _;
use object_store::{GetOptions, GetRange, ObjectStore as _, ObjectStoreExt as _, path::Path};
use proptest::prelude::*;
use trestle_kv::{EngineError, Entry, ScanLimit, Snapshot as _, Span};
use trestle_kv_fjall::LoggedChange;

use super::{changed::tests::changed, objects::BackedUpObjects, rows::BackedUpRows, *};
use crate::{
    lists::ChunkRef,
    names::{PartName, tests::name},
    packed,
    pieces::PIECE_BYTES,
    rows::RowChunker,
    rules::ObjectName,
};

const LIMIT: ScanLimit = ScanLimit { rows: 1000, bytes: 1 << 20 };

struct Place {
    folder: tempfile::TempDir,
    repository: Arc<Repository>,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().to_str().unwrap();
        let repository = Arc::new(Repository::create(text, "id", None).await.unwrap());
        Self { folder, repository }
    }

    async fn put(&self, name: PartName, plain: &[u8]) {
        let path = name.path();
        self.repository.put(&path, packed::pack(&path, plain, 1)).await.unwrap();
    }

    /// The rows as a backup of them, a few in a chunk.
    async fn rows(&self, rows: &BTreeMap<Bytes, Bytes>) -> BackedUpRows {
        let mut chunks = Vec::new();
        for part in rows.iter().collect::<Vec<_>>().chunks(3) {
            let mut chunker = RowChunker::new();
            for (key, value) in part {
                assert!(chunker.push(key, value).is_none());
            }
            let run = chunker.finish().unwrap();
            let name = name(&run.bytes);
            self.put(name, &run.bytes).await;
            let (rows, first, last) = (run.rows, run.first, run.last);
            chunks.push(ChunkRef { name: name.into(), rows, first, last });
        }
        let mut found = BackedUpRows::new(Arc::clone(&self.repository), |row| Ok(Some(row)));
        found.add(1..=1, Vec::new());
        found.add(2..=9, chunks);
        found
    }
}

fn row(number: u8) -> (Bytes, Bytes) {
    (Bytes::from(vec![2 + number % 3, number]), Bytes::from(vec![number; usize::from(number % 5)]))
}

/// Every entry of a span, by pages of a few.
async fn pages(rows: &impl trestle_kv::Snapshot, mut span: Span, rows_max: usize) -> Vec<Entry> {
    let (mut found, limit) = (Vec::new(), ScanLimit { rows: rows_max, bytes: 6 });
    loop {
        let scan = rows.scan(&span, limit).await.unwrap();
        assert!(scan.entries.len() <= rows_max && (!scan.more || !scan.entries.is_empty()));
        found.extend(scan.entries);
        let Some(last) = found.last().filter(|_| scan.more) else { return found };
        match span.direction {
            trestle_kv::Direction::Forward => span.start = trestle_kv::after_key(&last.key).into(),
            trestle_kv::Direction::Backward => span.end = last.key.clone(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn rows_are_read_as_from_a_map(
        numbers in proptest::collection::btree_set(0_u8..60, 0..40),
        start in (2_u8..6, 0_u8..70),
        end in (2_u8..6, 0_u8..70),
        rows_max in 1_usize..5,
        backward in any::<bool>(),
    ) {
        let map: BTreeMap<Bytes, Bytes> = numbers.into_iter().map(row).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let place = Place::new().await;
            let rows = place.rows(&map).await;
            for number in 0..60 {
                let (key, _) = row(number);
                assert_eq!(rows.get(&key).await.unwrap(), map.get(&key).cloned());
            }
            let bounds = [start, end].map(|(kind, number)| Bytes::from(vec![kind, number]));
            let [start, end] = bounds;
            let span = Span::new(start.clone(), end.clone());
            let range = map.iter().filter(|(key, _)| **key >= start && **key < end);
            let range = range.map(|(key, value)| Entry { key: key.clone(), value: value.clone() });
            let mut expected: Vec<Entry> = range.collect();
            let span = match backward {
                true => {
                    expected.reverse();
                    span.backward()
                }
                false => span,
            };
            assert_eq!(pages(&rows, span.clone(), rows_max).await, expected);
            let whole = rows.scan(&span, LIMIT).await.unwrap();
            assert_eq!((whole.entries, whole.more), (expected, false));
        });
    }
}

/// A change of a row, or of a range of them.
fn change() -> impl Strategy<Value = LoggedChange> {
    let key = |number| row(number).0;
    prop_oneof![
        4 => (0_u8..60, 0_u8..9).prop_map(move |(number, length)| LoggedChange::Put(Entry {
            key: key(number),
            value: vec![b'n'; usize::from(length)].into(),
        })),
        3 => (0_u8..60).prop_map(move |number| LoggedChange::Delete(key(number))),
        1 => (2_u8..=4, 0_u8..60, 1_u8..20).prop_map(|(kind, first, length)| {
            LoggedChange::Discard(Span::new(vec![kind, first], vec![kind, first + length]))
        }),
    ]
}

fn apply(map: &mut BTreeMap<Bytes, Bytes>, change: &LoggedChange) {
    match change {
        LoggedChange::Put(row) => drop(map.insert(row.key.clone(), row.value.clone())),
        LoggedChange::Delete(key) => drop(map.remove(key)),
        LoggedChange::Discard(span) => map.retain(|key, _| *key < span.start || *key >= span.end),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn changed_rows_are_read_as_from_a_map(
        numbers in proptest::collection::btree_set(0_u8..60, 0..40),
        changes in proptest::collection::vec(change(), 0..25),
        start in (2_u8..6, 0_u8..70),
        end in (2_u8..6, 0_u8..70),
        rows_max in 1_usize..5,
    ) {
        let mut map: BTreeMap<Bytes, Bytes> = numbers.into_iter().map(row).collect();
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        runtime.block_on(async {
            let place = Place::new().await;
            let base = place.rows(&map).await;
            changes.iter().for_each(|change| apply(&mut map, change));
            let keyspace = |name, kinds| trestle_kv::Keyspace { name, kinds, domain: trestle_kv::key_domain };
            let keyspaces = [keyspace("first", 1..=1), keyspace("second", 2..=9)];
            let rows = changed(base, changes, &keyspaces).await;
            for number in 0..60 {
                let (key, _) = row(number);
                assert_eq!(rows.get(&key).await.unwrap(), map.get(&key).cloned());
            }
            let [start, end] = [start, end].map(|(kind, number)| Bytes::from(vec![kind, number]));
            let span = Span::new(start.clone(), end.clone());
            if !span.is_empty() {
                let mut expected: Vec<Entry> = map
                    .range(start..end)
                    .map(|(key, value)| Entry { key: key.clone(), value: value.clone() })
                    .collect();
                assert_eq!(pages(&rows, span.clone(), rows_max).await, expected);
                let whole = rows.scan(&span, LIMIT).await.unwrap();
                assert_eq!((&whole.entries, whole.more), (&expected, false));
                expected.reverse();
                assert_eq!(pages(&rows, span.backward(), rows_max).await, expected);
            }
        });
    }
}

#[tokio::test]
async fn a_chunk_that_is_missing_or_changed_is_an_error_of_its_reads_alone() {
    let place = Place::new().await;
    let map: BTreeMap<Bytes, Bytes> = (0..9).map(row).collect();
    let rows = place.rows(&map).await;
    let keys: Vec<_> = map.keys().collect();
    let parts = place.repository.list("parts").await.unwrap();
    for part in &parts {
        let path = place.folder.path().join(part.location.as_ref());
        std::fs::write(path, "x").unwrap();
    }
    let read = rows.get(keys[0]).await;
    assert!(matches!(read, Err(EngineError::Corrupt { .. })), "{read:?}");
    assert!(matches!(
        rows.scan(&Span::prefix(b"\x02"), LIMIT).await,
        Err(EngineError::Corrupt { .. })
    ));
    assert_eq!(rows.get(b"\x01a").await.unwrap(), None, "a keyspace without rows");
    assert_eq!(rows.get(b"\x0Aa").await.unwrap(), None);
}

#[tokio::test]
async fn ranges_of_objects_are_read_across_pieces() {
    let place = Place::new().await;
    let path = "main/app/1".to_owned();
    let object = ObjectName { area: ObjectAreaName::Logs, path: path.clone() };
    let bytes: Vec<u8> = (0..PIECE_BYTES + 100).map(|it| (it % 251) as u8).collect();
    let parts = name(b"object");
    let (first, second) = bytes.split_at(usize::try_from(PIECE_BYTES).unwrap());
    place.put(parts.piece(0), first).await;
    place.put(parts.piece(1), second).await;
    let mut objects = BackedUpObjects::new(Arc::clone(&place.repository));
    objects.add(ObjectRef::new(&object, bytes.len() as u64, parts));
    let location = Path::from(path);

    assert_eq!(objects.head(&location).await.unwrap().size, bytes.len() as u64);
    let whole = objects.get(&location).await.unwrap().bytes().await.unwrap();
    assert!(whole == bytes);
    let edge = PIECE_BYTES - 3..PIECE_BYTES + 5;
    let read = objects.get_range(&location, edge.clone()).await.unwrap();
    let expected = &bytes[usize::try_from(edge.start).unwrap()..usize::try_from(edge.end).unwrap()];
    assert_eq!(read, expected);
    let tail = GetOptions { range: Some(GetRange::Suffix(7)), ..GetOptions::default() };
    let read = objects.get_opts(&location, tail).await.unwrap().bytes().await.unwrap();
    assert_eq!(read, bytes[bytes.len() - 7..]);

    let absent = objects.get(&Path::from("other")).await;
    assert!(matches!(absent, Err(object_store::Error::NotFound { .. })), "{absent:?}");
    let put = objects.put(&location, "x".into()).await;
    assert!(put.unwrap_err().to_string().contains("accepts no writes"));
    assert!(objects.delete(&location).await.is_err());
    assert!(objects.list(None).next().await.is_none());
}

#[test]
fn chunks_are_of_their_keyspace_in_order_and_complete() {
    let chunk = |first: &[u8], last: &[u8], rows| ChunkRef {
        name: name(first).into(),
        rows,
        first: Bytes::copy_from_slice(first),
        last: Bytes::copy_from_slice(last),
    };
    let [one, two, three] =
        [chunk(b"\x01a", b"\x01c", 3), chunk(b"\x01d", b"\x02a", 2), chunk(b"\x02b", b"\x02b", 1)];
    let all = [one.clone(), two.clone(), three.clone()];
    assert_eq!(check(&all, &(1..=2), 6), Ok(()));
    assert_eq!(check(&[], &(1..=2), 0), Ok(()));
    let wrong = [
        (all.to_vec(), 1..=1, 6, "of another keyspace"),
        (vec![two.clone(), one.clone()], 1..=2, 5, "not in order"),
        (vec![one.clone(), one.clone()], 1..=2, 6, "not in order"),
        (vec![chunk(b"\x01c", b"\x01a", 3)], 1..=2, 3, "not in order"),
        (vec![chunk(b"", b"\x01a", 3)], 1..=2, 3, "of another keyspace"),
        (vec![one.clone(), three.clone()], 1..=2, 6, "found=`4`"),
        (vec![chunk(b"\x01a", b"\x01b", u64::MAX), two], 1..=2, 1, "found=`18446744073709551615`"),
    ];
    for (chunks, kinds, rows, expected) in wrong {
        let error = check(&chunks, &kinds, rows).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
