//! How records are printed for people.

use super::*;

#[test]
fn a_record_is_one_line() {
    let record = Record {
        time_unix_nano: 1_769_846_400_250_000_000,
        severity_number: 17,
        body: Some(any_value::of_text("it\nfailed \x1b[31m")),
        attributes: [
            ("b c".to_owned(), any_value::of_text("x \"y\"")),
            ("a".to_owned(), any_value::of_json(json!([1]))),
        ]
        .into(),
        resource: [("service.name".to_owned(), any_value::of_text("s"))].into(),
        span_id: vec![0, 1, 2, 3, 4, 5, 6, 255].into(),
        ..Record::default()
    };
    let expected = "2026-01-31T08:00:00.250Z ERROR it\\nfailed \\u001b[31m a=[1] b c=\"x \\\"y\\\"\" \
                    service.name=s span_id=00010203040506ff";
    assert_eq!(line(&record), expected);
    let point = Record { event_name: "cpu".to_owned(), value: Some(0.5), ..Record::default() };
    assert_eq!(line(&point), "1970-01-01T00:00:00Z cpu 0.5");
    let sum = Record {
        temporality: 1,
        is_monotonic: Some(true),
        unit: "s".to_owned(),
        start_time_unix_nano: 1,
        ..point.clone()
    };
    let expected = "1970-01-01T00:00:00Z cpu 0.5 start_time=1970-01-01T00:00:00.000000001Z \
                    temporality=delta is_monotonic=true unit=s";
    assert_eq!(line(&sum), expected);
    let event = Record { body: Some(any_value::of_text("cpu")), value: None, ..point };
    assert_eq!(line(&event), "1970-01-01T00:00:00Z cpu", "its name once");
    let named = Record { severity_text: "odd".to_owned(), severity_number: 9, ..Record::default() };
    assert_eq!(line(&named), "1970-01-01T00:00:00Z odd");
    assert_eq!(time(u64::MAX), "2554-07-21T23:34:33.709551615Z");
}
