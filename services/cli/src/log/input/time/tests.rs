use chrono::format::StrftimeItems;
use serde_json::json;

use super::*;

fn rules() -> TimeRules {
    let now = DateTime::parse_from_rfc3339("2026-03-01T12:00:00Z").unwrap().to_utc();
    TimeRules { offset: FixedOffset::east_opt(3600).unwrap(), now }
}

fn at(text: &str) -> u64 {
    nanos(DateTime::parse_from_rfc3339(text).unwrap().to_utc()).unwrap()
}

#[test]
fn times_are_read_in_every_unit() {
    let expected = at("2026-01-31T08:00:00.5Z");
    for value in [
        json!("2026-01-31T08:00:00.500Z"),
        json!("2026-01-31T09:00:00.5+01:00"),
        json!("2026-01-31 09:00:00.5"),
        json!("2026-01-31T09:00:00,500"),
        json!("2026-01-31T10:00:00.500+0200"),
        json!("2026-01-31 10:00:00,5 +0200"),
        json!("2026-01-31T03:00:00.5-05"),
        json!("2026-01-31T02:30:00.5-0530"),
        json!("2026-01-31 08:00:00.5Z"),
        json!("20260131T100000.5+0200"),
        json!("20260131T090000.5"),
        json!(1_769_846_400.5),
        json!(1_769_846_400_500_u64),
        json!("1769846400500"),
        json!(1_769_846_400_500_000_u64),
        json!(1_769_846_400_500_000_000_u64),
        json!("1769846400.5"),
    ] {
        assert_eq!(rules().of_json(&value), Ok(expected), "{value}");
    }
    assert_eq!(rules().of_json(&json!(1_769_846_400)), Ok(at("2026-01-31T08:00:00Z")));
    for value in
        [json!("noon"), json!(-1), json!(true), json!("1969-12-31T23:59:59Z"), json!(1e300)]
    {
        assert!(rules().of_json(&value).is_err(), "{value}");
    }
}

#[test]
fn a_pattern_takes_the_time_from_a_line() {
    let take = |pattern: &str, text: &'static str| {
        let items = StrftimeItems::new(pattern).parse().unwrap();
        rules().take(text, &items)
    };
    let expected = at("2026-01-31T08:00:00.25Z");
    for (pattern, text) in [
        ("%Y-%m-%d %H:%M:%S%.f", "2026-01-31 09:00:00.25 rest"),
        ("%Y-%m-%dT%H:%M:%S%.f%:z", "2026-01-31T10:00:00.25+02:00 rest"),
        ("[%d/%b/%Y:%H:%M:%S%.f %z]", "[31/Jan/2026:08:00:00.25 +0000] rest"),
        ("%s%.f", "1769846400.25 rest"),
        ("%b %e %H:%M:%S%.f", "Jan 31 09:00:00.25 rest"),
        ("%Y-%m-%d %H:%M:%S,%f", "2026-01-31 09:00:00,25 rest"),
        ("%Y-%m-%d %H:%M:%S.%f", "2026-01-31 09:00:00.250 rest"),
        ("%Y-%m-%d %H:%M:%S,%f %z", "2026-01-31 10:00:00,250000000 +0200 rest"),
        ("%f %Y-%m-%dT%H:%M:%S%z", "25000000000099 2026-01-31T10:00:00+0200 rest"),
    ] {
        assert_eq!(take(pattern, text), Ok((expected, " rest")), "{pattern}");
    }
    for (pattern, text) in [
        ("%Y-%m-%d %H:%M:%S", "no time"),
        ("%Y-%m-%d", "2026-01-31"),
        ("%Y-%m-%d %H:%M:%S", "2026-02-30 00:00:00"),
        ("%Y-%m-%d %H:%M:%S,%f", "2026-01-31 00:00:00, rest"),
        ("%Y-%m-%d %H:%M:%S,%f", "2026-01-31 00:00:00,-5"),
    ] {
        assert!(take(pattern, text).is_err(), "{pattern}: {text}");
    }
}

#[test]
fn a_time_without_a_year_is_in_the_last_twelve_months() {
    let year = |month, day| rules().year(month, day);
    assert_eq!(
        [year(1, 31), year(3, 1), year(3, 2), year(3, 3), year(12, 31)],
        [2026, 2026, 2026, 2025, 2025]
    );
}
