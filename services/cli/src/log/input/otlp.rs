//! Export requests of OpenTelemetry in JSON.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use trestle_proto::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{
        AnyValue, ArrayValue, InstrumentationScope, KeyValueList, any_value::Value as Kind,
    },
};

use super::{RecordOrigin, fields, malformed};
use crate::log::any_value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogsJson {
    resource_logs: Vec<ResourceLogsJson>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ResourceLogsJson {
    resource: AttributesJson,
    scope_logs: Vec<ScopeLogsJson>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct AttributesJson {
    attributes: Vec<KeyValueJson>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ScopeLogsJson {
    scope: Option<ScopeJson>,
    log_records: Vec<LogRecordJson>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ScopeJson {
    name: String,
    version: String,
    attributes: Vec<KeyValueJson>,
    dropped_attributes_count: u32,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LogRecordJson {
    #[serde(deserialize_with = "number")]
    time_unix_nano: u64,
    #[serde(deserialize_with = "number")]
    observed_time_unix_nano: u64,
    severity_number: i32,
    severity_text: String,
    body: Option<AnyValueJson>,
    attributes: Vec<KeyValueJson>,
    dropped_attributes_count: u32,
    flags: u32,
    trace_id: String,
    span_id: String,
    event_name: String,
}

#[derive(Deserialize)]
struct KeyValueJson {
    key: String,
    #[serde(default)]
    value: Option<AnyValueJson>,
}

/// One of the fields.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AnyValueJson {
    string_value: Option<String>,
    bool_value: Option<bool>,
    int_value: Option<Value>,
    double_value: Option<Value>,
    bytes_value: Option<String>,
    array_value: Option<ArrayJson>,
    kvlist_value: Option<KvlistJson>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ArrayJson {
    values: Vec<AnyValueJson>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KvlistJson {
    values: Vec<KeyValueJson>,
}

/// A number of 64 bits, which JSON has as text too.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.ok_or_else(|| serde::de::Error::custom("must be nanoseconds since 1970"))
}

/// A record and its origin.
type OtlpRecord = (Record, Option<Arc<RecordOrigin>>);

/// The records of a line.
pub(super) fn parse(line: &[u8]) -> Result<Vec<OtlpRecord>, String> {
    let logs: LogsJson = serde_json::from_slice(line)
        .map_err(|error| malformed("an export request of OpenTelemetry", line, &error))?;
    let mut records = Vec::new();
    for of_resource in logs.resource_logs {
        let resource = pairs(of_resource.resource.attributes)?;
        for of_scope in of_resource.scope_logs {
            let scope = of_scope.scope.map(scope).transpose()?;
            let origin = Arc::new(RecordOrigin { resource: resource.clone(), scope });
            for record in of_scope.log_records {
                records.push((of(record)?, Some(Arc::clone(&origin))));
            }
        }
    }
    Ok(records)
}

fn of(json: LogRecordJson) -> Result<Record, String> {
    let id = |text: &str, bytes| match text {
        "" => Ok(bytes::Bytes::new()),
        _ => fields::id(text, bytes).ok_or_else(|| {
            format!("must be {} hexadecimal digits, not all zero: id=`{text}`", 2 * bytes)
        }),
    };
    Ok(Record {
        time_unix_nano: json.time_unix_nano,
        observed_time_unix_nano: json.observed_time_unix_nano,
        severity_number: json.severity_number,
        trace_id: id(&json.trace_id, 16)?,
        span_id: id(&json.span_id, 8)?,
        severity_text: json.severity_text,
        body: json.body.map(value).transpose()?,
        attributes: pairs(json.attributes)?.into_iter().collect(),
        dropped_attributes_count: json.dropped_attributes_count,
        flags: json.flags,
        event_name: json.event_name,
        ..Record::default()
    })
}

fn scope(json: ScopeJson) -> Result<InstrumentationScope, String> {
    let attributes = pairs(json.attributes)?.into_iter();
    let attributes = attributes.map(|(key, value)| any_value::pair(key, value)).collect();
    let ScopeJson { name, version, dropped_attributes_count, .. } = json;
    Ok(InstrumentationScope { name, version, attributes, dropped_attributes_count })
}

fn pairs(pairs: Vec<KeyValueJson>) -> Result<Vec<(String, AnyValue)>, String> {
    let pairs =
        pairs.into_iter().map(|pair| Ok((pair.key, value(pair.value.unwrap_or_default())?)));
    pairs.collect()
}

fn value(json: AnyValueJson) -> Result<AnyValue, String> {
    let kind = if let Some(text) = json.string_value {
        Kind::StringValue(text)
    } else if let Some(truth) = json.bool_value {
        Kind::BoolValue(truth)
    } else if let Some(number) = json.int_value {
        let whole = number.as_i64().or_else(|| number.as_str()?.parse().ok());
        Kind::IntValue(whole.ok_or_else(|| format!("must be a whole number: intValue=`{number}`"))?)
    } else if let Some(number) = json.double_value {
        let double = number.as_f64().or_else(|| number.as_str()?.parse().ok());
        Kind::DoubleValue(
            double.ok_or_else(|| format!("must be a number: doubleValue=`{number}`"))?,
        )
    } else if let Some(bytes) = json.bytes_value {
        let bytes = STANDARD.decode(bytes).map_err(|error| format!("bytesValue: {error}"))?;
        Kind::BytesValue(bytes.into())
    } else if let Some(array) = json.array_value {
        let values: Result<_, String> = array.values.into_iter().map(value).collect();
        Kind::ArrayValue(ArrayValue { values: values? })
    } else if let Some(list) = json.kvlist_value {
        let pairs = pairs(list.values)?.into_iter();
        let values = pairs.map(|(key, value)| any_value::pair(key, value)).collect();
        Kind::KvlistValue(KeyValueList { values })
    } else {
        return Ok(AnyValue { value: None });
    };
    Ok(AnyValue { value: Some(kind) })
}
