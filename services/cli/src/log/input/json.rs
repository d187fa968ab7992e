//! Lines of JSON.

use std::sync::Arc;

use serde_json::{Map, Value};
use trestle_proto::{log::v1::Record, opentelemetry::proto::common::v1::InstrumentationScope};

use super::{RecordOrigin, TimeRules, any_value, fields};

/// The record of a line, and its origin if the line has one.
///
/// A line with an object of attributes is as `trestle log read` prints it: resource and scope are the origin, and the
/// sequence, which the record gets again, is left out.
pub(super) fn parse(
    line: &[u8],
    times: TimeRules,
) -> Result<(Record, Option<Arc<RecordOrigin>>), String> {
    let mut object: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| format!("must be a JSON object: {error}"))?;
    let mut record = Record::default();
    let mut origin = None;
    if let Some(Value::Object(attributes)) = object.get_mut("attributes") {
        for (key, value) in std::mem::take(attributes) {
            record.attributes.insert(key, any_value::of_json(value));
        }
        object.shift_remove("attributes");
        object.shift_remove("sequence");
        origin = take_origin(&mut object);
    }
    if record.value.is_none()
        && (origin.is_some() || object.contains_key("event_name"))
        && let Some(value) = object.get("value").and_then(number)
    {
        record.value = Some(value);
        object.shift_remove("value");
    }
    for (key, value) in object {
        fields::set(&mut record, &key, value, times)?;
    }
    Ok((record, origin.filter(|origin| **origin != RecordOrigin::default())))
}

/// The number in a value. JSON has no infinite ones and no NaN: these are texts.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok().filter(|number: &f64| !number.is_finite()),
        _ => None,
    }
}

fn take_origin(object: &mut Map<String, Value>) -> Option<Arc<RecordOrigin>> {
    let resource = match object.shift_remove("resource") {
        Some(Value::Object(resource)) => resource,
        _ => Map::new(),
    };
    let resource = resource.into_iter().map(|(key, value)| (key, any_value::of_json(value)));
    let scope = match object.shift_remove("scope") {
        Some(Value::String(name)) => Some(InstrumentationScope { name, ..Default::default() }),
        _ => None,
    };
    Some(Arc::new(RecordOrigin { resource: resource.collect(), scope }))
}
