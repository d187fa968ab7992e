//! Export requests of OpenTelemetry in JSON.

use std::sync::Arc;

use prost::Message as _;
use serde::{Deserialize, de::IgnoredAny};
use trestle_proto::{
    log::v1::{Record, wire::ExportLogsServiceRequest},
    opentelemetry::proto::{
        common::v1::{AnyValue, KeyValue},
        logs::v1::{LogRecord, ResourceLogs},
    },
};
use trestle_rpc::otlp_json::{OtlpJsonError, OtlpRequest, to_protobuf};

use super::{RecordOrigin, UTF_8, fields, malformed};

const EXPECTED: &str = "an export request of OpenTelemetry";
/// Most bytes of the message of a line: numbers of JSON become up to four times as large.
const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A record and its origin.
type OtlpRecord = (Record, Option<Arc<RecordOrigin>>);

/// A line that has log records, if only none.
#[derive(Deserialize)]
struct LogsLine {
    #[serde(rename = "resourceLogs", alias = "resource_logs")]
    _resources: IgnoredAny,
}

/// The records of a line.
pub(super) fn parse(line: &[u8]) -> Result<Vec<OtlpRecord>, String> {
    let text = str::from_utf8(line).map_err(|_| UTF_8.to_owned())?;
    let message = to_protobuf(OtlpRequest::Logs, text, MESSAGE_BYTES_MAX);
    let message = message.map_err(|error| match error {
        OtlpJsonError::Malformed(error) => malformed(EXPECTED, line, &error),
        OtlpJsonError::TooLarge => {
            format!("must have at most {MESSAGE_BYTES_MAX} bytes as a message")
        }
    })?;
    if message.is_empty() {
        // Other requests are files of the same collector.
        let found = serde_json::from_str::<LogsLine>(text);
        found.map_err(|error| malformed(EXPECTED, line, &error))?;
    }
    let undecodable = |error| format!("must be {EXPECTED}: {error}");
    let request = ExportLogsServiceRequest::decode(message.as_slice()).map_err(undecodable)?;
    let mut records = Vec::new();
    for resource in request.resource_logs {
        let ResourceLogs { resource, scope_logs, .. } =
            ResourceLogs::decode(resource).map_err(undecodable)?;
        let resource: Vec<_> = pairs(resource.unwrap_or_default().attributes).collect();
        for of_scope in scope_logs {
            let (resource, scope) = (resource.clone(), of_scope.scope);
            let origin = Arc::new(RecordOrigin { resource, scope });
            let of_origin = |record| (of(record), Some(Arc::clone(&origin)));
            records.extend(of_scope.log_records.into_iter().map(of_origin));
        }
    }
    Ok(records)
}

/// A record; an invalid id is as good as none.
fn of(log: LogRecord) -> Record {
    Record {
        time_unix_nano: log.time_unix_nano,
        observed_time_unix_nano: log.observed_time_unix_nano,
        severity_number: log.severity_number,
        trace_id: fields::valid_id(log.trace_id, fields::TRACE_BYTES),
        span_id: fields::valid_id(log.span_id, fields::SPAN_BYTES),
        severity_text: log.severity_text,
        body: log.body,
        attributes: pairs(log.attributes).collect(),
        dropped_attributes_count: log.dropped_attributes_count,
        flags: log.flags,
        event_name: log.event_name,
        ..Record::default()
    }
}

fn pairs(pairs: Vec<KeyValue>) -> impl Iterator<Item = (String, AnyValue)> {
    pairs.into_iter().map(|KeyValue { key, value }| (key, value.unwrap_or_default()))
}
