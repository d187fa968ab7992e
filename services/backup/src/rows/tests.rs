use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn runs<'r>(rows: impl IntoIterator<Item = (&'r Bytes, &'r Bytes)>) -> Vec<ChunkedRows> {
    let mut chunker = RowChunker::new();
    let mut runs: Vec<_> =
        rows.into_iter().filter_map(|(key, value)| chunker.push(key, value)).collect();
    runs.extend(chunker.finish());
    runs
}

fn rows_of(runs: &[ChunkedRows]) -> Vec<(Bytes, Bytes)> {
    runs.iter().flat_map(|run| decode(&run.bytes).map(Result::unwrap)).collect()
}

/// Rows of about 100 bytes, as those of a table.
fn table(rows: u32) -> BTreeMap<Bytes, Bytes> {
    let row = |index: u32| {
        let value = format!("value of {index} {}", "x".repeat((index % 160) as usize));
        (Bytes::from(format!("\x20main/orders/{index:08}")), Bytes::from(value))
    };
    (0..rows).map(row).collect()
}

fn different(before: &[ChunkedRows], after: &[ChunkedRows]) -> usize {
    after.iter().filter(|run| !before.contains(run)).count()
}

#[test]
fn a_change_changes_the_runs_around_it_and_no_others() {
    let before = table(40_000);
    let whole = runs(&before);
    assert!((3..40).contains(&whole.len()), "{}", whole.len());
    assert!(whole.iter().rev().skip(1).all(|run| run.bytes.len() >= BYTES_MIN));
    for key in before.keys().step_by(7_993) {
        let (mut changed, mut shorter, mut longer) =
            (before.clone(), before.clone(), before.clone());
        changed.entry(key.clone()).and_modify(|it| *it = vec![b'y'; it.len()].into());
        assert_eq!(different(&whole, &runs(&changed)), 1);

        shorter.remove(key);
        assert!(different(&whole, &runs(&shorter)) <= 4);

        longer.insert([&**key, b"x"].concat().into(), Bytes::from_static(b"new"));
        assert!(different(&whole, &runs(&longer)) <= 4);
    }
}

#[test]
fn the_largest_rows_fit() {
    let key = Bytes::from(vec![7; KEY_BYTES_MAX]);
    let value = Bytes::from(vec![8; VALUE_BYTES_MAX]);
    let rows = BTreeMap::from([(Bytes::from_static(b"\x01"), Bytes::new()), (key, value)]);
    let runs = runs(&rows);
    assert!(runs.iter().all(|run| run.bytes.len() <= crate::packed::PLAIN_BYTES_MAX));
    assert_eq!(rows_of(&runs), rows.into_iter().collect::<Vec<_>>());
}

#[test]
fn what_is_no_run_is_an_error() {
    let row = |fields: &[u8]| [&[VERSION], fields].concat();
    for (run, reason) in [
        (vec![], "unknown version"),
        (vec![2], "unknown version"),
        (row(&[0, 0, 0]), "a key is out of range"),
        (row(&[1, 1, 0, 7]), "a key refers to no bytes"),
        (row(&[0, 2, 0, 7]), "a row is cut off"),
        (row(&[0, 1, 9, 7]), "a row is cut off"),
        (row(&[0, 1, 0xFF, 0xFF, 0xFF, 0x7F, 7]), "a length is out of range"),
        (row(&[0x80, 0x80, 0x80, 0x80, 1]), "a length is out of range"),
        (row(&[0, 1, 0, 7, 0, 1, 0, 7]), "keys do not ascend"),
        (row(&[0, 1, 0, 7, 0, 1, 0, 6]), "keys do not ascend"),
    ] {
        let error = decode(&run).find_map(Result::err);
        assert_eq!(error, Some(MalformedRows(reason)), "{run:?}");
    }
    assert_eq!(decode(&row(&[])).count(), 0);
}

proptest! {
    #[test]
    fn runs_have_every_row_once_and_in_order(
        rows in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 1..40),
            prop::collection::vec(any::<u8>(), 0..3_000),
            0..300,
        )
    ) {
        let rows: BTreeMap<Bytes, Bytes> =
            rows.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        let runs = runs(&rows);
        prop_assert_eq!(rows_of(&runs), rows.clone().into_iter().collect::<Vec<_>>());
        prop_assert_eq!(runs.iter().map(|run| run.rows).sum::<u64>(), rows.len() as u64);
        for run in &runs {
            let rows = rows_of(std::slice::from_ref(run));
            prop_assert_eq!((&rows[0].0, &rows[rows.len() - 1].0), (&run.first, &run.last));
        }
    }

    #[test]
    fn any_bytes_are_rows_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for bytes in [bytes.clone(), [vec![VERSION], bytes].concat()] {
            let _ = decode(&bytes).count();
        }
    }
}

#[test]
fn of_a_key_the_beginning_is_shown() {
    assert_eq!(shown_key(b"a\0\xff"), "a\\x00\\xff");
    assert_eq!(shown_key(&[b'a'; 300]), "a".repeat(KEY_BYTES_SHOWN));
}
