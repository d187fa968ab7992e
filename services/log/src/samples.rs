//! Records of tests.

use std::collections::BTreeMap;

use proptest::{collection, option, prelude::*};
use prost::Message as _;
use trestle_proto::{
    log::v1::{AppendRecordsRequest, Record},
    opentelemetry::proto::common::v1::{
        AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value::Value,
    },
};

/// When requests of tests are received: 2026-11-25T10:00:00Z.
pub(crate) const NOW: u64 = 1_795_600_800_000_000_000;

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c.]{1,2}",
        1 => Just("$bytes".to_owned()),
        1 => Just("$double".to_owned()),
        1 => "\\$?[\"\\\\\u{0}-\u{20}é\u{1F600}]{1,3}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z ]{0,6}", 1 => "\\PC{0,8}", 1 => "[\u{0}-\u{7f}]{0,8}"]
}

fn double() -> impl Strategy<Value = f64> {
    prop_oneof![
        2 => any::<f64>(),
        1 => any::<u64>().prop_map(f64::from_bits),
        1 => (-4_i8..4).prop_map(f64::from),
        1 => prop_oneof![
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(-0.0),
            Just(f64::from_bits(0x7ff0_dead_0000_0001)),
        ],
    ]
}

/// A value of any kind.
pub(crate) fn any_value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        1 => Just(None),
        3 => text().prop_map(|text| Some(Value::StringValue(text))),
        1 => any::<bool>().prop_map(|value| Some(Value::BoolValue(value))),
        2 => any::<i64>().prop_map(|value| Some(Value::IntValue(value))),
        2 => double().prop_map(|value| Some(Value::DoubleValue(value))),
        1 => collection::vec(any::<u8>(), 0..5)
            .prop_map(|bytes| Some(Value::BytesValue(bytes.into()))),
    ];
    let leaf = leaf.prop_map(|value| AnyValue { value });
    leaf.prop_recursive(3, 16, 4, |inner| {
        let list = collection::vec(inner.clone(), 0..4)
            .prop_map(|values| AnyValue { value: Some(Value::ArrayValue(ArrayValue { values })) });
        let map = collection::btree_map(key(), inner, 0..4).prop_map(|entries| {
            let values = entries.into_iter().map(entry).collect();
            AnyValue { value: Some(Value::KvlistValue(KeyValueList { values })) }
        });
        prop_oneof![list, map]
    })
}

pub(crate) fn entry((key, value): (String, AnyValue)) -> KeyValue {
    KeyValue { key, value: Some(value) }
}

pub(crate) fn attributes() -> impl Strategy<Value = BTreeMap<String, AnyValue>> {
    collection::btree_map(key(), any_value(), 0..5)
}

pub(crate) fn scope() -> impl Strategy<Value = InstrumentationScope> {
    (text(), text(), attributes(), any::<u32>()).prop_map(|(name, version, attributes, dropped)| {
        let attributes = attributes.into_iter().map(entry).collect();
        InstrumentationScope { name, version, attributes, dropped_attributes_count: dropped }
    })
}

fn id<const N: usize>() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(Vec::new()), collection::vec(1_u8..4, N)]
}

/// A record that keeps the rules, with a time around [`NOW`]: of two days.
pub(crate) fn record() -> impl Strategy<Value = Record> {
    let times = (
        prop_oneof![Just(0), NOW - 50_000..NOW, NOW - 40_000_000_000_000..NOW],
        prop_oneof![Just(0), NOW - 50_000..NOW],
    );
    let texts = (0..=24, text(), option::of(any_value()), text());
    let rest = (any::<u32>(), any::<u32>(), id::<16>(), id::<8>(), option::of(double()));
    let point = (prop_oneof![Just(0), any::<u64>()], 0..=2, any::<Option<bool>>(), text());
    let parts = (times, texts, attributes(), rest, point);
    parts.prop_map(|(times, texts, attributes, rest, point)| Record {
        time_unix_nano: times.0,
        observed_time_unix_nano: times.1,
        severity_number: texts.0,
        severity_text: texts.1,
        body: texts.2,
        event_name: texts.3,
        attributes,
        dropped_attributes_count: rest.0,
        flags: rest.1,
        trace_id: rest.2.into(),
        span_id: rest.3.into(),
        value: rest.4,
        start_time_unix_nano: point.0,
        temporality: point.1,
        is_monotonic: point.2,
        unit: point.3,
        ..Record::default()
    })
}

/// An append of records with one origin.
pub(crate) fn append(
    records: &[Record],
    resource: &BTreeMap<String, AnyValue>,
    scope: Option<&InstrumentationScope>,
) -> AppendRecordsRequest {
    let resource = resource.iter().map(|(key, value)| entry((key.clone(), value.clone())));
    AppendRecordsRequest {
        records: records.iter().map(|record| record.encode_to_vec().into()).collect(),
        resource: resource.map(|entry| entry.encode_to_vec().into()).collect(),
        scope: scope.map(|scope| scope.encode_to_vec().into()),
        ..AppendRecordsRequest::default()
    }
}

/// The record that a read returns of one that was appended.
pub(crate) fn returned(
    record: &Record,
    resource: &BTreeMap<String, AnyValue>,
    scope: Option<&InstrumentationScope>,
    sequence: u64,
) -> Record {
    let time = match (record.time_unix_nano, record.observed_time_unix_nano) {
        (0, 0) => NOW,
        (0, observed) => observed,
        (time, _) => time,
    };
    let scope = scope.filter(|scope| scope.encoded_len() > 0).cloned();
    Record { time_unix_nano: time, resource: resource.clone(), scope, sequence, ..record.clone() }
}

/// The bytes of a decoded record, whose attributes are ordered: equal if and only if the records are, NaN included.
pub(crate) fn canonical(record: &[u8]) -> Vec<u8> {
    Record::decode(record).expect("an encoded record").encode_to_vec()
}
