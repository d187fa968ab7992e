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

fn own(change: &WaitingChange) -> String {
    format!("{:?}", change.change.spec.domain.borrowed())
}

async fn next(scheduler: &ChangeScheduler) -> Vec<WaitingChange> {
    scheduler.next().await.unwrap()
}

fn domains(group: &[WaitingChange]) -> Vec<(i64, Lock)> {
    group.iter().flat_map(|change| change.domains.iter().copied()).collect()
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
    assert_eq!(second.iter().map(own).collect::<Vec<_>>(), ["0x01/b"]);
    assert!(is_blocked(&scheduler).await);

    scheduler.release(&domains(&first));
    let third = next(&scheduler).await;
    assert_eq!(third.iter().map(own).collect::<Vec<_>>(), ["0x01/a", "0x01/a"]);
}

#[tokio::test(start_paused = true)]
async fn shared_domains_are_shared_and_wait_for_one_that_is_exclusive() {
    let scheduler = ChangeScheduler::default();
    scheduler.push(change("a", &["table"])).unwrap();
    let first = next(&scheduler).await;
    scheduler.push(change("b", &["table"])).unwrap();
    let second = next(&scheduler).await;
    assert_eq!(second.len(), 1);

    scheduler.push(change("table", &[])).unwrap();
    // It comes after the exclusive one, although it could share the domain with those before.
    scheduler.push(change("c", &["table"])).unwrap();
    assert!(is_blocked(&scheduler).await);
    scheduler.release(&domains(&first));
    assert!(is_blocked(&scheduler).await);
    scheduler.release(&domains(&second));
    let third = next(&scheduler).await;
    assert_eq!(third.iter().map(own).collect::<Vec<_>>(), ["0x01/table", "0x01/c"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_put_back_is_first_and_groups_are_bounded() {
    let scheduler = ChangeScheduler::default();
    for _ in 0..GROUP_MAX + 3 {
        scheduler.push(change("a", &[])).unwrap();
    }
    let mut group = next(&scheduler).await;
    assert_eq!(group.len(), GROUP_MAX);
    let held = domains(&group);
    let rest = group.split_off(GROUP_MAX - 2);
    let marked = rest.first().unwrap().answer.is_closed();
    scheduler.put_back(rest);
    scheduler.release(&held);

    let next = next(&scheduler).await;
    assert_eq!(next.len(), 5);
    assert!(marked, "nobody waits for these");
}

#[tokio::test(start_paused = true)]
async fn a_closed_scheduler_gives_what_waits_and_ends_every_worker() {
    let scheduler = ChangeScheduler::default();
    scheduler.push(change("a", &[])).unwrap();
    scheduler.close();

    assert!(matches!(scheduler.push(change("a", &[])), Err(CommitError::Stopped { .. })));
    let group = next(&scheduler).await;
    assert_eq!(group.len(), 1);
    scheduler.release(&domains(&group));
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
