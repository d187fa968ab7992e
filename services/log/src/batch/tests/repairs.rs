//! What is invalid and optional is left out alone, at every level, and counted.

use trestle_proto::opentelemetry::proto::{
    common::v1::{InstrumentationScope, KeyValue, KeyValueList},
    logs::v1::{LogRecord, ScopeLogs},
    resource::v1::Resource,
    trace::v1::{
        ScopeSpans, Span, Status,
        span::{Event, Link},
    },
};

use super::{
    logs::{exported, log, pair, scope_logs, stored},
    *,
};

fn map(entries: Vec<KeyValue>) -> AnyValue {
    AnyValue { value: Some(Value::KvlistValue(KeyValueList { values: entries })) }
}

/// The one record that an export of a record stores.
fn kept(record: LogRecord) -> Record {
    let (batch, rejected) = exported(vec![record]);
    assert_eq!(rejected, Rejected::default());
    let mut records = stored(&batch.expect("a record"));
    assert_eq!(records.len(), 1);
    records.remove(0)
}

fn attributes(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, AnyValue> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), text(value))).collect()
}

/// Attributes that are invalid, and one that is not.
fn mixed() -> Vec<KeyValue> {
    vec![
        pair("", text("an empty key")),
        pair("k", text("a")),
        pair(&"x".repeat(257), text("a long key")),
        pair("k", text("b")),
    ]
}

#[test]
fn an_invalid_id_is_an_absent_one() {
    let valid = LogRecord { trace_id: vec![1; 16].into(), span_id: vec![2; 8].into(), ..log("a") };
    for (trace, span) in [(vec![0; 16], vec![0; 8]), (vec![1; 15], vec![1; 9]), (vec![1], vec![])] {
        let record = LogRecord { trace_id: trace.into(), span_id: span.into(), ..valid.clone() };
        let found = kept(record);
        assert!(found.trace_id.is_empty() && found.span_id.is_empty(), "{found:?}");
        assert_eq!((found.body, found.dropped_attributes_count), (Some(text("a")), 0));
    }
    let found = kept(LogRecord { trace_id: vec![0; 16].into(), ..valid });
    assert_eq!(found.span_id, vec![2; 8]);
}

#[test]
fn invalid_attributes_are_left_out_and_counted() {
    let found = kept(LogRecord { attributes: mixed(), dropped_attributes_count: 4, ..log("a") });
    assert_eq!(found.attributes, attributes(&[("k", "b")]));
    assert_eq!(found.dropped_attributes_count, 4 + 3);

    let many = (0..1_000).map(|at| pair(&format!("k{at}"), text(""))).collect();
    let found = kept(LogRecord { attributes: many, ..log("a") });
    assert_eq!((found.attributes.len(), found.dropped_attributes_count), (256, 744));

    let deep = vec![pair("deep", nested(17)), pair("flat", nested(16))];
    let found = kept(LogRecord { attributes: deep, ..log("a") });
    assert_eq!(found.attributes["flat"], nested(16));
    assert_eq!((found.attributes.len(), found.dropped_attributes_count), (2, 1));

    let found = kept(LogRecord { severity_number: 25, severity_text: "odd".into(), ..log("a") });
    assert_eq!((found.severity_number, found.dropped_attributes_count), (0, 1));
    assert_eq!(found.severity_text, "odd");
}

#[test]
fn the_last_value_of_a_key_is_kept_where_the_first_was() {
    let inner = map(vec![pair("x", text("1")), pair("y", text("2")), pair("x", text("3"))]);
    let unique = map(vec![pair("x", text("3")), pair("y", text("2"))]);
    let list = AnyValue { value: Some(Value::ArrayValue(ArrayValue { values: vec![inner] })) };
    let record = LogRecord { body: Some(map(vec![pair("list", list)])), ..log("a") };

    let found = kept(record);

    let list = AnyValue { value: Some(Value::ArrayValue(ArrayValue { values: vec![unique] })) };
    assert_eq!(found.body, Some(map(vec![pair("list", list)])));
    assert_eq!(found.dropped_attributes_count, 1);
}

#[test]
fn an_append_has_the_rule_of_keys_and_rejects_what_else_is_invalid() {
    let twice = |key: &str| {
        let mut record = Vec::new();
        for value in ["a", "b"] {
            let entry = pair(key, text(value)).encode_to_vec();
            trestle_proto::wire::put_bytes(&mut record, 6, &entry);
        }
        Bytes::from(record)
    };
    let entry = |value| Bytes::from(pair("r", text(value)).encode_to_vec());
    let request = AppendRecordsRequest {
        records: vec![twice("k")],
        resource: vec![entry("a"), entry("b")],
        ..AppendRecordsRequest::default()
    };

    let found = stored(&batch_of_append(&request, TIMES).unwrap());

    assert_eq!(found[0].attributes, attributes(&[("k", "b")]));
    assert_eq!(found[0].resource, attributes(&[("r", "b")]));
    assert_eq!(found[0].dropped_attributes_count, 2);
    let request = AppendRecordsRequest { records: vec![twice("")], ..request };
    let error = batch_of_append(&request, TIMES).expect_err("an empty key");
    assert_eq!(error.field, "records[0].attributes");
}

#[test]
fn what_is_left_out_of_a_resource_is_counted_in_its_records_and_that_of_a_scope_in_the_scope() {
    let resource = Some(Resource { attributes: mixed(), ..Resource::default() });
    let scope = InstrumentationScope {
        name: "s".to_owned(),
        attributes: mixed(),
        dropped_attributes_count: 1,
        ..InstrumentationScope::default()
    };
    let scoped = ScopeLogs { scope: Some(scope), ..scope_logs(vec![log("a"), log("b")]) };

    let (batch, rejected) = batch_of::<ResourceLogs>(&[logs::logs(resource, vec![scoped])]);

    assert_eq!(rejected, Rejected::default());
    for record in stored(&batch.unwrap()) {
        assert_eq!(record.resource, attributes(&[("k", "b")]));
        assert_eq!(record.dropped_attributes_count, 3);
        let scope = record.scope.unwrap();
        assert_eq!((scope.name.as_str(), scope.dropped_attributes_count), ("s", 4));
        assert_eq!(scope.attributes, [pair("k", text("b"))]);
    }
}

#[test]
fn a_resource_keeps_the_attributes_for_which_it_has_room() {
    let large = pair("large", text(&"x".repeat(65_536)));
    let resource =
        Some(Resource { attributes: vec![large, pair("k", text("v"))], ..Resource::default() });

    let logs = logs::logs(resource, vec![scope_logs(vec![log("a")])]);
    let (batch, rejected) = batch_of::<ResourceLogs>(&[logs]);

    assert_eq!(rejected, Rejected::default());
    let found = stored(&batch.unwrap()).remove(0);
    assert_eq!(found.resource, attributes(&[("k", "v")]));
    assert_eq!(found.dropped_attributes_count, 1);
}

#[test]
fn the_stream_is_that_of_the_name_which_is_stored() {
    let name = |service| pair("service.name", text(service));
    let resource = Resource { attributes: vec![name("a"), name("b")], ..Resource::default() };
    assert_eq!(stream_of_resource(&resource.encode_to_vec()), "b");
}

fn root(name: &str) -> Span {
    Span {
        trace_id: vec![0xAB; 16].into(),
        span_id: vec![0xCD; 8].into(),
        name: name.to_owned(),
        start_time_unix_nano: NOW,
        end_time_unix_nano: NOW + 1_000_000_000,
        ..Span::default()
    }
}

/// The records of a span, all of it stored.
fn spanned(span: Span) -> Vec<Record> {
    let scope_spans = vec![ScopeSpans { spans: vec![span], ..ScopeSpans::default() }];
    let spans = ResourceSpans { scope_spans, ..ResourceSpans::default() };
    let (batch, rejected) = batch_of::<ResourceSpans>(&[spans.encode_to_vec().into()]);
    assert_eq!(rejected, Rejected::default());
    stored(&batch.expect("a span"))
}

fn number(value: i64) -> AnyValue {
    AnyValue { value: Some(Value::IntValue(value)) }
}

#[test]
fn a_span_has_a_duration_of_0_where_its_times_have_none() {
    let of = |start, end| {
        let span = Span { start_time_unix_nano: start, end_time_unix_nano: end, ..root("s") };
        let found = spanned(span).remove(0);
        assert_eq!(found.value, Some(0.0), "{start} {end}");
        (found.time_unix_nano, found.dropped_attributes_count)
    };
    assert_eq!(of(NOW, NOW - 1), (NOW, 1), "the end is left out");
    assert_eq!(of(NOW, 0), (NOW, 0));
    assert_eq!(of(0, NOW), (NOW, 0));
    assert_eq!(of(0, 0), (NOW, 0), "that of the arrival");
}

#[test]
fn invalid_parts_of_a_span_are_left_out() {
    let span = Span {
        parent_span_id: vec![1; 7].into(),
        kind: 6,
        status: Some(Status { code: 3, message: "m".to_owned() }),
        attributes: mixed(),
        ..root("s")
    };

    let found = spanned(span).remove(0);

    let expected = attributes(&[("k", "b"), ("otel.status_description", "m")]);
    assert_eq!((found.attributes, found.dropped_attributes_count), (expected, 5));
}

#[test]
fn an_invalid_event_is_left_out_and_counted_in_its_span() {
    let event = |name: &str| Event { name: name.to_owned(), time_unix_nano: NOW, ..<_>::default() };
    let large = pair("large", text(&"x".repeat(RECORD_BYTES)));
    let events = vec![
        Event { attributes: mixed(), ..event("kept") },
        Event { time_unix_nano: NOW + 2 * DAY, ..event("late") },
        Event { attributes: vec![large], ..event("large") },
    ];

    let found = spanned(Span { events, dropped_events_count: 1, ..root("s") });

    let [span, event] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(span.attributes, [("otel.dropped_events_count".to_owned(), number(3))].into());
    assert_eq!(
        (&event.attributes, event.dropped_attributes_count),
        (&attributes(&[("k", "b")]), 3)
    );
}

#[test]
fn a_link_is_kept_where_it_has_anything_valid() {
    let zero = Link { trace_id: vec![0; 16].into(), span_id: vec![0; 8].into(), ..<_>::default() };
    let links = vec![
        Link { attributes: mixed(), dropped_attributes_count: 1, ..zero.clone() },
        Link { trace_state: "a=1".to_owned(), ..Link::default() },
        Link { trace_id: vec![1; 16].into(), span_id: vec![1; 3].into(), ..Link::default() },
        zero,
    ];

    let found = spanned(Span { links, dropped_links_count: 5, ..root("s") }).remove(0);

    let kept = [
        map(vec![
            pair("attributes", map(vec![pair("k", text("b"))])),
            pair("dropped_attributes_count", number(4)),
        ]),
        map(vec![pair("trace_state", text("a=1"))]),
        map(vec![pair("trace_id", text(&"01".repeat(16)))]),
    ];
    let kept = AnyValue { value: Some(Value::ArrayValue(ArrayValue { values: kept.into() })) };
    assert_eq!(found.attributes["links"], kept);
    assert_eq!(found.attributes["otel.dropped_links_count"], number(6));
    assert_eq!(found.dropped_attributes_count, 0);
}

/// A record of which anything may be invalid, as it is encoded.
fn invalid_record() -> impl Strategy<Value = LogRecord> {
    let id = || proptest::collection::vec(0_u8..2, 0..18);
    let key = prop_oneof![4 => "[a-c]?".boxed(), 1 => Just("x".repeat(257)).boxed()];
    let entry = (key, samples::any_value()).prop_map(samples::entry).boxed();
    let body = proptest::collection::vec(entry.clone(), 0..4).prop_map(map);
    let entries = proptest::collection::vec(entry, 0..6);
    (id(), id(), entries, body, -2..30_i32).prop_map(|(trace, span, attributes, body, severity)| {
        LogRecord {
            trace_id: trace.into(),
            span_id: span.into(),
            attributes,
            body: Some(body),
            severity_number: severity,
            ..log("")
        }
    })
}

/// The value in one form: no value and an empty one are the same.
fn plain(value: &AnyValue) -> AnyValue {
    let mut value = value.clone();
    match &mut value.value {
        Some(Value::ArrayValue(array)) => {
            array.values.iter_mut().for_each(|value| *value = plain(value));
        }
        Some(Value::KvlistValue(map)) => {
            for entry in &mut map.values {
                entry.value = entry.value.as_ref().map(plain).filter(|it| it.value.is_some());
            }
        }
        _ => {}
    }
    value
}

proptest! {
    #[test]
    fn a_record_with_invalid_parts_is_stored_and_keeps_the_rules(record in invalid_record()) {
        let found = kept(record.clone());

        let own = Record { resource: Default::default(), sequence: 0, ..found.clone() };
        prop_assert!(keeps_rules(&own), "{:?}", own);
        let last = |key: &str| record.attributes.iter().rfind(|entry| entry.key == key);
        for (key, value) in &found.attributes {
            let expected = last(key).and_then(|entry| entry.value.clone()).unwrap_or_default();
            // NaN differs from itself.
            prop_assert_eq!(plain(value).encode_to_vec(), plain(&expected).encode_to_vec());
        }
        let is_valid = |entry: &&KeyValue| (1..=256).contains(&entry.key.len());
        let keys: std::collections::BTreeSet<_> =
            record.attributes.iter().filter(is_valid).map(|entry| &entry.key).collect();
        prop_assert_eq!(found.attributes.len(), keys.len());
    }
}
