use std::time::Duration;

use trestle_kv::{Domain, Writes};

use super::*;

/// A change that writes in a domain, and shares others.
fn change(own: &'static str, shared: &[&'static str]) -> WaitingChange {
    let mut spec = ChangeSpec::new(Domain::new(1, own));
    for name in shared {
        spec.also(Domain::new(1, *name), Lock::Shared);
    }
    WaitingChange::new(Change::new(spec, |_, _| Writes::new())).0
}

fn own(group: &TakenGroup<'_>) -> Vec<String> {
    let own = |waiting: &WaitingChange| format!("{:?}", waiting.change.spec.domain.borrowed());
    group.changes.iter().map(own).collect()
}

async fn next(scheduler: &ChangeScheduler) -> TakenGroup<'_> {
    let waited = tokio::time::timeout(Duration::from_millis(1), scheduler.next());
    waited.await.expect("a group can be taken").unwrap()
}

/// A change of a domain of its own that reads so many keys of so many bytes.
fn reading(number: usize, reads: usize, bytes: usize) -> WaitingChange {
    let mut spec = ChangeSpec::new(Domain::new(1, number.to_string()));
    for read in 0..reads {
        spec.read(format!("{read}{}", "x".repeat(bytes)));
    }
    WaitingChange::new(Change::new(spec, |_, _| Writes::new())).0
}

/// Whether nothing can be taken now.
async fn is_blocked(scheduler: &ChangeScheduler) -> bool {
    let waited = tokio::time::timeout(Duration::from_millis(1), scheduler.next());
    waited.await.is_err()
}

#[tokio::test(start_paused = true)]
async fn a_domain_is_in_one_group_at_a_time_and_keeps_its_order() {
    let scheduler = ChangeScheduler::default();
    scheduler.push(change("a", &[])).unwrap();
    let first = next(&scheduler).await;
    for name in ["a", "b", "a"] {
        scheduler.push(change(name, &[])).unwrap();
    }

    let second = next(&scheduler).await;
    assert_eq!(own(&second), ["0x01/b"]);
    assert!(is_blocked(&scheduler).await);

    drop(first);
    let third = next(&scheduler).await;
    assert_eq!(own(&third), ["0x01/a", "0x01/a"]);
}

#[tokio::test(start_paused = true)]
async fn shared_domains_are_shared_and_wait_for_one_that_is_exclusive() {
    let scheduler = ChangeScheduler::default();
    scheduler.push(change("a", &["table"])).unwrap();
    let first = next(&scheduler).await;
    scheduler.push(change("b", &["table"])).unwrap();
    let second = next(&scheduler).await;
    assert_eq!(second.changes.len(), 1);

    scheduler.push(change("table", &[])).unwrap();
    // It comes after the exclusive one, although it could share the domain with those before.
    scheduler.push(change("c", &["table"])).unwrap();
    assert!(is_blocked(&scheduler).await);
    drop(first);
    assert!(is_blocked(&scheduler).await);
    drop(second);
    let third = next(&scheduler).await;
    assert_eq!(own(&third), ["0x01/table", "0x01/c"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_put_back_is_first_and_groups_are_bounded() {
    let scheduler = ChangeScheduler::default();
    for _ in 0..GROUP_MAX.changes + 3 {
        scheduler.push(change("a", &[])).unwrap();
    }
    let mut group = next(&scheduler).await;
    assert_eq!(group.changes.len(), GROUP_MAX.changes);
    let rest = group.changes.split_off(GROUP_MAX.changes - 2);
    group.put_back(rest);

    assert_eq!(next(&scheduler).await.changes.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_closed_scheduler_gives_what_waits_and_ends_every_worker() {
    let scheduler = ChangeScheduler::default();
    scheduler.push(change("a", &[])).unwrap();
    scheduler.close();

    assert!(matches!(scheduler.push(change("a", &[])), Err(CommitError::Stopped { .. })));
    let group = next(&scheduler).await;
    assert_eq!(group.changes.len(), 1);
    drop(group);
    let (one, other) = tokio::join!(scheduler.next(), scheduler.next());
    assert!(one.is_none() && other.is_none());
}

#[test]
fn too_many_changes_are_rejected() {
    let scheduler = ChangeScheduler::default();
    for _ in 0..WAITING_MAX {
        scheduler.push(change("a", &[])).unwrap();
    }
    assert!(matches!(scheduler.push(change("a", &[])), Err(CommitError::Busy { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_dropped_is_answered_by_what_may_be_stored() {
    let scheduler = ChangeScheduler::default();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let spec = ChangeSpec::new(Domain::new(1, "a"));
        let (waiting, answered) = WaitingChange::new(Change::new(spec, |_, _| Writes::new()));
        scheduler.push(waiting).unwrap();
        answers.push(answered);
    }
    let mut group = next(&scheduler).await;
    group.changes.last_mut().unwrap().is_sent = true;
    drop(group);

    let [kept, sent] = answers.try_into().unwrap();
    assert!(matches!(kept.await.unwrap(), Err(CommitError::Unavailable { .. })));
    assert!(matches!(sent.await.unwrap(), Err(CommitError::Unknown { .. })));
    // Its domain is free.
    scheduler.push(change("a", &[])).unwrap();
    assert_eq!(own(&next(&scheduler).await), ["0x01/a"]);
}

#[tokio::test(start_paused = true)]
async fn groups_are_bounded_by_what_they_read_and_lock() {
    let many_domains: Vec<_> = (0..200_usize).map(|name| name.to_string()).collect();
    let sharing = || {
        let mut spec = ChangeSpec::new(Domain::new(2, "own"));
        for name in &many_domains {
            spec.also(Domain::new(1, name.clone()), Lock::Shared);
        }
        WaitingChange::new(Change::new(spec, |_, _| Writes::new())).0
    };
    let rows = |number| reading(number, GROUP_MAX.reads / 4, 10);
    let bytes = |number| reading(number, 2, GROUP_MAX.bytes / 8 - 8);
    for (make, in_a_group) in [
        (&rows as &dyn Fn(usize) -> WaitingChange, 4),
        (&bytes, 4),
        (&|_| sharing(), GROUP_MAX.domains / 201),
    ] {
        let scheduler = ChangeScheduler::default();
        for number in 0..in_a_group + 1 {
            scheduler.push(make(number)).unwrap();
        }
        assert_eq!(next(&scheduler).await.changes.len(), in_a_group);
        assert_eq!(next(&scheduler).await.changes.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_larger_than_a_group_is_one_by_itself() {
    let scheduler = ChangeScheduler::default();
    let is_large = |number| number == 1;
    for number in 0..3 {
        let reads = if is_large(number) { GROUP_MAX.reads + 1 } else { 1 };
        scheduler.push(reading(number, reads, 10)).unwrap();
    }

    let (first, second) = (next(&scheduler).await, next(&scheduler).await);
    assert_eq!((own(&first), own(&second)), (vec!["0x01/0".into()], vec!["0x01/1".into()]));
    assert_eq!(own(&next(&scheduler).await), ["0x01/2"]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_bounded_by_bytes_and_one_change_of_any_size_is_accepted() {
    let scheduler = ChangeScheduler::default();
    let larger = |number| reading(number, WAITING_BYTES_MAX / 50_000 + 1, 50_000);
    scheduler.push(larger(0)).unwrap();
    assert!(matches!(scheduler.push(reading(1, 1, 10)), Err(CommitError::Busy { .. })));

    let mut group = next(&scheduler).await;
    scheduler.push(reading(1, 1, 10)).unwrap();
    assert!(matches!(scheduler.push(larger(2)), Err(CommitError::Busy { .. })));
    let changes = std::mem::take(&mut group.changes);
    group.put_back(changes);
    assert!(matches!(scheduler.push(reading(3, 1, 10)), Err(CommitError::Busy { .. })));
}
