//! Records, as a line for a person or an object for a program.

use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};
use trestle_command::output::escaped;
use trestle_proto::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{AnyValue, InstrumentationScope},
};

use super::{any_value, exact_json, severity, temporality};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A record as one line: time, severity, body, and the others as `key=value`.
pub(super) fn line(record: &Record) -> String {
    let mut line = time(record.time_unix_nano);
    let severity = match record.severity_text.as_str() {
        "" => severity::name_of(record.severity_number),
        text => text,
    };
    if !severity.is_empty() {
        let _ = write!(line, " {}", escaped(severity));
    }
    let body = record.body.as_ref().map(any_value::text);
    // Both are the name of an event of a span.
    if !record.event_name.is_empty() && body.as_ref() != Some(&record.event_name) {
        let _ = write!(line, " {}", escaped(&record.event_name));
    }
    if let Some(value) = record.value {
        let _ = write!(line, " {value}");
    }
    if let Some(body) = &body {
        let _ = write!(line, " {}", escaped(body));
    }
    for (key, value) in record.attributes.iter().chain(&record.resource) {
        let _ = write!(line, " {}={}", escaped(key), quoted(value));
    }
    for (name, id) in [("trace_id", &record.trace_id), ("span_id", &record.span_id)] {
        if !id.is_empty() {
            let _ = write!(line, " {name}={}", hex(id));
        }
    }
    let mut point = Map::new();
    set_point(&mut point, record);
    for (name, value) in point {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(line, " {name}={}", quoted(&any_value::of_text(value)));
    }
    line
}

/// What gives the value of a data point its meaning.
fn set_point(object: &mut Map<String, Value>, record: &Record) {
    let start = record.start_time_unix_nano;
    let temporality = temporality::name_of(record.temporality);
    let fields = [
        ("start_time", (start > 0).then(|| json!(time(start)))),
        ("temporality", temporality.map(Value::from)),
        ("is_monotonic", record.is_monotonic.map(Value::from)),
        ("unit", (!record.unit.is_empty()).then(|| json!(record.unit))),
    ];
    for (name, value) in fields {
        object.extend(value.map(|value| (name.to_owned(), value)));
    }
}

/// A record as an object, without what it lacks. `trestle log append` reads it.
pub(super) fn object(record: &Record) -> Value {
    let mut object = Map::new();
    let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
    if record.time_unix_nano > 0 {
        set("time", json!(time(record.time_unix_nano)));
    }
    if record.observed_time_unix_nano > 0 {
        set("observed_time", json!(time(record.observed_time_unix_nano)));
    }
    if record.severity_number != 0 {
        set("severity_number", json!(record.severity_number));
    }
    if !record.severity_text.is_empty() {
        set("severity_text", json!(record.severity_text));
    }
    if !record.event_name.is_empty() {
        set("event_name", json!(record.event_name));
    }
    if let Some(value) = record.value {
        // JSON has no such number as NaN.
        set(
            "value",
            if value.is_finite() { json!(value) } else { exact_json::text_of(value).into() },
        );
    }
    set_point(&mut object, record);
    let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
    if let Some(body) = &record.body {
        set("body", exact_json::of_value(body));
    }
    for (name, id) in [("trace_id", &record.trace_id), ("span_id", &record.span_id)] {
        if !id.is_empty() {
            set(name, json!(hex(id)));
        }
    }
    for (name, number) in
        [("flags", record.flags), ("dropped_attributes_count", record.dropped_attributes_count)]
    {
        if number != 0 {
            set(name, json!(number));
        }
    }
    set("attributes", exact_json::of_attributes(&record.attributes));
    if !record.resource.is_empty() {
        set("resource", exact_json::of_attributes(&record.resource));
    }
    if let Some(scope) = &record.scope {
        set_scope(&mut object, scope);
    }
    object.insert("sequence".to_owned(), json!(record.sequence));
    Value::Object(object)
}

/// The fields of a scope that are not empty. `scope` is its name, as in filters.
fn set_scope(object: &mut Map<String, Value>, scope: &InstrumentationScope) {
    let mut set = |name: &str, value: Value| object.insert(name.to_owned(), value);
    for (name, text) in [("scope", &scope.name), ("scope_version", &scope.version)] {
        if !text.is_empty() {
            set(name, json!(text));
        }
    }
    if !scope.attributes.is_empty() {
        set("scope_attributes", exact_json::of_pairs(&scope.attributes));
    }
    if scope.dropped_attributes_count > 0 {
        set("scope_dropped_attributes_count", json!(scope.dropped_attributes_count));
    }
}

/// A time in nanoseconds since 1970, in RFC 3339.
fn time(nanos: u64) -> String {
    let seconds = i64::try_from(nanos / NANOS_PER_SECOND).unwrap_or_default();
    let rest = u32::try_from(nanos % NANOS_PER_SECOND).unwrap_or_default();
    let time = DateTime::from_timestamp(seconds, rest).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// A value, in quotes where its end would be unclear.
fn quoted(value: &AnyValue) -> String {
    let text = any_value::text(value);
    let is_plain = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '"');
    if is_plain { escaped(&text) } else { format!("\"{}\"", escaped(&text).replace('"', "\\\"")) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
