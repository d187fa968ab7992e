//! A change log that is damaged, of another store, or of a store that ended without notice.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use bytes::Bytes;
use proptest::prelude::*;
use trestle_kv::CommitPoint;
use trestle_kv_fjall::encode_group;
use trestle_kv_fjall::{
    ChangeGroup, ChangeLogError, ChangeReader, FjallEngine, FjallOptions, LogEnd, LogPosition,
    LoggedChange,
};
use trestle_model::time::Ticks;

use crate::change_log::{LoggedStore, Rows, apply, link, live, read, second};
use crate::fixture_files::copy;
use crate::world::{commit, key, noise, options, put};

fn position(text: &str) -> LogPosition {
    text.parse().unwrap()
}

/// A log of a few groups in one journal, and where it ends.
async fn small_log(store: &LoggedStore) -> LogEnd {
    let engine = store.open();
    for row in 0..8_u64 {
        let writes = vec![put(key(row.to_be_bytes()), "1"), put(second("a"), noise(row, 40))];
        commit(&*engine, writes).await.unwrap();
    }
    store.link(&engine).await
}

const START: &str = "0:0:0000000000000000";

#[tokio::test]
async fn a_log_goes_on_where_it_was_after_a_crash_and_its_torn_end_is_not_in_it() {
    let store = LoggedStore::new();
    let engine = store.open();
    let start = store.link(&engine).await;
    for row in 0..20_u64 {
        commit(&*engine, vec![put(key(row.to_be_bytes()), noise(row, 5_000))]).await.unwrap();
    }
    let middle = store.link(&engine).await;
    commit(&*engine, vec![put(key("last"), "1")]).await.unwrap();
    let end = store.link(&engine).await;
    // What a crash leaves, with a part of a group that was being written, in the links too.
    let crashed = LoggedStore::new();
    copy(&store.path("store"), &crashed.path("store"));
    drop(engine);
    fs::create_dir_all(crashed.links()).unwrap();
    let journal = crashed.path("store/db/0.jnl");
    let torn = encode_group(1 << 20, &[(&key("torn"), &noise(1, 9_000))]);
    let mut file = fs::File::options().append(true).open(&journal).unwrap();
    file.write_all(&torn[..6_000]).unwrap();
    fs::hard_link(&journal, crashed.links().join("0.jnl")).unwrap();
    let mut reader = ChangeReader::open(&crashed.links(), middle.position).unwrap();
    assert_eq!(reader.next(end.position).unwrap().unwrap().end, end.position);

    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let before = inode(&journal);
    let engine = crashed.open();
    assert_ne!(inode(&journal), before, "the recovery did not write it anew");
    let opened = crashed.link(&engine).await;
    assert_eq!(inode(&crashed.links().join("0.jnl")), inode(&journal));
    assert_eq!(fs::read_dir(crashed.links()).unwrap().count(), 1);
    assert!(opened.position >= end.position && opened.newest >= end.newest);
    commit(&*engine, vec![put(key("after"), "2")]).await.unwrap();
    let last = crashed.link(&engine).await;

    // The reader that was open meanwhile, and a new one.
    let group = reader.next(last.position).unwrap().unwrap();
    assert_eq!(group.changes.len(), 1);
    assert!(group.version > end.newest && group.version == last.newest);
    assert!(reader.next(last.position).unwrap().is_none());
    let groups = read(&crashed.links(), start.position, last.position).unwrap();
    assert_eq!(groups.len(), 22);
    let mut rows = Rows::new();
    apply(&mut rows, &groups);
    assert!(rows == live(&*engine).await && rows.contains_key(&key("after")));
}

#[tokio::test]
async fn a_log_goes_on_after_a_clean_end() {
    let store = LoggedStore::new();
    let end = small_log(&store).await;
    for round in 0..3 {
        let engine = store.open();
        commit(&*engine, vec![put(key("a"), format!("{round}"))]).await.unwrap();
        let later = store.link(&engine).await;
        let groups = read(&store.links(), end.position, later.position).unwrap();
        assert_eq!(groups.len(), round + 1);
        let all = read(&store.links(), position(START), later.position).unwrap();
        assert_eq!(all.len(), 8 + round + 1);
        assert!(all.is_sorted_by(|a, b| a.version < b.version));
    }
}

/// What was read, and how reading ended.
fn read_all(links: &Path, until: LogPosition) -> (Vec<ChangeGroup>, Option<ChangeLogError>) {
    let mut groups = Vec::new();
    let mut reader = match ChangeReader::open(links, position(START)) {
        Ok(reader) => reader,
        Err(error) => return (groups, Some(error)),
    };
    loop {
        match reader.next(until) {
            Ok(Some(group)) => groups.push(group),
            Ok(None) => return (groups, None),
            Err(error) => {
                // It is the same when it is tried again.
                let again = reader.next(until).unwrap_err();
                assert_eq!(again.to_string(), error.to_string());
                return (groups, Some(error));
            }
        }
    }
}

#[tokio::test]
async fn every_flipped_byte_is_reported_or_changes_nothing_that_is_read() {
    let store = LoggedStore::new();
    let end = small_log(&store).await;
    let expected = read_all(&store.links(), end.position).0;
    let links = store.path("damaged");
    copy(&store.links(), &links);
    let journal = links.join("0.jnl");
    let bytes = fs::read(&journal).unwrap();
    let file = fs::File::options().read(true).write(true).open(&journal).unwrap();
    let length = usize::try_from(end.position.offset()).unwrap();
    let mut reported = 0;
    for at in 0..length {
        for flip in [1, 0x80, 0xFF] {
            file.write_all_at(&[bytes[at] ^ flip], at as u64).unwrap();
            let (groups, error) = read_all(&links, end.position);
            file.write_all_at(&bytes[at..=at], at as u64).unwrap();
            match error {
                Some(error) => {
                    let is_named = matches!(
                        error,
                        ChangeLogError::Damaged { .. } | ChangeLogError::WrongCheck { .. }
                    );
                    assert!(is_named, "byte {at}: {error}");
                    assert!(expected.starts_with(&groups), "byte {at}");
                    reported += 1;
                }
                // A sequence number, which nothing is made of.
                None => assert_eq!(groups, expected, "byte {at}"),
            }
        }
    }
    assert!(reported > 3 * (length - 9 * expected.len()), "{reported} of {}", 3 * length);
    assert_eq!(read_all(&links, end.position).0, expected);
}

#[tokio::test]
async fn a_torn_end_before_the_position_is_damage_and_after_it_is_not_read() {
    let store = LoggedStore::new();
    let end = small_log(&store).await;
    let links = store.path("damaged");
    copy(&store.links(), &links);
    let journal = fs::File::options().write(true).open(links.join("0.jnl")).unwrap();
    journal.write_all_at(&[1; 700], end.position.offset()).unwrap();
    assert_eq!(read_all(&links, end.position).0.len(), 8);

    journal.set_len(end.position.offset() - 1).unwrap();
    let (groups, error) = read_all(&links, end.position);
    assert!(matches!(error, Some(ChangeLogError::WrongCheck { .. })), "{error:?}");
    assert_eq!(groups.len(), 0);
    // In a journal before that of the position.
    let next = fs::File::create(links.join("1.jnl")).unwrap();
    next.set_len(1 << 20).unwrap();
    let (groups, error) = read_all(&links, position("1:0:0000000000000000"));
    assert!(matches!(error, Some(ChangeLogError::Damaged { .. })), "{error:?}");
    assert!(error.unwrap().to_string().contains("no whole group is there"));
    assert_eq!(groups.len(), 7);
}

#[tokio::test]
async fn journals_that_are_missing_and_positions_of_elsewhere_are_reported() {
    let (store, other) = (LoggedStore::new(), LoggedStore::new());
    let (end, foreign) = (small_log(&store).await, small_log(&other).await);
    let links = store.links();
    let after = |offset: u64| position(&format!("0:{offset}:{:016x}", end.position.check()));
    let fails = |from: LogPosition, until: LogPosition| read(&links, from, until).unwrap_err();

    let error = fails(foreign.position, foreign.position).to_string();
    assert!(error.contains("another group before the position"), "{error}");
    let error = fails(position(START), foreign.position);
    assert!(matches!(error, ChangeLogError::WrongCheck { .. }), "{error}");
    for offset in [end.position.offset() + 1, 1 << 20, 1 << 40, u64::MAX, 5] {
        let error = fails(after(offset), after(offset)).to_string();
        assert!(error.contains("no group ends there"), "{error}");
    }
    let error = fails(end.position, position(START));
    assert!(matches!(error, ChangeLogError::PastEnd { .. }), "{error}");
    let error = fails(position(START), position("1:0:0000000000000000"));
    assert!(matches!(&error, ChangeLogError::Missing { path } if path.ends_with("1.jnl")));
    // The one in between.
    fs::write(links.join("2.jnl"), "").unwrap();
    let (groups, error) = read_all(&links, position("2:0:0000000000000000"));
    assert!(matches!(error, Some(ChangeLogError::Missing { path }) if path.ends_with("1.jnl")));
    // Groups of the close may follow those of the log, and have no rows.
    assert_eq!(groups.len(), 8);
}

#[tokio::test]
async fn groups_that_are_not_marked_are_reported() {
    let store = LoggedStore::new();
    let unmarked = FjallOptions { marks_groups: false, ..store.options() };
    let engine = FjallEngine::open(unmarked).unwrap();
    let start = store.link(&engine).await;
    commit(&engine, vec![put(key("a"), "1")]).await.unwrap();
    let end = store.link(&engine).await;
    let error = read(&store.links(), start.position, end.position).unwrap_err();
    assert!(matches!(error, ChangeLogError::Unmarked { position } if position == start.position));
    drop(engine);

    let engine = store.open();
    let from = store.link(&engine).await;
    commit(&*engine, vec![put(key("a"), "2")]).await.unwrap();
    let end = store.link(&engine).await;
    assert_eq!(read(&store.links(), from.position, end.position).unwrap().len(), 1);
}

#[tokio::test]
async fn a_log_is_linked_of_a_store_that_is_open_and_takes_writes() {
    let store = LoggedStore::new();
    let fails = Arc::new(AtomicBool::new(false));
    let hook = Arc::clone(&fails);
    let options = FjallOptions {
        on_point: Some(Arc::new(move |point| match point {
            CommitPoint::BeforeJournal if hook.load(SeqCst) => Err("the disk is broken".into()),
            _ => Ok(()),
        })),
        ..store.options()
    };
    let engine = FjallEngine::open(options).unwrap();
    commit(&engine, vec![put(key("a"), "1")]).await.unwrap();
    store.link(&engine).await;
    fails.store(true, SeqCst);
    commit(&engine, vec![put(key("a"), "2")]).await.unwrap_err();
    let error = link(&engine, store.links()).await.unwrap_err();
    assert!(error.to_string().contains("the disk is broken"), "{error}");
    let log = engine.change_log();
    drop(engine);
    assert!(matches!(log.link(&store.links()).unwrap_err(), ChangeLogError::Closed));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn links_on_another_file_system_are_rejected_and_the_directory_named() {
    let store = LoggedStore::new();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    let engine = store.open();
    assert_ne!(device(&store.path("store")), device(elsewhere.path()), "TMPDIR is in /dev/shm");
    let error = link(&engine, elsewhere.path().into()).await.unwrap_err();
    assert!(matches!(error, ChangeLogError::Links { .. }), "{error}");
    assert!(error.to_string().contains(elsewhere.path().to_str().unwrap()), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

/// A group with a mark and a row of a service.
fn marked(seqno: u64, version: u64, key: &[u8], value: &[u8]) -> Vec<u8> {
    encode_group(seqno, &[(&[0, 3], &version.to_be_bytes()), (key, value)])
}

/// The position after bytes, whatever they are.
fn end_of(bytes: &[u8]) -> LogPosition {
    let check = bytes.len().checked_sub(12).and_then(|at| bytes[at..].first_chunk());
    let check = check.map_or(0, |check| u64::from_le_bytes(*check));
    position(&format!("0:{}:{check:016x}", bytes.len()))
}

/// How reading a journal of these bytes ends.
fn read_bytes(bytes: &[u8]) -> (Vec<ChangeGroup>, Option<ChangeLogError>) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("0.jnl"), bytes).unwrap();
    read_all(directory.path(), end_of(bytes))
}

#[test]
fn groups_that_contradict_each_other_or_have_malformed_rows_are_damage() {
    let a: &[u8] = b"\x01a";
    let first = marked(5, 100, a, b"1");
    let discard: &[u8] = b"\0\0\0\x02\x01a\x01b";
    let with_discard = |version: u64, row: &[u8]| {
        encode_group(6, &[(&[0, 4], row), (&[0, 3], &version.to_be_bytes())])
    };
    assert_eq!(read_bytes(&first).0.len(), 1);
    let (groups, error) = read_bytes(&[&first[..], &with_discard(100, discard)].concat());
    assert!(error.is_none() && groups[1].version == groups[0].version);
    assert!(matches!(&*groups[1].changes, [LoggedChange::Discard(span)] if span.start == a));
    let cases = [
        (marked(6, 100, a, b"2"), "the version does not rise: before=`100`, found=`100`"),
        (marked(6, 99, a, b"2"), "the version does not rise"),
        (with_discard(99, discard), "the version does not rise"),
        (marked(5, 101, a, b"2"), "the sequence number does not rise: before=`5`, found=`5`"),
        (marked(4, 101, a, b"2"), "the sequence number does not rise"),
        (marked(6, Ticks::MAX.get() + 1, a, b"2"), "the version of a group is malformed"),
        (encode_group(6, &[(&[0, 3], b"short"), (a, b"")]), "the version of a group is malformed"),
        (with_discard(101, b"\0\0\0\x09\x01a"), "the span of a discard is malformed"),
        (encode_group(6, &[(a, b"2")]), "a group of the change log has no version"),
        (encode_group(6, &[(&[0, 4], discard)]), "a group of the change log has no version"),
        (marked(6, 101, b"", b"2"), "a length that is not possible"),
    ];
    for (group, expected) in cases {
        let (groups, error) = read_bytes(&[&first[..], &group].concat());
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(groups.len() == 1 && error.contains(expected), "{expected}: {error}");
    }
    // Rows of the engine alone move the position on.
    let own = encode_group(6, &[(&[0], b"x"), (&[0, 1], b"y")]);
    let (groups, error) = read_bytes(&[&first[..], &own, &marked(7, 101, a, b"2")].concat());
    assert!(groups.len() == 2 && error.is_none(), "{error:?}");
}

proptest! {
    /// The last group stays whole, so that the position is accepted and reading begins.
    #[test]
    fn bytes_of_any_kind_are_read_or_reported_and_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        is_journal: bool,
    ) {
        let mut journal = Vec::new();
        if is_journal {
            let value = Bytes::from(bytes);
            for seqno in 1..5 {
                journal.extend(marked(seqno, 10 + seqno, b"\x01key", &value));
            }
        } else {
            journal.extend(bytes);
        }
        for (at, byte) in edits {
            if !journal.is_empty() {
                let at = at.index(journal.len());
                journal[at] = byte;
            }
        }
        journal.extend(marked(9, 90, b"\x01last", b"1"));
        let (groups, error) = read_bytes(&journal);
        prop_assert!(groups.len() <= 5);
        prop_assert!(error.is_some() || groups.last().is_some_and(|last| last.end == end_of(&journal)));
    }
}

/// An engine that is opened as before leaves no row of its own that a service or a copy could see.
#[tokio::test]
async fn marks_are_no_rows_of_a_service() {
    let store = LoggedStore::new();
    small_log(&store).await;
    let engine = FjallEngine::open(options(&store.path("store"))).unwrap();
    let rows = live(&engine).await;
    assert_eq!(rows.len(), 9);
    assert!(rows.keys().all(|key| key[0] > 0));
}
