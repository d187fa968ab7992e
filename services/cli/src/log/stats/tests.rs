use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanos: 0 }
}

fn shown(words: &[&str], by: &[&str], start: Option<i64>, end: i64) -> Shown {
    Shown {
        statistics: words.iter().map(|word| Statistic::parse(word).unwrap()).collect(),
        grouping: Grouping::parse(by.iter().copied()).unwrap(),
        start: start.map(at),
        end: at(end),
    }
}

fn group(start: Option<i64>, records: u64) -> RecordGroup {
    RecordGroup { start_time: start.map(at), records, ..RecordGroup::default() }
}

#[test]
fn a_rate_is_of_the_part_of_an_interval_that_is_in_the_range() {
    let minutes = shown(&["rate"], &["minute"], Some(90), 200);
    let rate = |start, records| minutes.record(&group(Some(start), records), false)["rate"].clone();
    assert_eq!(rate(60, 60), 2, "from 90 to 120");
    assert_eq!(rate(120, 60), 1);
    assert_eq!(rate(180, 60), 3, "until now");
    assert_eq!(rate(240, 60), 1, "of a clock that is ahead");

    let whole = shown(&["rate"], &[], Some(100), 200);
    assert_eq!(whole.record(&group(None, 25), false)["rate"], 0.25);
}

#[test]
fn numbers_are_shown_with_the_digits_that_they_have() {
    let numbers = NumberSummary {
        count: 3,
        sum: 10.0,
        min: 0.1,
        max: 7.0,
        quantiles: vec![2.020_202_02, 6.999],
    };
    let of = RecordGroup { records: 4, numbers: Some(numbers), ..RecordGroup::default() };
    let words = ["count", "sum", "avg", "min", "max", "p50", "p99"];
    let record = shown(&words, &[], None, 0).record(&of, false);
    let expected = json!({
        "count": 4, "sum": 10, "avg": 3.33333, "min": 0.1, "max": 7, "p50": 2.02, "p99": 6.999,
    });
    assert_eq!(record, expected);

    let table = shown(&["min", "max"], &[], None, 0).record(&of, true);
    assert_eq!(table, json!({ "min": "0.1", "max": 7 }), "whole numbers have separators");

    let without = shown(&words, &[], None, 0).record(&group(None, 4), false);
    assert_eq!(
        (&without["count"], &without["p99"], &without["sum"]),
        (&json!(4), &Value::Null, &Value::Null)
    );
}

#[test]
fn a_severity_has_its_name_in_a_table_only() {
    let int = |number| any_value::Value::IntValue(number);
    let key = |number| {
        vec![trestle_proto::opentelemetry::proto::common::v1::AnyValue { value: Some(int(number)) }]
    };
    let of = |number, is_table| {
        let group = RecordGroup { key: key(number), ..RecordGroup::default() };
        shown(&["count"], &["severity"], None, 0).record(&group, is_table)["severity"].clone()
    };
    assert_eq!((of(17, true), of(17, false)), (json!("ERROR"), json!(17)));
    assert_eq!(of(18, true), 18, "another number of the same name");
}
