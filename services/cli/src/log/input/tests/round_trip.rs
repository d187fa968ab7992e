//! Records as `trestle log read` prints them, read back.

use std::collections::BTreeMap;

use proptest::{collection::btree_map, option, prelude::*};
use trestle_proto::opentelemetry::proto::common::v1::{
    ArrayValue, KeyValue, KeyValueList, any_value::Value as Kind,
};

use super::*;

type Attributes = BTreeMap<String, AnyValue>;

/// Texts with what JSON and the form of values escape, and those that are fields or severities elsewhere.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,6}",
        "[$]{0,3}(bytes|double)?",
        prop::sample::select(vec!["error", "time", "sequence", "level", "AP8=", "NaN"])
            .prop_map(str::to_owned),
    ]
}

/// Every number of 64 bits, with small ones.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..100_u64, any::<u64>(), EIGHT..EIGHT + 1_000_000]
}

fn double() -> impl Strategy<Value = f64> {
    prop_oneof![any::<u64>().prop_map(f64::from_bits), (-9..9_i8).prop_map(f64::from)]
}

fn value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        Just(None),
        text().prop_map(|text| Some(Kind::StringValue(text))),
        any::<bool>().prop_map(|truth| Some(Kind::BoolValue(truth))),
        any::<i64>().prop_map(|number| Some(Kind::IntValue(number))),
        double().prop_map(|number| Some(Kind::DoubleValue(number))),
        any::<Vec<u8>>().prop_map(|bytes| Some(Kind::BytesValue(bytes.into()))),
    ];
    let leaf = leaf.prop_map(|value| AnyValue { value });
    leaf.prop_recursive(3, 12, 4, |inner| {
        let array = prop::collection::vec(inner.clone(), 0..4)
            .prop_map(|values| Kind::ArrayValue(ArrayValue { values }));
        let list = btree_map(text(), inner, 0..4)
            .prop_map(|entries| Kind::KvlistValue(KeyValueList { values: pairs(entries) }));
        prop_oneof![array, list].prop_map(|kind| AnyValue { value: Some(kind) })
    })
}

fn pairs(entries: Attributes) -> Vec<KeyValue> {
    entries.into_iter().map(|(key, value)| any_value::pair(key, value)).collect()
}

fn attributes() -> impl Strategy<Value = Attributes> {
    btree_map(text(), value(), 0..4)
}

fn id(bytes: usize) -> impl Strategy<Value = Bytes> {
    let id = prop::collection::vec(1..=u8::MAX, bytes);
    prop_oneof![Just(Bytes::new()), id.prop_map(Bytes::from)]
}

prop_compose! {
    fn scope()(
        name in text(),
        version in text(),
        entries in attributes(),
        dropped_attributes_count: u32,
    ) -> InstrumentationScope {
        let attributes = pairs(entries);
        InstrumentationScope { name, version, attributes, dropped_attributes_count }
    }
}

prop_compose! {
    /// A record with any value in every field.
    fn record()(
        (time_unix_nano, observed_time_unix_nano) in (number(), number()),
        (severity_number, severity_text, event_name) in (0..=24, text(), text()),
        (body, attributes, resource) in (option::of(value()), attributes(), attributes()),
        (dropped_attributes_count, flags) in any::<(u32, u32)>(),
        (trace_id, span_id) in (id(16), id(8)),
        (value, scope) in (option::of(double()), option::of(scope())),
        (start_time_unix_nano, temporality) in (number(), 0..=2),
        (is_monotonic, unit) in (any::<Option<bool>>(), text()),
        sequence: u64,
    ) -> Record {
        Record {
            time_unix_nano,
            observed_time_unix_nano,
            severity_number,
            severity_text,
            body,
            attributes,
            dropped_attributes_count,
            flags,
            trace_id,
            span_id,
            event_name,
            value,
            start_time_unix_nano,
            temporality,
            is_monotonic,
            unit,
            resource,
            scope,
            sequence,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_printed_record_is_read_back_with_every_field(record in record()) {
        let line = print::object(&record).to_string();
        let parser = LineParser { origin: Arc::default(), ..parser(LineFormat::Json) };

        let read = parser.parse(line.as_bytes()).unwrap().remove(0);

        let ParsedRecord { record: mut found, origin } = read;
        found.resource = origin.resource.iter().cloned().collect();
        found.scope.clone_from(&origin.scope);
        // The server sets the sequence again; a scope without a field is none.
        let mut expected = Record { sequence: 0, ..record };
        expected.scope = expected.scope.filter(|scope| *scope != InstrumentationScope::default());
        // By bytes, since NaN does not equal itself.
        prop_assert_eq!(found.encode_to_vec(), expected.encode_to_vec(), "{}", line);
    }
}

#[test]
fn a_line_of_a_program_with_attributes_has_the_severity_of_its_text() {
    let line = r#"{"severity_text":"Error","body":null,"msg":"a","attributes":{"$a":1}}"#;
    let record = parse(LineFormat::Json, line);
    assert_eq!((record.severity_number, record.severity_text.as_str()), (17, "Error"));
    assert_eq!(record.body, Some(any_value::of_text("a")));
    assert_eq!(super::attributes(&record), json!({ "$a": 1 }));
}

#[test]
fn fields_of_another_form_stay_attributes() {
    let line = r#"{"attributes":{},"flags":-1,"dropped_attributes_count":"2","scope_version":3}"#;
    let record = parse(LineFormat::Json, line);
    assert_eq!((record.flags, record.dropped_attributes_count), (0, 0));
    let expected = json!({ "flags": -1, "dropped_attributes_count": "2", "scope_version": 3 });
    assert_eq!(super::attributes(&record), expected);
}
