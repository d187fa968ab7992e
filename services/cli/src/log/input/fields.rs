//! The fields of lines by their usual names.

use bytes::Bytes;
use serde_json::Value;
use trestle_proto::log::v1::Record;

use super::TimeRules;
use crate::log::{any_value, severity};

/// Bytes of the ids of traces and spans.
pub(super) const TRACE_BYTES: usize = 16;
pub(super) const SPAN_BYTES: usize = 8;

/// The names of fields that are not among the usual ones. A record has its time, its severity and its body from them
/// first.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldNames {
    pub(crate) time: Option<String>,
    pub(crate) severity: Option<String>,
    pub(crate) body: Option<String>,
}

impl FieldNames {
    /// Each name with the usual one of its field.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Self { time, severity, body } = self;
        let given = [("time", time), ("severity", severity), ("body", body)];
        given.into_iter().filter_map(|(usual, name)| Some((usual, name.as_deref()?)))
    }
}

/// Sets the field that a key names in logs. A field that is set already or has another form is an attribute.
pub(super) fn set(
    record: &mut Record,
    key: &str,
    value: Value,
    times: TimeRules,
) -> Result<(), String> {
    set_as(record, (key, key), value, times)
}

/// Sets the field with the usual name `field` by a value whose key is another one.
pub(super) fn set_as(
    record: &mut Record,
    (field, key): (&str, &str),
    value: Value,
    times: TimeRules,
) -> Result<(), String> {
    match (field, &value) {
        (_, Value::Null) => return Ok(()),
        ("time" | "timestamp" | "ts" | "@timestamp", _) if record.time_unix_nano == 0 => {
            record.time_unix_nano = times.of_json(&value)?;
            return Ok(());
        }
        ("observed_time", Value::String(_)) => {
            record.observed_time_unix_nano = times.of_json(&value)?;
            return Ok(());
        }
        ("severity" | "level" | "lvl" | "severity_text", Value::String(text))
            if record.severity_text.is_empty() =>
        {
            record.severity_text.clone_from(text);
            if record.severity_number == 0 {
                record.severity_number = severity::number_of(text);
            }
            return Ok(());
        }
        ("severity_number", Value::Number(number)) => {
            let number = number.as_i64().and_then(severity::checked);
            if let Some(number) = number {
                record.severity_number = number;
                return Ok(());
            }
        }
        ("severity" | "level" | "lvl", Value::Number(number)) if record.severity_number == 0 => {
            let number = number.as_i64().map_or(0, severity::number_of_level);
            if number > 0 {
                record.severity_number = number;
                return Ok(());
            }
        }
        ("body" | "message" | "msg", _) if record.body.is_none() => {
            record.body = Some(any_value::of_json(value));
            return Ok(());
        }
        ("trace_id" | "traceId" | "trace.id", Value::String(text)) => {
            if let Some(id) = id(text, TRACE_BYTES) {
                record.trace_id = id;
                return Ok(());
            }
        }
        ("span_id" | "spanId" | "span.id", Value::String(text)) => {
            if let Some(id) = id(text, SPAN_BYTES) {
                record.span_id = id;
                return Ok(());
            }
        }
        ("event_name", Value::String(text)) => {
            record.event_name.clone_from(text);
            return Ok(());
        }
        _ => {}
    }
    record.attributes.insert(key.to_owned(), any_value::of_json(value));
    Ok(())
}

/// The bytes of an id in hexadecimal; none if it is another text, or all zero.
pub(super) fn id(text: &str, bytes: usize) -> Option<Bytes> {
    if text.len() != 2 * bytes || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let number = u128::from_str_radix(text, 16).ok().filter(|number| *number != 0)?;
    let all = number.to_be_bytes();
    all.get(all.len() - bytes..).map(Bytes::copy_from_slice)
}

/// An id of this length that is not all zero; no bytes for any other.
pub(super) fn valid_id(id: Bytes, bytes: usize) -> Bytes {
    let is_valid = id.len() == bytes && id.iter().any(|byte| *byte != 0);
    if is_valid { id } else { Bytes::new() }
}
