//! Filters on sealed and unsealed rows.

use super::*;

/// A predicate of tests, on unsealed and on sealed rows.
struct Matching {
    properties: Vec<Property>,
    required: Vec<RequiredEquality>,
    matches: fn(&dyn RowFields) -> bool,
}

impl RowPredicate for Matching {
    fn properties(&self) -> Vec<Property> {
        self.properties.clone()
    }

    fn required(&self) -> Vec<RequiredEquality> {
        self.required.clone()
    }

    fn matches(&self, row: &dyn RowFields) -> bool {
        (self.matches)(row)
    }
}

fn filtered(predicate: Matching, direction: Direction) -> SegmentRead {
    SegmentRead { predicate: Some(Arc::new(predicate)), ..all(0..u64::MAX, direction) }
}

/// What every property has, as text.
fn describe(row: &dyn RowFields) -> String {
    let attributes = ["a", "b", "c", "aa", "$bytes", "b.", "."].map(|key| row.attribute(key));
    let resource = ["a", "b", "$double"].map(|key| row.resource(key));
    format!(
        "{:?}",
        (
            (row.time(), row.sequence(), row.severity(), row.severity_text(), row.body()),
            (row.temporality(), row.is_monotonic(), row.unit()),
            (row.event_name(), row.value(), row.trace_id(), row.span_id(), row.scope_name()),
            (attributes, resource),
        )
    )
}

fn every_property() -> Vec<Property> {
    let attributes = ["a", "b", "c", "aa", "$bytes", "b.", "."];
    let attributes = attributes.map(|key| Property::Attribute(key.to_owned()));
    let resource = ["a", "b", "$double"].map(|key| Property::Resource(key.to_owned()));
    let plain = [
        Property::Time,
        Property::Sequence,
        Property::Severity,
        Property::SeverityText,
        Property::Body,
        Property::EventName,
        Property::Value,
        Property::Temporality,
        Property::IsMonotonic,
        Property::Unit,
        Property::TraceId,
        Property::SpanId,
        Property::Scope,
    ];
    plain.into_iter().chain(attributes).chain(resource).collect()
}

static SEEN: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_filter_sees_the_same_before_and_after_the_seal(append in appended()) {
        let batch = append.batch();
        let mut rows: Vec<_> =
            BatchView::parse(&batch.bytes).unwrap().rows(0).map(Result::unwrap).collect();
        rows.sort_by_key(|row| (row.time, row.sequence));
        let unsealed: Vec<_> =
            rows.iter().map(|row| describe(&UnsealedRow::parse(*row).unwrap())).collect();
        let segments = seal(&SegmentSchema::new(promoted()), &[append], 0);

        let see = |row: &dyn RowFields| {
            SEEN.lock().unwrap().push(describe(row));
            false
        };
        SEEN.lock().unwrap().clear();
        for segment in &segments {
            let (properties, required) = (every_property(), Vec::new());
            let predicate = Matching { properties, required, matches: see };
            assert!(block_on(rows_of(segment, filtered(predicate, Direction::Forward))).is_empty());
        }

        let mut sealed = SEEN.lock().unwrap().clone();
        // Data points are seen in the order of their series.
        sealed.sort();
        let mut unsealed = unsealed;
        unsealed.sort();
        prop_assert_eq!(sealed, unsealed);
    }
}

#[test]
fn a_filter_selects_rows_in_both_directions() {
    let (segment, mut expected) = large();
    expected.retain(|(_, _, record)| record.severity_number == 17);
    let errors = || Matching {
        properties: vec![Property::Severity],
        required: Vec::new(),
        matches: |row| row.severity() == 17,
    };

    let rows = block_on(rows_of(&segment, filtered(errors(), Direction::Forward)));
    assert!(same(&rows, &expected), "forward");
    let rows = block_on(rows_of(&segment, filtered(errors(), Direction::Backward)));
    expected.reverse();
    assert!(same(&rows, &expected), "backward");
}

#[test]
fn bloom_filters_skip_row_groups_without_the_value() {
    let (segment, _) = large();
    let scanned = |required: RequiredEquality, matches| {
        let property = match &required {
            RequiredEquality::TraceId(_) => Property::TraceId,
            RequiredEquality::Attribute(key, _) => Property::Attribute(key.clone()),
        };
        let predicate = Matching { properties: vec![property], required: vec![required], matches };
        block_on(async {
            let mut reader = reader_of(&segment, filtered(predicate, Direction::Forward)).await;
            let mut rows = Vec::new();
            while let Some(row) = reader.next_row().await.unwrap() {
                rows.push(row.sequence);
            }
            (rows, reader.rows_scanned())
        })
    };

    let trace = |row: &dyn RowFields| row.trace_id() == 4_501_u128.to_be_bytes();
    let required = RequiredEquality::TraceId(4_501_u128.to_be_bytes());
    assert_eq!(scanned(required, trace), (vec![4_500], 5_000 - 4_096));

    let required = RequiredEquality::TraceId(u128::MAX.to_be_bytes());
    assert_eq!(scanned(required, |_| true), (vec![], 0));

    let none = |_: &dyn RowFields| true;
    let host = ValueRef::Str("host-11".into());
    let required = RequiredEquality::Attribute("a".to_owned(), host);
    assert_eq!(scanned(required, none), (vec![], 0), "an indexed attribute");
    let required = RequiredEquality::Attribute("b".to_owned(), ValueRef::Int(1_001));
    assert_eq!(scanned(required, none), (vec![], 0), "an indexed whole number");

    let host = |row: &dyn RowFields| row.attribute("a") == Some(ValueRef::Str("host-7".into()));
    let required = RequiredEquality::Attribute("a".to_owned(), ValueRef::Str("host-7".into()));
    assert_eq!(scanned(required, host).0.len(), 500);
}
