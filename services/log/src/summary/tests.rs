use super::*;
use crate::{batch::BatchRow, record::UnsealedRow};
use prost::Message as _;
use trestle_proto::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{AnyValue, any_value::Value},
};

fn plan() -> SummaryPlan {
    SummaryPlan {
        times: 0..u64::MAX,
        predicate: None,
        interval: None,
        group_by: Vec::new(),
        value: None,
        quantiles: Vec::new(),
    }
}

/// A record at a time with a value and an attribute `k`.
fn take(summary: &mut RecordSummary, time: u64, value: Option<f64>, k: &str) {
    let text = AnyValue { value: Some(Value::StringValue(k.to_owned())) };
    let record = Record { value, attributes: [("k".to_owned(), text)].into(), ..Record::default() };
    let record = record.encode_to_vec();
    let row = BatchRow { time, sequence: 1, record: &record, resource: &[], scope: &[] };
    summary.take(&UnsealedRow::parse(row).unwrap());
}

#[test]
fn a_summary_of_nothing_has_one_group_unless_it_has_a_key() {
    let of = |plan: SummaryPlan| RecordSummary::new(Arc::new(plan));
    let empty = SummaryGroup { start: None, key: Vec::new(), records: 0, numbers: None };
    assert_eq!(of(plan()).groups(), [empty]);
    let by_time = SummaryPlan { interval: NonZeroU64::new(10), ..plan() };
    assert_eq!(of(by_time).groups(), []);
    let by_text = SummaryPlan { group_by: vec![Property::SeverityText], ..plan() };
    assert_eq!(of(by_text).groups(), []);
}

#[test]
fn groups_are_in_order_of_time_and_then_the_largest_first() {
    let group_by = vec![Property::Attribute("k".to_owned())];
    let plan = SummaryPlan { interval: NonZeroU64::new(10), group_by, ..plan() };
    let mut summary = RecordSummary::new(Arc::new(plan));
    for (time, k) in [(25, "b"), (9, "b"), (0, "a"), (4, "a"), (10, "a"), (19, "c"), (10, "c")] {
        take(&mut summary, time, None, k);
    }
    let groups = summary.groups();
    let shown = groups.iter().map(|group| (group.start.unwrap(), &group.key[0], group.records));
    let text = |text: &'static str| Some(ValueRef::Str(text.into()));
    let expected = [(0, "a", 2), (0, "b", 1), (10, "c", 2), (10, "a", 1), (20, "b", 1)];
    let expected = expected.map(|(start, k, records)| (start, text(k), records));
    assert!(
        shown.eq(expected.iter().map(|(start, k, records)| (*start, k, *records))),
        "{groups:?}"
    );
}

#[test]
fn numbers_that_are_not_finite_are_counted_as_records_only() {
    let plan =
        SummaryPlan { value: Some(Property::Value), quantiles: vec![0.0, 0.5, 1.0], ..plan() };
    let mut summary = RecordSummary::new(Arc::new(plan));
    for value in [Some(1.0), None, Some(f64::NAN), Some(f64::INFINITY), Some(3.0), Some(-2.0)] {
        take(&mut summary, 0, value, "");
    }
    let groups = summary.groups();
    let numbers = groups[0].numbers.as_ref().unwrap();
    assert_eq!((groups[0].records, numbers.count, numbers.sum), (6, 3, 2.0));
    assert_eq!((numbers.min, numbers.max), (-2.0, 3.0));
    let [least, middle, greatest] = numbers.quantiles[..] else { panic!("{numbers:?}") };
    assert!((least + 2.0).abs() <= 0.02 && (middle - 1.0).abs() <= 0.01);
    assert!((2.97..=3.0).contains(&greatest), "within the bounds: {greatest}");
}

#[test]
fn a_summary_is_full_by_its_groups_and_by_its_bytes_and_takes_in_nothing_then() {
    let group_by = vec![Property::Attribute("k".to_owned())];
    let plan = Arc::new(SummaryPlan { group_by, ..plan() });
    let mut summary = RecordSummary::new(Arc::clone(&plan));
    for number in 0..=GROUPS_MAX {
        assert!(!summary.is_full());
        take(&mut summary, 0, None, &number.to_string());
    }
    assert!(summary.is_full());
    take(&mut summary, 0, None, "another");
    assert_eq!(summary.groups().len(), GROUPS_MAX + 1);

    let mut summary = RecordSummary::new(plan);
    for number in 0..40_u8 {
        take(&mut summary, 0, None, &char::from(b'a' + number % 26).to_string().repeat(1 << 20));
    }
    assert_eq!(summary.groups().len(), 26, "groups that are there take no bytes more");
    assert!((26 << 20..27 << 20).contains(&summary.bytes()) && !summary.is_full());
    for number in 0..8_u8 {
        take(&mut summary, 0, None, &char::from(b'A' + number).to_string().repeat(1 << 20));
    }
    assert!(summary.is_full());
}
