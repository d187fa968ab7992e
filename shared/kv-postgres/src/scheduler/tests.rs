use std::time::Duration;

use futures::FutureExt as _;
use proptest::prelude::*;
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

/// However many changes wait for one domain, and however many of them were looked at before.
#[tokio::test(start_paused = true)]
async fn changes_of_other_domains_pass_a_hot_one() {
    let scheduler = ChangeScheduler::default();
    scheduler.push(change("hot", &[])).unwrap();
    let hot = next(&scheduler).await;
    for _ in 0..WAITING_MAX - 2 {
        scheduler.push(change("hot", &["table"])).unwrap();
    }
    for other in ["b", "c"] {
        scheduler.push(change(other, &["table"])).unwrap();
        assert_eq!(own(&next(&scheduler).await), [format!("0x01/{other}")]);
    }
    // Nothing passes those in a domain that they wait for, too.
    scheduler.push(change("table", &[])).unwrap();
    assert!(is_blocked(&scheduler).await);

    drop(hot);
    assert_eq!(next(&scheduler).await.changes.len(), GROUP_MAX.changes);
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

#[derive(Debug, Clone)]
enum Step {
    /// A change that writes in one domain and shares others.
    Push(u8, Vec<u8>),
    Take,
    /// The first changes of a group are put back.
    End(usize, usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    let shared = prop::collection::vec(0..5_u8, 0..3);
    prop_oneof![
        12 => (0..5_u8, shared).prop_map(|(own, shared)| Step::Push(own, shared)),
        2 => Just(Step::Take),
        1 => (0..64_usize, 0..64_usize).prop_map(|(group, kept)| Step::End(group, kept)),
    ]
}

/// A change whose number is what it reads.
fn numbered(number: usize, own: u8, shared: &[u8]) -> WaitingChange {
    let mut spec = ChangeSpec::new(Domain::new(1, vec![own]));
    for name in shared {
        spec.also(Domain::new(1, vec![*name]), Lock::Shared);
    }
    spec.read(number.to_string());
    WaitingChange::new(Change::new(spec, |_, _| Writes::new())).0
}

fn number_of(waiting: &WaitingChange) -> usize {
    std::str::from_utf8(&waiting.change.spec.reads.keys()[0]).unwrap().parse().unwrap()
}

type Domains = Vec<(i64, Lock)>;

fn conflict(one: &Domains, other: &Domains) -> bool {
    let meets = |(number, lock): &(i64, Lock)| {
        let same = other.iter().filter(|(also, _)| also == number);
        same.clone().any(|(_, also)| (*lock, *also) != (Lock::Shared, Lock::Shared))
    };
    one.iter().any(meets)
}

/// What the next group must be: in order, whatever meets neither a group nor one before it that stays.
fn expected(waiting: &[(usize, Domains)], groups: &[Vec<(usize, Domains)>]) -> Vec<usize> {
    let (mut taken, mut stays) = (Vec::new(), Vec::new());
    for (number, domains) in waiting {
        let meets = |(_, other): &(usize, Domains)| conflict(domains, other);
        let is_free = !groups.iter().flatten().any(meets);
        let is_next = !stays.iter().any(|other| conflict(domains, other));
        if taken.len() < GROUP_MAX.changes && is_free && is_next {
            taken.push(*number);
        } else {
            stays.push(domains.clone());
        }
    }
    taken
}

/// Takes a group, as it must be.
fn take<'a>(
    scheduler: &'a ChangeScheduler,
    waiting: &mut Vec<(usize, Domains)>,
    groups: &mut Vec<Vec<(usize, Domains)>>,
) -> Option<TakenGroup<'a>> {
    let due = expected(waiting, groups);
    let group = scheduler.next().now_or_never().flatten();
    let found = group.as_ref().map(|group| group.changes.iter().map(number_of).collect::<Vec<_>>());
    assert_eq!(found.unwrap_or_default(), due);
    let (taken, stays) =
        std::mem::take(waiting).into_iter().partition(|(number, _)| due.contains(number));
    *waiting = stays;
    if group.is_some() {
        groups.push(taken);
    }
    group
}

proptest! {
    /// Whatever waits and ends: the next group is that of a look at every change in its order, and nothing stays.
    #[test]
    fn groups_are_those_of_a_look_at_all_changes(steps in prop::collection::vec(any_step(), 1..250)) {
        let scheduler = ChangeScheduler::default();
        let (mut waiting, mut expected_groups, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        // Ends every group at last.
        let ends = (0..250).flat_map(|_| [Step::End(0, 0), Step::Take]);
        for (number, step) in steps.into_iter().chain(ends).enumerate() {
            match step {
                Step::Push(own, shared) => {
                    let change = numbered(number, own, &shared);
                    waiting.push((number, change.domains.clone()));
                    scheduler.push(change).unwrap();
                }
                Step::Take => groups.extend(take(&scheduler, &mut waiting, &mut expected_groups)),
                Step::End(..) if groups.is_empty() => {}
                Step::End(index, kept) => {
                    let index = index % groups.len();
                    let (mut group, changes) = (groups.remove(index), expected_groups.remove(index));
                    let kept = kept % (changes.len() + 1);
                    waiting.splice(0..0, changes.into_iter().take(kept));
                    let mut back = std::mem::take(&mut group.changes);
                    back.truncate(kept);
                    group.put_back(back);
                }
            }
        }
        prop_assert!(waiting.is_empty() && groups.is_empty());
        prop_assert_eq!(scheduler.lock().count, 0);
    }
}
