//! Values as JSON, exact in both directions, in the form that segments have.
//!
//! Doubles have a `.` or an exponent, whole numbers have none. What JSON lacks is an object with one member:
//! `{"$bytes":"base64"}`, `{"$double":"NaN"}`. A key that starts with `$` has one more in front.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use trestle_proto::opentelemetry::proto::common::v1::{
    AnyValue, ArrayValue, KeyValue, KeyValueList, any_value::Value as Kind,
};

use super::any_value;

/// The member of an object that is bytes.
const BYTES_KEY: &str = "$bytes";
/// The member of an object that is a double without a form in JSON.
const DOUBLE_KEY: &str = "$double";
/// What precedes a key that starts with it.
const ESCAPE: char = '$';
/// What precedes the bits of a NaN that has some of an application.
const NAN_BITS: &str = "NaN:";

/// The JSON of a value.
pub(super) fn of_value(value: &AnyValue) -> Value {
    match &value.value {
        None => Value::Null,
        Some(Kind::StringValue(text)) => json!(text),
        Some(Kind::BoolValue(truth)) => json!(truth),
        Some(Kind::IntValue(number)) => json!(number),
        Some(Kind::DoubleValue(number)) if number.is_finite() => json!(number),
        Some(Kind::DoubleValue(number)) => json!({ DOUBLE_KEY: text_of(*number) }),
        Some(Kind::BytesValue(bytes)) => json!({ BYTES_KEY: STANDARD.encode(bytes) }),
        Some(Kind::ArrayValue(array)) => array.values.iter().map(of_value).collect(),
        Some(Kind::KvlistValue(list)) => of_pairs(&list.values),
    }
}

/// The object of a list.
pub(super) fn of_pairs(pairs: &[KeyValue]) -> Value {
    let member =
        |pair: &KeyValue| (escaped(&pair.key), pair.value.as_ref().map_or(Value::Null, of_value));
    Value::Object(pairs.iter().map(member).collect::<Map<_, _>>())
}

/// The object of attributes.
pub(super) fn of_attributes(attributes: &BTreeMap<String, AnyValue>) -> Value {
    let members = attributes.iter().map(|(key, value)| (escaped(key), of_value(value)));
    Value::Object(members.collect::<Map<_, _>>())
}

/// The value of JSON.
pub(super) fn value(json: Value) -> AnyValue {
    let kind = match json {
        Value::Array(values) => {
            Kind::ArrayValue(ArrayValue { values: values.into_iter().map(value).collect() })
        }
        Value::Object(object) => special(&object).unwrap_or_else(|| {
            let values = entries(object).map(|(key, value)| any_value::pair(key, value));
            Kind::KvlistValue(KeyValueList { values: values.collect() })
        }),
        plain => return any_value::of_json(plain),
    };
    AnyValue { value: Some(kind) }
}

/// The attributes of an object.
pub(super) fn entries(object: Map<String, Value>) -> impl Iterator<Item = (String, AnyValue)> {
    object.into_iter().map(|(key, json)| (unescaped(key), value(json)))
}

/// What JSON lacks; none for another object.
fn special(object: &Map<String, Value>) -> Option<Kind> {
    let mut members = object.iter();
    let (Some((key, Value::String(text))), None) = (members.next(), members.next()) else {
        return None;
    };
    match key.as_str() {
        BYTES_KEY => Some(Kind::BytesValue(STANDARD.decode(text).ok()?.into())),
        DOUBLE_KEY => Some(Kind::DoubleValue(double_of(text)?)),
        _ => None,
    }
}

fn escaped(key: &str) -> String {
    if key.starts_with(ESCAPE) { format!("{ESCAPE}{key}") } else { key.to_owned() }
}

/// The key of an attribute. One that no escape precedes was not printed here, and stays.
fn unescaped(mut key: String) -> String {
    if key.strip_prefix(ESCAPE).is_some_and(|rest| rest.starts_with(ESCAPE)) {
        key.remove(0);
    }
    key
}

/// The text of a double that JSON lacks.
pub(super) fn text_of(number: f64) -> String {
    match number {
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        nan if nan.to_bits() == f64::NAN.to_bits() => "NaN".to_owned(),
        nan => format!("{NAN_BITS}{:016x}", nan.to_bits()),
    }
}

/// The double of a text.
pub(super) fn double_of(text: &str) -> Option<f64> {
    match text.strip_prefix(NAN_BITS) {
        None => text.parse().ok(),
        Some(bits) => Some(f64::from_bits(u64::from_str_radix(bits, 16).ok()?)),
    }
}

#[cfg(test)]
mod tests;
