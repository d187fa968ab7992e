use trestle_model::fault::Fault;

use super::*;
use crate::api::parse::tests::assert_rejected;

/// The error of a lease of this duration.
fn rejected(seconds: i64, nanos: i32) -> String {
    let mut parser = RequestParser::default();
    let duration = Some(prost_types::Duration { seconds, nanos });
    let acquire = AcquireLease { duration, ..AcquireLease::default() };
    let action = parser.lease_action(Some(LeaseRequest::Acquire(acquire)), 0);
    parser.finish(action).expect_err("it is rejected").message
}

#[test]
fn a_duration_past_its_bounds_is_printed_with_all_of_its_digits() {
    for (seconds, nanos, value) in [
        (14, 0, "14s"),
        (61, 0, "61s"),
        (15, 1, "15.000000001s"),
        (15, -1, "seconds: 15, nanos: -1"),
        (60, 500_000_000, "60.5s"),
        (0, -1, "-0.000000001s"),
        (-1, -250_000_000, "-1.25s"),
        (100, 0, "100s"),
        (0, 0, "0s"),
        (i64::MAX, i32::MAX, "seconds: 9223372036854775807, nanos: 2147483647"),
    ] {
        let rule = format!("acquire.duration: must be 15 to 60 whole seconds: value=`{value}`");
        assert_eq!(rejected(seconds, nanos), rule);
    }
}

const ID: &str = "1f812371-a41d-49e6-b123-f4b542e851c5";
const OTHER: &str = "00000000-0000-0000-0000-00000000000b";

fn uuid(text: &str) -> Uuid {
    Uuid::try_parse(text).expect("a UUID")
}

fn parse(action: LeaseRequest, random: u128) -> Result<LeaseAction, Fault> {
    let mut parser = RequestParser::default();
    let action = parser.lease_action(Some(action), random);
    parser.finish(action)
}

fn whole(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

#[test]
fn a_lease_is_of_15_to_60_seconds_or_has_no_expiry() {
    for (stated, expected) in [(None, None), (Some(15), Some(15)), (Some(60), Some(60))] {
        let duration = stated.and_then(whole);
        let acquire = AcquireLease { duration, proposed_lease_id: ID.to_owned() };
        let expected = expected.map(Duration::from_secs);
        match parse(LeaseRequest::Acquire(acquire), 0) {
            Ok(LeaseAction::Acquire { duration, proposed, .. }) => {
                assert_eq!((duration, proposed), (expected, Some(uuid(ID))));
            }
            other => panic!("it is acquired: {other:?}"),
        }
    }
}

#[test]
fn a_new_lease_has_a_random_id_of_version_4() {
    for random in [0, 1, u128::MAX] {
        let found = parse(LeaseRequest::Acquire(AcquireLease::default()), random);
        let Ok(LeaseAction::Acquire { proposed: None, generated, .. }) = found else {
            panic!("it is acquired: {found:?}");
        };
        assert_eq!(generated.get_version_num(), 4);
        assert_eq!(generated.as_u128() & 0xFFFF, random & 0xFFFF);
    }
}

#[test]
fn a_lease_breaks_at_once_or_within_60_seconds() {
    for (stated, expected) in [(None, None), (Some(0), Some(0)), (Some(60), Some(60))] {
        let end = BreakLease { break_period: stated.and_then(whole) };
        let action = parse(LeaseRequest::Break(end), 0).expect("valid");
        assert_eq!(action, LeaseAction::Break(expected.map(Duration::from_secs)));
        assert!(action.is_break());
    }
    for seconds in [-1, 61, i64::MIN] {
        let end = BreakLease { break_period: whole(seconds) };
        let expected = [(Reason::InvalidHeaderValue, "break.break_period")];
        assert_rejected(parse(LeaseRequest::Break(end), 0), &expected);
    }
}

#[test]
fn renewing_releasing_and_changing_need_the_id_of_the_lease() {
    let renew = |id: &str| LeaseRequest::Renew(RenewLease { lease_id: id.to_owned() });
    let release = |id: &str| LeaseRequest::Release(ReleaseLease { lease_id: id.to_owned() });
    let change = |id: &str, proposed: &str| {
        let (lease_id, proposed_lease_id) = (id.to_owned(), proposed.to_owned());
        LeaseRequest::Change(ChangeLease { lease_id, proposed_lease_id })
    };
    let (id, proposed) = (uuid(ID), uuid(OTHER));
    assert_eq!(parse(renew(ID), 0).ok(), Some(LeaseAction::Renew(id)));
    assert_eq!(parse(release(ID), 0).ok(), Some(LeaseAction::Release(id)));
    let changed = LeaseAction::Change { id, proposed };
    assert_eq!(parse(change(ID, OTHER), 0).ok(), Some(changed));
    let rejected = |field| (Reason::InvalidHeaderValue, field);
    for text in ["", "none"] {
        assert_rejected(parse(renew(text), 0), &[rejected("renew.lease_id")]);
        assert_rejected(parse(release(text), 0), &[rejected("release.lease_id")]);
        let fields = [rejected("change.lease_id"), rejected("change.proposed_lease_id")];
        assert_rejected(parse(change(text, text), 0), &fields);
        assert_rejected(parse(change(text, OTHER), 0), &fields[..1]);
        assert_rejected(parse(change(ID, text), 0), &fields[1..]);
    }
}

#[test]
fn a_request_without_an_action_is_rejected() {
    let mut parser = RequestParser::default();
    let action = parser.lease_action(None, 0);
    assert_rejected(parser.finish(action), &[(Reason::InvalidHeaderValue, "action")]);
}
