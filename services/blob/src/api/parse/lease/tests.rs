use super::*;

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
        (15, -1, "14.999999999s"),
        (60, 500_000_000, "60.5s"),
        (0, -1, "-0.000000001s"),
        (-1, -250_000_000, "-1.25s"),
        (100, 0, "100s"),
        (0, 0, "0s"),
        (i64::MAX, i32::MAX, "9223372036854775809.147483647s"),
    ] {
        let rule = format!("acquire.duration: must be 15 to 60 whole seconds: value=`{value}`");
        assert_eq!(rejected(seconds, nanos), rule);
    }
}
