#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use super::*;
use crate::fjall::committer::{Committer, HEARTBEAT_KEY};
use crate::fjall::guard::WriteStall;
use crate::fjall::open::open;
use crate::fjall::options::FjallOptions;
use crate::time::Ticks;
use crate::{ChangeSpec, Domain, DomainRef, Keyspace};

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
    group.admit(job, shared, &RecentWrites::default(), versions);
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
fn a_refusal_before_the_journal_is_stopped_and_not_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let shared = shared(&directory);
    let mut group = Group::default();

    let mut writer = admit(&mut group, &shared, &[], vec![put("k", "1")]);
    group.finish(&GroupOutcome::Refused("poisoned".into()));

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

    assert!(matches!(failing.try_recv(), Ok(Err(CommitError::Refused { .. }))));
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
    let beats = |shared: &EngineState| -> Vec<Option<u8>> {
        let beat = |tree: &crate::fjall::shared::Tree| tree.handle.get(HEARTBEAT_KEY).unwrap();
        shared.trees.iter().map(|tree| beat(tree).map(|value| value[7])).collect()
    };
    let commit = {
        let (queue, jobs) = tokio::sync::mpsc::channel(8);
        let committer = Committer::new(Arc::clone(&shared));
        std::thread::spawn(move || committer.run(jobs));
        move || {
            let (job, waiter) = job(&[], vec![put("k", "1")]);
            queue.blocking_send(job).unwrap();
            waiter.blocking_recv().unwrap().unwrap();
        }
    };

    assert_eq!(beats(&shared), [None, None], "an idle engine writes nothing");
    commit();
    assert_eq!(beats(&shared), [Some(1), Some(1)]);
    commit();
    assert_eq!(beats(&shared), [Some(1), Some(1)], "once a tick is enough");
    shared.heartbeat_due.store(true, std::sync::atomic::Ordering::Relaxed);
    commit();
    assert_eq!(beats(&shared), [Some(2), Some(2)]);
}

#[test]
fn a_write_stall_rejects_the_queued_changes_and_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let shared = Arc::new(shared(&directory));
    let waited = std::time::Duration::from_secs(2);
    let closed = |_: &[crate::fjall::shared::Tree]| WriteStall {
        waited: std::time::Duration::from_secs(2),
        outcome: Err(CommitError::Unavailable { reason: "busy".into() }),
    };
    let (queue, jobs) = tokio::sync::mpsc::channel(8);
    let mut waiters = Vec::new();
    for name in ["a", "b", "c"] {
        let (job, waiter) = job(&[], vec![put(name, "1")]);
        queue.blocking_send(job).unwrap();
        waiters.push(waiter);
    }
    drop(queue);

    Committer::with_gate(Arc::clone(&shared), closed).run(jobs);

    for waiter in waiters {
        let outcome = waiter.blocking_recv().unwrap();
        assert!(matches!(outcome, Err(CommitError::Unavailable { .. })), "{outcome:?}");
    }
    let counted = shared.counters.read();
    assert_eq!((counted.shed, counted.stalls, counted.stall_time), (3, 1, waited));
    assert_eq!(shared.newest(&key("a")).unwrap(), None);
}

#[test]
fn a_commit_thread_that_panics_stops_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let shared = Arc::new(shared(&directory));
    let broken = |_: &[crate::fjall::shared::Tree]| -> WriteStall {
        unreachable!("this panic is part of the test")
    };
    let (queue, jobs) = tokio::sync::mpsc::channel(8);
    let (job, waiter) = job(&[], vec![put("a", "1")]);
    queue.blocking_send(job).unwrap();

    let committer = Committer::with_gate(Arc::clone(&shared), broken);
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
