use super::*;

const START: u64 = 1_000_000_000_000;

fn now() -> Ticks {
    Ticks::new(START).expect("in range")
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(letter: u128) -> Uuid {
    Uuid::from_u128(letter)
}

const A: u128 = 0xA;
const B: u128 = 0xB;
const C: u128 = 0xC;
const X: u128 = 0xF0;

fn held(letter: u128, duration: u64, remaining: u64) -> ResourceLease {
    let term = LeaseTerm { duration: seconds(duration), until: now().after(seconds(remaining)) };
    ResourceLease::Held { id: id(letter), term: Some(term) }
}

fn infinite(letter: u128) -> ResourceLease {
    ResourceLease::Held { id: id(letter), term: None }
}

fn breaking(remaining: u64) -> ResourceLease {
    ResourceLease::Breaking { id: id(A), until: now().after(seconds(remaining)) }
}

/// Available, leased for another 20 s of 30, breaking for another 20 s, broken, expired.
fn states() -> [ResourceLease; 5] {
    [ResourceLease::Absent, held(A, 30, 20), breaking(20), breaking(0), held(A, 30, 0)]
}

fn acquire(proposed: Option<u128>) -> LeaseAction {
    let proposed = proposed.map(id);
    LeaseAction::Acquire { duration: Some(seconds(60)), proposed, generated: id(X) }
}

fn change(from: u128, to: u128) -> LeaseAction {
    LeaseAction::Change { id: id(from), proposed: id(to) }
}

type Applied = Result<(ResourceLease, LeaseResult), LeaseError>;

fn got(letter: u128) -> Applied {
    Ok((held(letter, 60, 60), LeaseResult::Held(id(letter))))
}

fn broken_after(active: u64) -> Applied {
    Ok((breaking(active), LeaseResult::Broken(seconds(active))))
}

#[test]
fn the_states_are_those_of_the_table() {
    let found = states().map(|lease| lease.state(now()));

    let expected = [
        LeaseState::Available,
        LeaseState::Leased,
        LeaseState::Breaking,
        LeaseState::Broken,
        LeaseState::Expired,
    ];
    assert_eq!(found, expected);
}

#[test]
fn every_action_in_every_state_has_the_result_of_the_table() {
    use LeaseError as E;
    let (present, mismatch, absent) =
        (Err(E::AlreadyPresent), Err(E::ActionMismatch), Err(E::ActionNotPresent));
    let renewed = Ok((held(A, 30, 30), LeaseResult::Held(id(A))));
    let changed = |to: u128| Ok((held(to, 30, 20), LeaseResult::Held(id(to))));
    let released: Applied = Ok((ResourceLease::Absent, LeaseResult::Released));
    let (no_acquire, no_renew) = (Err(E::BreakingNotAcquired), Err(E::BrokenNotRenewed));
    let no_change = Err(E::BreakingNotChanged);
    let over = broken_after(0);
    let table: [(LeaseAction, [Applied; 5]); 13] = [
        (acquire(None), [got(X), present, present, got(X), got(X)]),
        (acquire(Some(A)), [got(A), got(A), no_acquire, got(A), got(A)]),
        (acquire(Some(B)), [got(B), present, present, got(B), got(B)]),
        (LeaseAction::Renew(id(A)), [mismatch, renewed, no_renew, no_renew, renewed]),
        (LeaseAction::Renew(id(B)), [mismatch; 5]),
        (change(A, B), [absent, changed(B), no_change, absent, absent]),
        (change(B, A), [absent, changed(A), mismatch, absent, absent]),
        (change(B, C), [absent, mismatch, mismatch, absent, absent]),
        (LeaseAction::Release(id(A)), [mismatch, released, released, released, released]),
        (LeaseAction::Release(id(B)), [mismatch; 5]),
        (LeaseAction::Break(Some(seconds(0))), [absent, over, over, over, over]),
        (
            LeaseAction::Break(Some(seconds(10))),
            [absent, broken_after(10), broken_after(10), over, over],
        ),
        (LeaseAction::Break(None), [absent, broken_after(20), broken_after(20), over, over]),
    ];
    for (action, expected) in table {
        let found = states().map(|lease| lease.apply(action, now()));
        assert_eq!(found, expected, "{action:?}");
    }
}

#[test]
fn a_break_period_is_no_longer_than_what_remains() {
    let period = LeaseAction::Break(Some(seconds(60)));

    assert_eq!(held(A, 30, 20).apply(period, now()), broken_after(20));
    assert_eq!(breaking(5).apply(period, now()), broken_after(5));
    assert_eq!(infinite(A).apply(period, now()), broken_after(60));
    assert_eq!(infinite(A).apply(LeaseAction::Break(None), now()), broken_after(0));
}

#[test]
fn a_call_on_a_leased_resource_is_permitted_by_the_table() {
    use LeaseError as E;
    let kept = states();
    let with_own = [Err(E::NotPresent), Ok(kept[1]), Ok(kept[2]), Err(E::Lost), Err(E::Lost)];
    let with_other = [
        Err(E::NotPresent),
        Err(E::Mismatch),
        Err(E::Mismatch),
        Err(E::Mismatch),
        Err(E::Mismatch),
    ];
    let without = [
        Ok(ResourceLease::Absent),
        Err(E::IdMissing),
        Err(E::IdMissing),
        Ok(ResourceLease::Absent),
        Ok(ResourceLease::Absent),
    ];
    for (lease_id, writes) in [(Some(A), with_own), (Some(B), with_other), (None, without)] {
        let lease_id = lease_id.map(id);
        let found = states().map(|lease| lease.check_write(lease_id, now()));
        assert_eq!(found, writes, "{lease_id:?}");

        let reads = states().map(|lease| lease.check_read(lease_id, now()));
        let expected =
            writes.map(|write| if lease_id.is_some() { write.map(drop) } else { Ok(()) });
        assert_eq!(reads, expected, "{lease_id:?}");
    }
}

/// A lease by the specification, in the simplest form: the state and the id.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Model {
    state: LeaseState,
    id: Option<Uuid>,
}

impl Model {
    /// The model after an action that succeeded.
    fn after(self, action: LeaseAction, result: LeaseResult) -> Self {
        let state = match (action, result) {
            (LeaseAction::Release(_), _) => return Self { state: LeaseState::Available, id: None },
            (LeaseAction::Break(_), LeaseResult::Broken(Duration::ZERO)) => LeaseState::Broken,
            (LeaseAction::Break(_), _) => LeaseState::Breaking,
            _ => LeaseState::Leased,
        };
        let id = match result {
            LeaseResult::Held(id) => Some(id),
            _ => self.id,
        };
        Self { state, id }
    }

    /// Whether the specification lets an action succeed.
    fn permits(self, action: LeaseAction) -> bool {
        use LeaseState::{Available, Breaking, Broken, Expired, Leased};
        let is_own = |id: Uuid| self.id == Some(id);
        match (action, self.state) {
            (LeaseAction::Acquire { .. }, Available | Broken | Expired) => true,
            (LeaseAction::Acquire { proposed, .. }, Leased) => proposed.is_some_and(is_own),
            (LeaseAction::Acquire { .. }, Breaking) => false,
            (LeaseAction::Renew(id), Leased | Expired) => is_own(id),
            (LeaseAction::Change { id, proposed }, Leased) => is_own(id) || is_own(proposed),
            (LeaseAction::Renew(_) | LeaseAction::Change { .. }, _) => false,
            (LeaseAction::Release(id), _) => is_own(id),
            (LeaseAction::Break(_), state) => state != Available,
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_sequence_of_actions_and_waits_follows_the_model(
        steps in proptest::collection::vec((0_usize..8, 0_u128..3, 0_u128..3, 0_u64..40), 1..40),
    ) {
        let (mut lease, mut now) = (ResourceLease::Absent, now());
        let mut model = Model { state: LeaseState::Available, id: None };
        for (kind, one, other, wait) in steps {
            now = now.after(seconds(wait));
            model.state = match (model.state, lease.state(now)) {
                (LeaseState::Leased, LeaseState::Expired) => LeaseState::Expired,
                (LeaseState::Breaking, LeaseState::Broken) => LeaseState::Broken,
                (state, _) => state,
            };
            proptest::prop_assert_eq!(lease.state(now), model.state);
            let (duration, generated) = (Some(seconds(15 + wait)), id(X));
            let action = match kind {
                0 => LeaseAction::Acquire { duration, proposed: Some(id(one)), generated },
                1 => LeaseAction::Acquire { duration: None, proposed: None, generated },
                2 => LeaseAction::Renew(id(one)),
                3 => LeaseAction::Change { id: id(one), proposed: id(other) },
                4 => LeaseAction::Release(id(one)),
                5 => LeaseAction::Break(None),
                6 => LeaseAction::Break(Some(seconds(wait))),
                _ => continue,
            };
            match lease.apply(action, now) {
                Ok((after, result)) => {
                    proptest::prop_assert!(model.permits(action), "{:?} {:?}", model, action);
                    (lease, model) = (after, model.after(action, result));
                }
                Err(_) => proptest::prop_assert!(!model.permits(action), "{:?} {:?}", model, action),
            }
        }
    }
}
