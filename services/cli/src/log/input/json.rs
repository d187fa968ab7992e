//! Lines of JSON.

use std::sync::Arc;

use serde_json::{Map, Value};
use trestle_proto::{log::v1::Record, opentelemetry::proto::common::v1::InstrumentationScope};

use super::{
    FieldNames, RecordOrigin, TimeRules, any_value, fields, known_programs::KnownProgram, malformed,
};
use crate::log::{exact_json, severity, temporality};

/// The record of a line, and its origin if the line has one.
///
/// A line with an object of attributes is as `trestle log read` prints it: resource and scope are the origin, and the
/// sequence, which the record gets again, is left out.
pub(super) fn parse(
    line: &[u8],
    times: TimeRules,
    names: &FieldNames,
) -> Result<(Record, Option<Arc<RecordOrigin>>), String> {
    let mut object: Map<String, Value> =
        serde_json::from_slice(line).map_err(|error| malformed("a JSON object", line, &error))?;
    let mut record = Record::default();
    for (usual, name) in names.given() {
        if let Some(value) = remove_at(&mut object, name) {
            fields::set_as(&mut record, (usual, name), value, times)?;
        }
    }
    if let Some(program) = KnownProgram::of(&object) {
        program.read(object, &mut record, times)?;
        return Ok((record, None));
    }
    let mut origin = None;
    if let Some(attributes) = remove_if(&mut object, "attributes", object_of) {
        record.attributes = exact_json::entries(attributes).collect();
        take_point(&mut object, &mut record, times)?;
        take_printed(&mut object, &mut record);
        origin = Some(Arc::new(take_origin(&mut object)));
    }
    if (origin.is_some() || object.contains_key("event_name"))
        && let Some(value) = remove_if(&mut object, "value", number)
    {
        record.value = Some(value);
    }
    for (key, value) in object {
        fields::set(&mut record, &key, value, times)?;
    }
    Ok((record, origin.filter(|origin| **origin != RecordOrigin::default())))
}

/// Takes out the field with a name. Where none has it, its parts before and after a point name a field of an object in
/// the object, which is not kept where it has nothing else.
fn remove_at(object: &mut Map<String, Value>, name: &str) -> Option<Value> {
    if let Some(value) = object.shift_remove(name) {
        return Some(value);
    }
    let (outer, inner) = name.split_once('.')?;
    let fields = object.get_mut(outer)?.as_object_mut()?;
    let value = remove_at(fields, inner)?;
    if fields.is_empty() {
        object.shift_remove(outer);
    }
    Some(value)
}

/// Takes a field out of an object, if it has the form; any other stays.
fn remove_if<T>(
    object: &mut Map<String, Value>,
    key: &str,
    form: impl FnOnce(&Value) -> Option<T>,
) -> Option<T> {
    let found = object.get(key).and_then(form)?;
    object.shift_remove(key);
    Some(found)
}

/// Takes what gives the value of a data point its meaning, of a record that was printed or has a value.
fn take_point(
    object: &mut Map<String, Value>,
    record: &mut Record,
    times: TimeRules,
) -> Result<(), String> {
    if !object.contains_key("sequence") && object.get("value").and_then(number).is_none() {
        return Ok(());
    }
    if let Some(start) = remove_if(object, "start_time", text_of) {
        record.start_time_unix_nano = times.of_json(&start.into())?;
    }
    let of_name = |value: &Value| temporality::number_of(value.as_str()?);
    record.temporality = remove_if(object, "temporality", of_name).unwrap_or_default();
    record.is_monotonic = remove_if(object, "is_monotonic", Value::as_bool);
    record.unit = remove_if(object, "unit", text_of).unwrap_or_default();
    Ok(())
}

/// Takes the fields that are exact where `trestle log read` printed them, and differ in other lines.
fn take_printed(object: &mut Map<String, Value>, record: &mut Record) {
    record.flags = remove_if(object, "flags", number_of_32_bits).unwrap_or_default();
    let dropped = remove_if(object, "dropped_attributes_count", number_of_32_bits);
    record.dropped_attributes_count = dropped.unwrap_or_default();
    let is_read = remove_if(object, "sequence", Value::as_u64).is_some();
    if record.body.is_none() {
        let body =
            remove_if(object, "body", |body| (is_read || !body.is_null()).then(|| body.clone()));
        record.body = body.map(exact_json::value);
    }
    if record.severity_number != 0 || !record.severity_text.is_empty() {
        return;
    }
    let given = remove_if(object, "severity_number", |value| severity::checked(value.as_i64()?));
    if let Some(text) = remove_if(object, "severity_text", text_of) {
        // A record that was read has no number without one; that of a program may have the text alone.
        let by_name = if is_read { 0 } else { severity::number_of(&text) };
        record.severity_number = given.unwrap_or(by_name);
        record.severity_text = text;
    } else {
        record.severity_number = given.unwrap_or_default();
    }
}

fn take_origin(object: &mut Map<String, Value>) -> RecordOrigin {
    let resource = remove_if(object, "resource", object_of).map(exact_json::entries);
    let attributes = remove_if(object, "scope_attributes", object_of).map(exact_json::entries);
    let attributes = attributes.into_iter().flatten();
    let dropped = remove_if(object, "scope_dropped_attributes_count", number_of_32_bits);
    let scope = InstrumentationScope {
        name: remove_if(object, "scope", text_of).unwrap_or_default(),
        version: remove_if(object, "scope_version", text_of).unwrap_or_default(),
        attributes: attributes.map(|(key, value)| any_value::pair(key, value)).collect(),
        dropped_attributes_count: dropped.unwrap_or_default(),
    };
    let is_absent = scope == InstrumentationScope::default();
    RecordOrigin {
        resource: resource.into_iter().flatten().collect(),
        scope: (!is_absent).then_some(scope),
    }
}

fn object_of(value: &Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

fn text_of(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number_of_32_bits(value: &Value) -> Option<u32> {
    value.as_u64()?.try_into().ok()
}

/// The number in a value. JSON has no infinite ones and no NaN: these are texts.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => exact_json::double_of(text).filter(|number| !number.is_finite()),
        _ => None,
    }
}
