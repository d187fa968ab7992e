//! Lines of logs, as records.

mod fields;
mod json;
mod known_programs;
mod logfmt;
mod otlp;
mod syslog;
mod text;
mod time;

use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use prost::Message as _;
use serde::Serialize;
use trestle_model::json_error::json_problem;
use trestle_proto::{
    log::v1::Record,
    opentelemetry::proto::common::v1::{AnyValue, InstrumentationScope},
};

pub(super) use fields::FieldNames;
pub(super) use text::{TimestampPattern, timestamp_pattern};
pub(super) use time::TimeRules;

use super::any_value;

/// The rule of every line of text.
const UTF_8: &str = "must be UTF-8";

/// Longest prefix of request ids: with its hash an id has at most 64 bytes.
const PREFIX_BYTES_MAX: usize = 31;

/// The format of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineFormat {
    /// JSON objects
    Json,
    /// Export requests of OpenTelemetry in JSON
    OtlpJson,
    /// Text
    Text,
    /// Syslog of RFC 5424 or RFC 3164
    Syslog,
    /// Pairs of key=value
    Logfmt,
}

/// What emitted a record.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RecordOrigin {
    pub(super) resource: Vec<(String, AnyValue)>,
    pub(super) scope: Option<InstrumentationScope>,
}

impl RecordOrigin {
    /// How many bytes it is encoded.
    pub(super) fn encoded_len(&self) -> usize {
        let pair = |(key, value): &(String, AnyValue)| key.len() + value.encoded_len();
        let scope = self.scope.as_ref().map_or(0, InstrumentationScope::encoded_len);
        self.resource.iter().map(pair).sum::<usize>() + scope
    }

    /// The attributes, encoded.
    pub(super) fn encoded_resource(&self) -> Vec<Bytes> {
        let entries = self.resource.iter().cloned();
        entries.map(|(key, value)| any_value::pair(key, value).encode_to_vec().into()).collect()
    }
}

/// A record and its origin.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ParsedRecord {
    pub(super) record: Record,
    pub(super) origin: Arc<RecordOrigin>,
}

/// Reads lines of one format.
#[derive(Debug, Clone)]
pub(super) struct LineParser {
    pub(super) format: LineFormat,
    /// Of text.
    pub(super) pattern: Option<TimestampPattern>,
    pub(super) times: TimeRules,
    /// Of JSON and logfmt.
    pub(super) names: FieldNames,
    /// Of records whose line has none; its attributes are added to those of others.
    pub(super) origin: Arc<RecordOrigin>,
}

/// The problem of a line that is not the expected JSON.
fn malformed(expected: &str, line: &[u8], error: &serde_json::Error) -> String {
    match str::from_utf8(line) {
        Ok(text) => format!("must be {expected}: {}", json_problem(text, error)),
        Err(_) => UTF_8.to_owned(),
    }
}

impl LineParser {
    /// The records of a line, one but in OTLP.
    ///
    /// # Errors
    /// The rule that the line breaks.
    pub(super) fn parse(&self, line: &[u8]) -> Result<Vec<ParsedRecord>, String> {
        let text = || str::from_utf8(line).map_err(|_| UTF_8.to_owned());
        match self.format {
            LineFormat::Json => {
                let (record, origin) = json::parse(line, self.times, &self.names)?;
                Ok(vec![self.of(record, origin)])
            }
            LineFormat::OtlpJson => {
                let parsed = otlp::parse(line)?.into_iter();
                Ok(parsed.map(|(record, origin)| self.of(record, origin)).collect())
            }
            LineFormat::Text => {
                let record = text::parse(text()?, self.pattern.as_ref(), self.times)?;
                Ok(vec![self.of(record, None)])
            }
            LineFormat::Syslog => Ok(vec![self.of(syslog::parse(text()?, self.times)?, None)]),
            LineFormat::Logfmt => {
                let record = logfmt::parse(text()?, self.times, &self.names)?;
                Ok(vec![self.of(record, None)])
            }
        }
    }

    fn of(&self, record: Record, origin: Option<Arc<RecordOrigin>>) -> ParsedRecord {
        let origin = match origin {
            None => Arc::clone(&self.origin),
            Some(origin) if self.origin.resource.is_empty() => origin,
            Some(origin) => {
                let mut all = (*origin).clone();
                let is_new = |key: &String| all.resource.iter().all(|(own, _)| own != key);
                let added: Vec<_> =
                    self.origin.resource.iter().filter(|(key, _)| is_new(key)).cloned().collect();
                all.resource.extend(added);
                Arc::new(all)
            }
        };
        ParsedRecord { record, origin }
    }
}

/// The encoded records of a line in UTC, for fuzz targets. The command begins at the time in seconds since 1970.
///
/// # Errors
/// The rule that the line breaks.
#[cfg(feature = "testing")]
pub fn records_of_line(
    format: LineFormat,
    pattern: Option<&str>,
    now: i64,
    line: &[u8],
) -> Result<Vec<Vec<u8>>, String> {
    let now = chrono::DateTime::from_timestamp(now, 0).unwrap_or_default();
    let offset = chrono::Offset::fix(&chrono::Utc);
    let pattern = pattern.map(timestamp_pattern).transpose()?;
    let (names, origin) = (FieldNames::default(), Arc::new(RecordOrigin::default()));
    let parser = LineParser { format, pattern, times: TimeRules { offset, now }, names, origin };
    let parsed = parser.parse(line)?;
    Ok(parsed.iter().map(|parsed| parsed.record.encode_to_vec()).collect())
}

/// Reads a prefix of request ids.
pub(super) fn request_id_prefix(text: &str) -> Result<String, String> {
    match text.len() {
        1..=PREFIX_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("must have 1 to {PREFIX_BYTES_MAX} bytes")),
    }
}

#[cfg(test)]
pub(super) mod tests;
