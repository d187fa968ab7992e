use super::*;

const HOT: [(i64, Lock); 1] = [(1, Lock::Exclusive)];
const SHARED: [(i64, Lock); 1] = [(1, Lock::Shared)];

/// A change that waits, if it has to.
fn enter(queues: &mut DomainQueues, place: i64, domains: &[(i64, Lock)]) {
    let blocker = queues.blocker(place, domains);
    queues.enter(place, domains, blocker);
}

#[test]
fn only_the_first_of_those_who_wait_for_a_hot_domain_is_looked_at_again() {
    let mut queues = DomainQueues::default();
    queues.hold(&HOT);
    for place in 0..1_000 {
        enter(&mut queues, place, &HOT);
    }
    assert_eq!(queues.pop_due(), None);

    queues.release(&HOT);
    assert_eq!((queues.pop_due(), queues.pop_due()), (Some(0), None));
    assert_eq!(queues.blocker(0, &HOT), None);
    assert_eq!(queues.blocker(1, &HOT), Some(HOT[0]));
    queues.leave(0, &HOT);
    assert_eq!((queues.pop_due(), queues.pop_due()), (Some(1), None));
}

#[test]
fn those_who_share_a_domain_go_on_together_up_to_one_who_does_not() {
    let mut queues = DomainQueues::default();
    queues.hold(&HOT);
    for (place, domains) in [(0, &SHARED), (1, &SHARED), (2, &HOT), (3, &SHARED)] {
        enter(&mut queues, place, domains);
    }
    queues.release(&HOT);
    assert_eq!([queues.pop_due(), queues.pop_due(), queues.pop_due()], [Some(0), Some(1), None]);

    queues.hold(&SHARED);
    queues.leave(0, &SHARED);
    queues.leave(1, &SHARED);
    assert_eq!(queues.blocker(2, &HOT), Some(HOT[0]), "a group shares it");
    assert_eq!(queues.blocker(3, &SHARED), Some(SHARED[0]), "one who does not is ahead");
}

#[test]
fn one_who_is_put_in_front_is_first() {
    let mut queues = DomainQueues::default();
    enter(&mut queues, 5, &HOT);
    enter(&mut queues, -1, &HOT);

    assert_eq!((queues.pop_due(), queues.pop_due()), (Some(-1), Some(5)));
    assert_eq!((queues.blocker(-1, &HOT), queues.blocker(5, &HOT)), (None, Some(HOT[0])));
}

#[test]
fn nothing_is_kept_of_domains_that_are_not_in_use() {
    let mut queues = DomainQueues::default();
    queues.hold(&HOT);
    enter(&mut queues, 0, &[(1, Lock::Exclusive), (2, Lock::Shared)]);
    queues.release(&HOT);
    queues.leave(0, &[(1, Lock::Exclusive), (2, Lock::Shared)]);
    assert!(queues.domains.is_empty(), "{queues:?}");
}
