#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::*;
use crate::commit_queue::commit_queue;
use crate::committer::{Committer, HEARTBEAT_KEY};
use crate::open::open;
use crate::options::FjallOptions;
use trestle_kv::turns::Owner;
use trestle_kv::{ChangeSpec, Domain, DomainRef, Keyspace};
use trestle_model::time::Ticks;

/// How long a change may wait here where a test waits for its rejection.
const REJECTED_AFTER: Duration = Duration::from_millis(200);

type Waiter = oneshot::Receiver<Result<Version, CommitError>>;

fn shared(directory: &tempfile::TempDir) -> EngineState {
    let keyspaces = vec![keyspace("a", 1), keyspace("b", 2)];
    open(&FjallOptions::new(directory.path(), keyspaces)).unwrap()
}

fn keyspace(name: &'static str, kind: u8) -> Keyspace {
    Keyspace { name, kinds: kind..=kind, domain: |_| DomainRef { group: 1, part: &[] } }
}

fn key(name: &str) -> Bytes {
    [&[1], name.as_bytes()].concat().into()
}

fn put(name: &str, value: &'static str) -> Write {
    Write::Put { key: key(name), value: value.into() }
}

fn job(reads: &[&str], writes: Vec<Write>) -> (PendingChange, Waiter) {
    let (answer, waiter) = oneshot::channel();
    let mut spec = ChangeSpec::new(Domain::new(1, ""));
    for name in reads {
        spec.read(key(name));
    }
    let change = Change::new(spec, move |_, _| writes.clone().into());
    (PendingChange { change, cached: CachedReads::default(), now: Ticks::MIN, answer }, waiter)
}

fn admit(group: &mut Group, shared: &EngineState, reads: &[&str], writes: Vec<Write>) -> Waiter {
    let (job, waiter) = job(reads, writes);
    let versions = &mut Versions::after(Ticks::MIN);
    let admission = group.admit(job, shared, &mut RecentWrites::default(), versions);
    assert!(matches!(admission, Admission::Decided));
    waiter
}

#[test]
fn a_change_that_read_a_pending_write_waits_even_if_it_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let shared = shared(&directory);
    let mut group = Group::default();

    let mut writer = admit(&mut group, &shared, &[], vec![put("k", "1")]);
    let mut depends = admit(&mut group, &shared, &["other", "k"], vec![]);
    let mut independent = admit(&mut group, &shared, &["other"], vec![]);

    assert!(writer.try_recv().is_err());
    assert!(depends.try_recv().is_err());
    assert!(matches!(independent.try_recv(), Ok(Ok(_))));
    group.finish(&GroupOutcome::Durable);
    assert!(matches!(writer.try_recv(), Ok(Ok(_))));
    assert!(matches!(depends.try_recv(), Ok(Ok(_))));
}

#[test]
fn a_failed_write_is_unknown_to_writers_and_stopped_to_readers() {
    let directory = tempfile::tempdir().unwrap();
    let shared = shared(&directory);
    let mut group = Group::default();

    let mut writer = admit(&mut group, &shared, &[], vec![put("k", "1")]);
    let mut depends = admit(&mut group, &shared, &["k"], vec![]);
    group.finish(&GroupOutcome::Unknown("broken".into()));

    assert!(matches!(writer.try_recv(), Ok(Err(CommitError::Unknown { .. }))));
    assert!(matches!(depends.try_recv(), Ok(Err(CommitError::Stopped { .. }))));
}

#[test]
fn an_error_before_the_journal_is_stopped_and_not_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let shared = shared(&directory);
    let mut group = Group::default();

    let mut writer = admit(&mut group, &shared, &[], vec![put("k", "1")]);
    group.finish(&GroupOutcome::Rejected("poisoned".into()));

    assert!(matches!(writer.try_recv(), Ok(Err(CommitError::Stopped { .. }))));
}

#[test]
fn a_change_that_fails_contributes_nothing_and_the_others_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let shared = shared(&directory);
    let mut group = Group::default();

    let unknown_keyspace = Write::Put { key: Bytes::from_static(&[9]), value: Bytes::new() };
    let mut failing = admit(&mut group, &shared, &[], vec![put("k", "1"), unknown_keyspace]);
    let mut fine = admit(&mut group, &shared, &[], vec![put("l", "2")]);

    assert!(matches!(failing.try_recv(), Ok(Err(CommitError::Rejected { .. }))));
    assert!(fine.try_recv().is_err());
    let pending: Vec<_> = group.drain_writes().collect();
    assert_eq!(pending, [(key("l"), Some("2".into()))]);
}

#[test]
fn a_group_is_full_at_its_number_of_changes_or_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let shared = shared(&directory);

    let mut many = Group::default();
    let waiters: Vec<_> = (0..CHANGES_MAX)
        .map(|_| {
            assert!(!many.is_full());
            admit(&mut many, &shared, &[], vec![put("k", "")])
        })
        .collect();
    let mut big = Group::default();
    let value = Bytes::from(vec![0; BYTES_MAX - 3]);
    let _waiter = admit(&mut big, &shared, &[], vec![Write::Put { key: key("k"), value }]);

    assert!(many.is_full());
    assert_eq!(many.writers(), waiters.len());
    assert!(!big.is_full());
    let _waiter = admit(&mut big, &shared, &[], vec![Write::Delete { key: key("") }]);
    assert!(big.is_full());
}

#[test]
fn writes_a_heartbeat_to_every_keyspace_with_the_next_group_once_a_tick() {
    let directory = tempfile::tempdir().unwrap();
    let shared = Arc::new(shared(&directory));
    let heartbeats = |shared: &EngineState| -> Vec<Option<u8>> {
        let heartbeat = |tree: &crate::shared::Tree| tree.handle.get(HEARTBEAT_KEY).unwrap();
        shared.trees.iter().map(|tree| heartbeat(tree).map(|value| value[7])).collect()
    };
    let commit = {
        let (queue, jobs) = commit_queue();
        let committer = Committer::new(Arc::clone(&shared));
        std::thread::spawn(move || committer.run(jobs));
        move || {
            let (job, waiter) = job(&[], vec![put("k", "1")]);
            queue.send(Owner::PROCESS, job).unwrap();
            waiter.blocking_recv().unwrap().unwrap();
        }
    };

    assert_eq!(heartbeats(&shared), [None, None], "an idle engine writes nothing");
    commit();
    assert_eq!(heartbeats(&shared), [Some(1), Some(1)]);
    commit();
    assert_eq!(heartbeats(&shared), [Some(1), Some(1)], "once a tick is enough");
    shared.heartbeat_due.store(true, Relaxed);
    commit();
    assert_eq!(heartbeats(&shared), [Some(2), Some(2)]);
}

#[test]
fn a_keyspace_that_takes_no_writes_delays_its_changes_and_no_others() {
    let directory = tempfile::tempdir().unwrap();
    let shared = Arc::new(shared(&directory));
    // The test ends the pressure: no time limit ends a wait before the asserts.
    let first_is_pressed = |shared: &EngineState| match shared.buffered_bytes.load(Relaxed) {
        0 => KeyspaceSet::default(),
        _ => KeyspaceSet::default().with(0),
    };
    shared.buffered_bytes.store(1, Relaxed);
    let (queue, jobs) = commit_queue();
    let (pressed, mut pressed_waiter) = job(&[], vec![put("a", "1")]);
    let other = Write::Put { key: Bytes::from_static(b"\x02b"), value: "1".into() };
    let (free, free_waiter) = job(&[], vec![other]);
    let (reads, reads_waiter) = job(&["a"], vec![]);
    for change in [pressed, free, reads] {
        queue.send(Owner::PROCESS, change).unwrap();
    }
    drop(queue);

    let committer = Committer::with_gate(Arc::clone(&shared), first_is_pressed, Duration::MAX);
    let ended = std::thread::spawn(move || committer.run(jobs));

    assert!(free_waiter.blocking_recv().unwrap().is_ok());
    assert!(reads_waiter.blocking_recv().unwrap().is_ok());
    assert!(pressed_waiter.try_recv().is_err(), "it waits, and the others did not wait for it");
    assert_eq!(shared.newest(&key("a")).unwrap(), None);
    shared.buffered_bytes.store(0, Relaxed);
    assert!(pressed_waiter.blocking_recv().unwrap().is_ok());
    ended.join().unwrap();
    assert_eq!(shared.newest(&key("a")).unwrap(), Some("1".into()));
    let counted = shared.counters.read();
    assert_eq!((counted.shed, counted.stalls), (0, 1));
}

#[test]
fn a_change_that_waits_too_long_for_its_keyspace_is_rejected_as_busy() {
    let directory = tempfile::tempdir().unwrap();
    let shared = Arc::new(shared(&directory));
    let first_is_pressed = |_: &EngineState| KeyspaceSet::default().with(0);
    let (queue, jobs) = commit_queue();
    let (change, waiter) = job(&[], vec![put("a", "1")]);
    queue.send(Owner::PROCESS, change).unwrap();
    drop(queue);

    let committer = Committer::with_gate(Arc::clone(&shared), first_is_pressed, REJECTED_AFTER);
    let ended = std::thread::spawn(move || committer.run(jobs));

    let outcome = waiter.blocking_recv().unwrap();
    assert!(matches!(outcome, Err(CommitError::Busy { .. })), "{outcome:?}");
    ended.join().unwrap();
    let counted = shared.counters.read();
    assert_eq!((counted.shed, counted.stalls), (1, 1));
    assert!(counted.stall_time >= REJECTED_AFTER, "{counted:?}");
    assert_eq!(shared.newest(&key("a")).unwrap(), None);
}

#[test]
fn a_change_that_waits_too_long_for_space_is_rejected_as_one_without() {
    let directory = tempfile::tempdir().unwrap();
    let options = FjallOptions {
        // At the reserve, and no thread that flushes for space.
        space_probe: Arc::new(|_| Ok(512 * 1024 * 1024)),
        ..FjallOptions::new(directory.path(), vec![keyspace("a", 1), keyspace("b", 2)])
    };
    let shared = Arc::new(open(&options).unwrap());
    shared.measure_space();
    let (queue, jobs) = commit_queue();
    let (change, waiter) = job(&[], vec![put("a", "1")]);
    queue.send(Owner::PROCESS, change).unwrap();
    drop(queue);

    let none_is_pressed = |_: &EngineState| KeyspaceSet::default();
    let committer = Committer::with_gate(Arc::clone(&shared), none_is_pressed, REJECTED_AFTER);
    let ended = std::thread::spawn(move || committer.run(jobs));

    let outcome = waiter.blocking_recv().unwrap();
    assert!(matches!(outcome, Err(CommitError::Full { .. })), "{outcome:?}");
    ended.join().unwrap();
}

#[test]
fn a_commit_thread_that_panics_stops_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let shared = Arc::new(shared(&directory));
    let broken =
        |_: &EngineState| -> KeyspaceSet { unreachable!("this panic is part of the test") };
    let (queue, jobs) = commit_queue();
    let (job, waiter) = job(&[], vec![put("a", "1")]);
    queue.send(Owner::PROCESS, job).unwrap();

    let committer = Committer::with_gate(Arc::clone(&shared), broken, REJECTED_AFTER);
    let ended = std::thread::spawn(move || committer.run(jobs)).join();

    assert!(ended.is_err());
    assert!(waiter.blocking_recv().is_err(), "the outcome is unknown");
    assert!(matches!(shared.check_running(), Err(CommitError::Stopped { .. })));
}

#[test]
fn a_put_over_nothing_obsoletes_nothing_in_any_order() {
    let keys = ["a", "b", "c"].map(key);
    let current = [None, Some(Bytes::new()), None];
    let count = |names: &[&str]| {
        let writes: Vec<_> = names.iter().map(|name| put(name, "1")).collect();
        obsoletes(&writes, &keys, &current)
    };

    assert_eq!(count(&["a", "b", "c"]), 1);
    assert_eq!(count(&["c", "b", "a"]), 1);
    assert_eq!(count(&["c", "other", "a"]), 1);
    assert_eq!(obsoletes(&[Write::Delete { key: key("a") }], &keys, &current), 2);
}

#[test]
fn a_row_that_groups_keep_writing_is_not_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let shared = shared(&directory);
    let (keys, mut recent) = ([key("head")], RecentWrites::default());
    let write = |recent: &mut RecentWrites, group, value: &[u8]| {
        let value = Some(Bytes::copy_from_slice(value));
        recent.record(group, [(&keys[0], &value)].into_iter(), &shared.hot_keys);
    };
    let decide = |recent: &mut RecentWrites, cached: &CachedReads| {
        recent.newest(cached, (0, &keys[0]), &shared).unwrap()
    };

    // A group writes it between the read of a request and its decision. Nothing is in the store, so that shows where a
    // value comes from.
    let before = CachedReads::read(&keys, &shared);
    write(&mut recent, 1, b"1");
    assert_eq!(decide(&mut recent, &before), None, "read from the store");
    write(&mut recent, 2, b"2");
    let next = CachedReads::read(&keys, &shared);
    assert_eq!(decide(&mut recent, &next).as_deref(), Some(&b"2"[..]), "kept");
    assert_eq!(decide(&mut recent, &before).as_deref(), Some(&b"2"[..]), "also for an old read");

    write(&mut recent, 3, &[0; 1_000]);
    assert_eq!(decide(&mut recent, &next), None, "too big to be kept");
    let again = CachedReads::read(&keys, &shared);
    write(&mut recent, 4, b"4");
    assert_eq!(decide(&mut recent, &again), None, "read by the request again, and stale");
    write(&mut recent, 5, b"5");
    assert_eq!(decide(&mut recent, &again).as_deref(), Some(&b"5"[..]));
}

#[test]
fn a_small_change_waits_for_one_large_change_of_another_owner_at_most() {
    let directory = tempfile::tempdir().unwrap();
    let shared = Arc::new(shared(&directory));
    let (one, two) = (Owner::numbered(1), Owner::numbered(2));
    let (queue, jobs) = commit_queue();
    let large = Bytes::from(vec![7; BYTES_MAX]);
    let larges: Vec<Waiter> = (0..8)
        .map(|number| {
            let put = Write::Put { key: key(&format!("large{number}")), value: large.clone() };
            let (change, waiter) = job(&[], vec![put]);
            queue.send(one, change).unwrap();
            waiter
        })
        .collect();
    let smalls: Vec<Waiter> = (0..8)
        .map(|_| {
            let (change, waiter) = job(&[], vec![put("small", "1")]);
            queue.send(two, change).unwrap();
            waiter
        })
        .collect();
    assert_eq!(queue.waiting(), 16);

    let committer = Committer::new(Arc::clone(&shared));
    let ended = std::thread::spawn(move || committer.run(jobs));
    let version = |waiter: Waiter| waiter.blocking_recv().unwrap().unwrap();
    let larges: Vec<Version> = larges.into_iter().map(version).collect();
    let smalls: Vec<Version> = smalls.into_iter().map(version).collect();

    assert_eq!(queue.waiting(), 0);
    drop(queue);
    ended.join().unwrap();
    assert!(larges.is_sorted() && smalls.is_sorted(), "each owner's keep their order");
    assert!(larges[0] < smalls[0] && smalls[7] < larges[1], "{larges:?} {smalls:?}");
}
