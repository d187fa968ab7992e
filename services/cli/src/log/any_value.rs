//! Values of attributes and bodies, as JSON and as text.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use trestle_proto::opentelemetry::proto::common::v1::{
    AnyValue, ArrayValue, KeyValue, KeyValueList, any_value::Value as Kind,
};

/// The value of a text.
pub(super) fn of_text(text: impl Into<String>) -> AnyValue {
    AnyValue { value: Some(Kind::StringValue(text.into())) }
}

/// The value of a JSON value; null is an empty value.
pub(super) fn of_json(value: Value) -> AnyValue {
    let kind = match value {
        Value::Null => return AnyValue { value: None },
        Value::Bool(truth) => Kind::BoolValue(truth),
        Value::String(text) => Kind::StringValue(text),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Kind::IntValue(whole),
            None => Kind::DoubleValue(number.as_f64().unwrap_or_default()),
        },
        Value::Array(values) => {
            Kind::ArrayValue(ArrayValue { values: values.into_iter().map(of_json).collect() })
        }
        Value::Object(fields) => Kind::KvlistValue(KeyValueList {
            values: fields.into_iter().map(|(key, value)| pair(key, of_json(value))).collect(),
        }),
    };
    AnyValue { value: Some(kind) }
}

/// An entry of a list of attributes.
pub(super) fn pair(key: String, value: AnyValue) -> KeyValue {
    KeyValue { key, value: Some(value) }
}

/// The value as JSON; bytes are base64.
pub(super) fn json(value: &AnyValue) -> Value {
    match &value.value {
        None => Value::Null,
        Some(Kind::StringValue(text)) => json!(text),
        Some(Kind::BoolValue(truth)) => json!(truth),
        Some(Kind::IntValue(number)) => json!(number),
        Some(Kind::DoubleValue(number)) if number.is_finite() => json!(number),
        // JSON has no such number.
        Some(Kind::DoubleValue(number)) => json!(number.to_string()),
        Some(Kind::BytesValue(bytes)) => json!(STANDARD.encode(bytes)),
        Some(Kind::ArrayValue(array)) => array.values.iter().map(json).collect(),
        Some(Kind::KvlistValue(list)) => {
            let entry = |entry: &KeyValue| {
                let value = entry.value.as_ref().map_or(Value::Null, json);
                (entry.key.clone(), value)
            };
            Value::Object(list.values.iter().map(entry).collect::<Map<_, _>>())
        }
    }
}

/// The value in one line: text as it is, others as JSON.
pub(super) fn text(value: &AnyValue) -> String {
    match json(value) {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_back_unchanged() {
        let value = json!({ "a": [1, -2.5, "x", true, null], "b": { "c": i64::MIN } });
        assert_eq!(json(&of_json(value.clone())), value);
        assert_eq!(text(&of_json(json!([1, "a"]))), "[1,\"a\"]");
        assert_eq!(text(&of_text("a b")), "a b");
        assert_eq!(text(&of_json(Value::Null)), "");
    }

    #[test]
    fn what_json_lacks_is_text() {
        let of = |kind| json(&AnyValue { value: Some(kind) });
        assert_eq!(of(Kind::BytesValue(vec![0, 255].into())), json!("AP8="));
        assert_eq!(of(Kind::DoubleValue(f64::NAN)), json!("NaN"));
    }
}
