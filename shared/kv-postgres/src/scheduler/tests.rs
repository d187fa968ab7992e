use std::time::Duration;

use trestle_kv::{ChangeSpec, Domain, Writes};

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
    scheduler.next().await.unwrap()
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
    for _ in 0..GROUP_MAX + 3 {
        scheduler.push(change("a", &[])).unwrap();
    }
    let mut group = next(&scheduler).await;
    assert_eq!(group.changes.len(), GROUP_MAX);
    let rest = group.changes.split_off(GROUP_MAX - 2);
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
