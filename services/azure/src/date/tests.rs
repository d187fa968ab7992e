//! Times in each format of the protocol.

use proptest::prelude::*;

use super::*;

const NOON: i64 = 1_763_726_400;

#[test]
fn http_dates_cover_the_whole_calendar() {
    let text = |seconds| http_date(Some(&Timestamp { seconds, nanos: 999_999_900 }));

    assert_eq!(text(NOON), "Fri, 21 Nov 2025 12:00:00 GMT");
    assert_eq!(text(-1), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(text(i64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(http_date(None), "Fri, 31 Dec 9999 23:59:59 GMT");
}

#[test]
fn precise_dates_have_seven_fractional_digits() {
    let text = |seconds, nanos| precise_date(&Timestamp { seconds, nanos });

    assert_eq!(text(NOON, 0).as_deref(), Some("2025-11-21T12:00:00.0000000Z"));
    assert_eq!(text(NOON, 123_456_700).as_deref(), Some("2025-11-21T12:00:00.1234567Z"));
    assert_eq!(text(-62_135_596_800, 0).as_deref(), Some("0001-01-01T00:00:00.0000000Z"));
    assert_eq!(text(i64::MAX, 0), None);
    assert_eq!(text(NOON, -1), None);
}

#[test]
fn times_are_parsed_in_every_form_of_policies() {
    let noon = |nanos| Some(Timestamp { seconds: NOON, nanos });
    for (text, time) in [
        ("2025-11-21T12:00Z", noon(0)),
        ("2025-11-21T12:00:00Z", noon(0)),
        ("2025-11-21T12:00:00.5Z", noon(500_000_000)),
        ("2025-11-21T12:00:00.1234567Z", noon(123_456_700)),
        ("2025-11-21T12:00:00.123456789Z", noon(123_456_700)),
        ("2025-11-21T14:00:00.0000000+02:00", noon(0)),
        ("2025-11-21", Some(Timestamp { seconds: NOON - 43_200, nanos: 0 })),
        ("2025-11-21T12:00", None),
        ("21 Nov 2025", None),
        ("2025-02-30", None),
        ("", None),
    ] {
        assert_eq!(read_date(text), time, "{text}");
    }
}

#[test]
fn the_bounds_of_the_calendar_are_written_and_those_beyond_are_not() {
    let text = |seconds, nanos| precise_date(&Timestamp { seconds, nanos });
    assert_eq!(text(LAST_SECOND, 999_999_900).as_deref(), Some("9999-12-31T23:59:59.9999999Z"));
    assert_eq!(text(LAST_SECOND + 1, 0), None);
    assert_eq!(text(-62_135_596_801, 0), None, "before the year 1");
    assert_eq!(text(0, 1_000_000_000), None);
}

#[test]
fn a_day_is_one_of_the_gregorian_calendar() {
    for day in ["2024-02-29", "2000-02-29", "1601-01-01", "9999-12-31"] {
        assert!(is_day(day), "{day}");
    }
    for text in ["2023-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-04-31", "26-01-01"] {
        assert!(!is_day(text), "{text}");
    }
}

#[test]
fn a_time_that_does_not_exist_is_rejected() {
    for text in [
        "2025-11-21T24:00Z",
        "2025-11-21T23:60Z",
        "2025-11-21T23:59:61Z",
        "2025-11-21T12:00:00.Z",
        "2025-11-21T12:00:00+25:00",
        "2025-11-21T12:00:00Z ",
    ] {
        assert_eq!(read_date(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn a_precise_date_survives_a_round_trip(
        seconds in -11_644_473_600..=LAST_SECOND,
        ticks in 0..10_000_000_i32,
    ) {
        let moment = Timestamp { seconds, nanos: ticks * 100 };
        let text = precise_date(&moment).expect("in the calendar");
        prop_assert_eq!(text.len(), "2026-01-31T08:00:00.0000000Z".len());
        prop_assert_eq!(read_date(&text), Some(moment));
    }

    #[test]
    fn an_offset_moves_the_time_and_not_its_fraction(
        seconds in 0..4_000_000_000_i64,
        hours in 0..14_i64,
    ) {
        let text = precise_date(&Timestamp { seconds, nanos: 500 }).expect("in the calendar");
        let east = text.replace('Z', &format!("+{hours:02}:30"));
        let moved = Timestamp { seconds: seconds - hours * 3600 - 1800, nanos: 500 };
        prop_assert_eq!(read_date(&east), Some(moved));
    }

    #[test]
    fn an_http_date_is_parsed_to_its_second(seconds in 0..=LAST_SECOND) {
        const ANY: &[BorrowedFormatItem<'_>] = format_description!(
            "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
        );
        let text = http_date(Some(&Timestamp { seconds, nanos: 1 }));
        let read = PrimitiveDateTime::parse(&text, ANY).expect("a date");
        prop_assert_eq!(read.assume_utc().unix_timestamp(), seconds);
    }
}
