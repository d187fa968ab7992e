//! Lines of JSON whose shape is that of a known program: the journal of systemd, Serilog, and Docker. Their fields have
//! other names than the usual ones; what is not a field of a record is an attribute with its own name.

use serde_json::{Map, Value, map::Entry};
use syslog_loose::decompose_pri;
use trestle_proto::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{AnyValue, ArrayValue, any_value::Value as Kind},
};

use super::{TimeRules, any_value, fields, syslog};

/// The time of an entry of the journal, in microseconds since 1970.
const JOURNAL_TIME: &str = "__REALTIME_TIMESTAMP";
/// The level of an event of Serilog that has none.
const SERILOG_LEVEL: &str = "Information";

/// A program whose lines are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownProgram {
    /// `journalctl -o json`.
    Journal,
    /// The compact log event format (CLEF).
    Serilog,
    /// The log driver `json-file`.
    Docker,
}

impl KnownProgram {
    /// The program that writes lines with these fields; none for another one.
    pub(super) fn of(object: &Map<String, Value>) -> Option<Self> {
        let is_text = |key: &str| object.get(key).is_some_and(Value::is_string);
        let is_stream = object.get("stream").is_some_and(|it| it == "stdout" || it == "stderr");
        match () {
            () if object.contains_key(JOURNAL_TIME) => Some(Self::Journal),
            () if is_text("@t") => Some(Self::Serilog),
            () if is_stream && is_text("log") && is_text("time") => Some(Self::Docker),
            () => None,
        }
    }

    /// Adds the fields of a line to a record, which may have some.
    ///
    /// # Errors
    /// The rule that a field breaks.
    pub(super) fn read(
        self,
        mut object: Map<String, Value>,
        record: &mut Record,
        times: TimeRules,
    ) -> Result<(), String> {
        if self == Self::Serilog {
            prepare_event(&mut object);
        }
        for (key, value) in object {
            match self {
                Self::Journal => set_of_journal(record, key, value)?,
                Self::Serilog => set_of_serilog(record, &key, value, times)?,
                Self::Docker => set_of_docker(record, &key, value, times)?,
            }
        }
        Ok(())
    }
}

fn set_of_journal(record: &mut Record, key: String, value: Value) -> Result<(), String> {
    match key.as_str() {
        JOURNAL_TIME if record.time_unix_nano == 0 => {
            let micros = value.as_u64().or_else(|| value.as_str()?.parse().ok());
            let nanos = micros.and_then(|micros| micros.checked_mul(1000));
            record.time_unix_nano = nanos.ok_or_else(|| {
                format!("{JOURNAL_TIME}: must be microseconds since 1970: value=`{value}`")
            })?;
            return Ok(());
        }
        "MESSAGE" if record.body.is_none() => {
            record.body = journal_value(value);
            return Ok(());
        }
        "PRIORITY" if record.severity_number == 0 && record.severity_text.is_empty() => {
            let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
            let priority = number.and_then(|number| u8::try_from(number).ok());
            if let Some(priority @ 0..8) = priority {
                syslog::set_severity(record, decompose_pri(priority).1);
                return Ok(());
            }
        }
        _ => {}
    }
    if let Some(value) = journal_value(value) {
        record.attributes.insert(key, value);
    }
    Ok(())
}

/// A value of the journal: a text, a list of bytes where it is none, a list of both where a field is there more than
/// once, and null for one that is too large.
fn journal_value(value: Value) -> Option<AnyValue> {
    let Value::Array(values) = value else {
        return (!value.is_null()).then(|| any_value::of_json(value));
    };
    let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
    let bytes: Option<Vec<u8>> = values.iter().map(byte).collect();
    let kind = match bytes.filter(|bytes| !bytes.is_empty()) {
        Some(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Kind::StringValue(text),
            Err(error) => Kind::BytesValue(error.into_bytes().into()),
        },
        None => {
            let values = values.into_iter().map(|value| journal_value(value).unwrap_or_default());
            Kind::ArrayValue(ArrayValue { values: values.collect() })
        }
    };
    Some(AnyValue { value: Some(kind) })
}

/// Adds the level that Serilog leaves out. The template is the message where that was not rendered.
fn prepare_event(event: &mut Map<String, Value>) {
    if let Entry::Vacant(level) = event.entry("@l") {
        level.insert(Value::from(SERILOG_LEVEL));
    }
    if !event.contains_key("@m")
        && let Some(template) = event.shift_remove("@mt")
    {
        event.insert("@m".to_owned(), template);
    }
}

fn set_of_serilog(
    record: &mut Record,
    key: &str,
    value: Value,
    times: TimeRules,
) -> Result<(), String> {
    let field = match key {
        "@t" => "time",
        "@m" => "body",
        "@l" => "severity",
        "@tr" => "trace_id",
        "@sp" => "span_id",
        // A property whose own name begins with the sign.
        _ => {
            return set_attribute(
                record,
                key.strip_prefix('@').filter(|key| key.starts_with('@')).unwrap_or(key),
                value,
            );
        }
    };
    fields::set_as(record, (field, key), value, times)
}

fn set_of_docker(
    record: &mut Record,
    key: &str,
    value: Value,
    times: TimeRules,
) -> Result<(), String> {
    match (key, value) {
        ("log", Value::String(line)) => {
            let text = line.strip_suffix('\n').unwrap_or(&line);
            let text = Value::from(text.strip_suffix('\r').unwrap_or(text));
            fields::set_as(record, ("body", key), text, times)
        }
        ("time", value) => fields::set(record, key, value, times),
        (_, value) => set_attribute(record, key, value),
    }
}

fn set_attribute(record: &mut Record, key: &str, value: Value) -> Result<(), String> {
    if !value.is_null() {
        record.attributes.insert(key.to_owned(), any_value::of_json(value));
    }
    Ok(())
}
