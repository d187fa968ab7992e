//! What is whole, what is damaged, and what only looks like a group.

#![allow(clippy::indexing_slicing, reason = "tests")]

use std::io::Cursor;

use super::encoded::encode_group;
use super::examine::{JournalExam, examine};
use super::rows::RowsByKind;
use trestle_kv::{Keyspace, Keyspaces, key_domain};

fn exam_after(before: Option<u64>, bytes: &[u8]) -> JournalExam {
    examine(Cursor::new(bytes), bytes.len() as u64, before).expect("bytes in memory")
}

fn exam(bytes: &[u8]) -> JournalExam {
    exam_after(None, bytes)
}

/// Groups with these sequence numbers, each with a value of so many bytes; and where each begins.
fn journal(seqnos: &[u64], value: usize) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    for seqno in seqnos {
        starts.push(bytes.len());
        bytes.extend(encode_group(*seqno, &[(b"\x20key", &vec![7; value])]));
    }
    (bytes, starts)
}

fn groups_after(exam: &JournalExam) -> (u64, u64) {
    assert!(exam.damage.is_some());
    (exam.whole.groups, exam.groups_after())
}

#[test]
fn whole_groups_are_counted_with_their_rows() {
    let (mut bytes, _) = journal(&[3, 4, 900], 10);
    bytes.extend(encode_group(901, &[(b"\x01a", b""), (b"\x00", b"own")]));

    let exam = exam(&bytes);

    assert!(exam.damage.is_none());
    assert_eq!((exam.whole.groups, exam.whole.end), (4, bytes.len() as u64));
    assert_eq!(exam.last_seqno(), Some(901));
    let keyspace = |name, kinds| Keyspace { name, kinds, domain: key_domain };
    let keyspaces = Keyspaces::new(vec![keyspace("meta", 1..=2), keyspace("rows", 0x20..=0x2f)]);
    let keyspaces = keyspaces.expect("valid keyspaces");
    assert_eq!(exam.rows.by_keyspace(&keyspaces), "meta=1, rows=3");
    assert_eq!(RowsByKind::default().by_keyspace(&keyspaces), "none");
}

#[test]
fn an_empty_journal_has_nothing_and_lacks_nothing() {
    let exam = exam(&[]);
    assert_eq!((exam.whole.groups, exam.last_seqno()), (0, None));
    assert!(exam.damage.is_none());
}

#[test]
fn every_cut_is_damage_without_a_group_behind() {
    let (bytes, starts) = journal(&[1, 2, 3], 30);
    for cut in starts[2] + 1..bytes.len() {
        let exam = exam(&bytes[..cut]);
        assert_eq!(groups_after(&exam), (2, 0), "{cut}");
        assert_eq!(exam.whole.end, starts[2] as u64);
        assert_eq!(exam.damaged_bytes(), (cut - starts[2]) as u64);
    }
}

#[test]
fn groups_behind_damage_of_any_length_are_found() {
    let (bytes, starts) = journal(&[1, 2, 3, 4, 5], 5_000);
    for (from, to) in [(1, 2), (1, 4), (0, 1), (0, 4)] {
        let mut bytes = bytes.clone();
        bytes[starts[from]..starts[to]].fill(0);
        assert_eq!(groups_after(&exam(&bytes)), (from as u64, 5 - to as u64));
        bytes[starts[from]..starts[to]].fill(0xff);
        assert_eq!(groups_after(&exam(&bytes)), (from as u64, 5 - to as u64));
        // What was read up to the damage is read again behind it: one more piece than the buffer has.
        bytes[starts[from]..starts[to]].fill(1);
        assert_eq!(groups_after(&exam(&bytes)), (from as u64, 5 - to as u64));
    }
}

#[test]
fn groups_between_two_places_of_damage_count() {
    let (mut bytes, starts) = journal(&[1, 2, 3, 4, 5], 300);
    bytes[starts[1]] = 9;
    bytes[starts[3]] = 0;
    let exam = exam(&bytes);
    assert_eq!(groups_after(&exam), (1, 2));
    let lost = (starts[2] - starts[1] + starts[4] - starts[3]) as u64;
    assert_eq!(exam.damaged_bytes(), lost);
}

#[test]
fn groups_in_values_do_not_count() {
    let (inner, _) = journal(&[12, 13, 14], 50);
    let value = [&[7; 100][..], &inner, &[7; 100]].concat();
    let mut bytes = journal(&[10, 11], 10).0;
    let start = bytes.len();
    bytes.extend(encode_group(12, &[(b"\x20key", &value)]));

    // Its start is lost, then only a byte of its value.
    for position in [start, start + 60] {
        let mut bytes = bytes.clone();
        bytes[position] ^= 0x80;
        assert_eq!(groups_after(&exam(&bytes)), (2, 0), "{position}");
    }
    // Nor do groups of another age that are last in what is left of it.
    let (old, _) = journal(&[3, 4], 50);
    let torn = [&journal(&[10, 11], 10).0[..], &[2; 40], &old].concat();
    assert_eq!(groups_after(&exam(&torn)), (2, 0));
}

#[test]
fn a_sequence_number_that_its_neighbours_contradict_is_damage() {
    for (seqnos, expected) in [
        (&[5, 6, 7, 8][..], None),
        (&[5, 6, 5, 8], Some((2, 1))),
        (&[5, 7, 7, 8], Some((1, 2))),
        (&[5, 1 << 40, 7, 8], Some((1, 2))),
        (&[9, 6, 7, 8], Some((0, 3))),
        (&[5, 6, 7, 1 << 40], Some((3, 0))),
    ] {
        let exam = exam(&journal(seqnos, 10).0);
        assert_eq!(exam.damage.is_some().then(|| groups_after(&exam)), expected, "{seqnos:?}");
    }
}

/// A repair joins the runs, and what it wrote is examined again.
#[test]
fn the_runs_around_bytes_that_are_there_twice_can_be_joined() {
    let (bytes, _) = journal(&[5, 6, 7, 8], 40);
    for length in 1..bytes.len() {
        for at in 0..=bytes.len() - length {
            let (before, after) = bytes.split_at(at + length);
            let doubled = [before, &before[at..], after].concat();
            let exam = exam(&doubled);
            let Some(damage) = &exam.damage else { continue };
            let runs = std::iter::once(&exam.whole).chain(&damage.after);
            let index = |at: u64| usize::try_from(at).expect("bytes in memory");
            let joined: Vec<u8> =
                runs.flat_map(|run| &doubled[index(run.start)..index(run.end)]).copied().collect();
            let again = examine(Cursor::new(&joined), joined.len() as u64, None).expect("bytes");
            assert!(again.damage.is_none(), "{length} bytes at {at}");
        }
    }
}

#[test]
fn the_journal_before_bounds_what_is_found() {
    let (mut bytes, starts) = journal(&[100, 101], 10);
    bytes[starts[0]] = 0;
    assert_eq!(groups_after(&exam_after(Some(99), &bytes)), (0, 1));
    assert_eq!(groups_after(&exam_after(Some(101), &bytes)), (0, 0));

    let mut sealed = exam(&journal(&[98, 100], 10).0);
    sealed.check_before(&exam(&journal(&[100], 10).0));
    assert_eq!((sealed.whole.groups, sealed.damage.is_some()), (1, true));
}

#[test]
fn an_item_that_the_database_does_not_read_is_no_part_of_a_group() {
    let (bytes, _) = journal(&[1], 10);
    for (position, value) in [(13, 5), (14, 4), (15, 2), (26, 1)] {
        let mut bytes = bytes.clone();
        bytes[position] = value;
        assert_eq!(groups_after(&exam(&bytes)), (0, 0), "{position}");
    }
}
