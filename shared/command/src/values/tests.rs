//! Tests of the module.

use super::*;

#[test]
fn a_number_outside_of_its_range_is_rejected_with_the_range_in_words() {
    let (small, large) = (whole_number::<u8>(1..=64), whole_number::<u64>(1..=u64::MAX));

    assert_eq!((small("1"), small("64")), (Ok(1), Ok(64)));
    for rejected in ["0", "65", "-1", "1.5", "", "x", "99999999999999999999"] {
        assert_eq!(
            small(rejected),
            Err("must be a whole number, 1 to 64".to_owned()),
            "{rejected}"
        );
    }
    assert_eq!(large("18446744073709551615"), Ok(u64::MAX));
    assert!(large("0").is_err());
}

#[test]
fn durations_have_a_unit_and_are_positive() {
    assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
    assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
    assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
    assert!(duration("1w").is_err_and(|rule| rule.contains("a number alone is in seconds")));
    for text in ["", "0s", "0d", "-1s", "1.5s", "36501d", "99999999999999999999s"] {
        assert!(duration(text).is_err_and(|rule| rule.contains("1ms to 36500d")), "{text}");
    }
    assert!(duration("36500d").is_ok());
}

#[test]
fn a_time_out_of_its_range_is_rejected_with_the_range() {
    let wait = time_between("0s", "20s");

    assert_eq!((wait("0s"), wait("0")), (Ok(Duration::ZERO), Ok(Duration::ZERO)));
    assert_eq!((wait("20s"), wait("20000ms")), (duration("20s"), duration("20s")));
    assert_eq!(time_between("1s", "7d")("7d"), duration("7d"));
    assert!(time_between("1s", "7d")("999ms").is_err());
    for text in ["", "-1s", "21s", "20001ms", "1m", "0w"] {
        let rule = wait(text).unwrap_err();
        assert!(
            rule.starts_with("must be 0s to 20s: a whole number and ms, s, m, h or d"),
            "{text}"
        );
    }
}
