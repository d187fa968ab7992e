//! The rules on a record, and the error of one that breaks them.

use trestle_model::fault::{Fault, Reason};
use trestle_proto::wire::MalformedMessage;

/// Most bytes of an encoded record.
pub(crate) const RECORD_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of an encoded resource or scope. Each record is read with both.
pub(crate) const ORIGIN_BYTES_MAX: usize = 64 * 1024;
/// Most attributes of a record, a resource and a scope.
pub(crate) const ATTRIBUTES_MAX: usize = 256;
/// Longest key of an attribute, in bytes.
pub(crate) const ATTRIBUTE_KEY_BYTES_MAX: usize = 256;
/// How deep values are nested at most: a number has depth 1, a list of numbers 2.
pub(crate) const VALUE_DEPTH_MAX: usize = 16;
/// Bytes of a record in a batch, and of a group, beside its content, at most.
pub(super) const FRAME_BYTES_MAX: usize = 16;
/// Bytes of an id of a trace.
pub(super) const TRACE_ID_BYTES: usize = 16;
/// Bytes of an id of a span.
pub(super) const SPAN_ID_BYTES: usize = 8;
/// Most days (UTC) of the records of a batch: each is a segment of its own, and all are published at once.
pub(crate) const DAYS_MAX: usize = 1_000;
/// How far the clock of a source may be ahead, in nanoseconds.
const AHEAD_NANOS_MAX: u64 = 24 * 60 * 60 * 1_000_000_000;

/// The times that records may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordTimes {
    /// When the request was received, in nanoseconds since 1970.
    pub(crate) received: u64,
    /// The same by the clock that is ahead.
    pub(crate) latest: u64,
    /// The oldest time that the retention of the stream keeps; 0 without a retention.
    pub(crate) oldest: u64,
}

/// A rule that a record violates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub(crate) struct RecordError {
    /// `InvalidRecord`, `RecordTooLarge` or `RecordTimeOutOfRange`.
    pub(crate) reason: Reason,
    /// The path of the field, such as `attributes[3].key`.
    pub(crate) field: String,
    /// The rule, and the value that breaks it.
    pub(crate) rule: String,
}

impl RecordError {
    /// A violation of the rules on content.
    pub(crate) fn invalid(field: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { reason: Reason::InvalidRecord, field: field.into(), rule: rule.into() }
    }

    /// A field whose encoding is malformed.
    pub(crate) fn malformed(field: &str, error: MalformedMessage) -> Self {
        Self::invalid(field, error.to_string())
    }

    /// The error with its field as one of `parent`.
    #[must_use]
    pub(crate) fn within(self, parent: &str) -> Self {
        let field = match self.field.is_empty() {
            true => parent.to_owned(),
            false => format!("{parent}.{}", self.field),
        };
        Self { field, ..self }
    }
}

impl From<RecordError> for Fault {
    fn from(error: RecordError) -> Self {
        Self::violation(error.reason, error.field, error.rule)
    }
}

impl RecordTimes {
    /// The effective time of a record: its time, or else when it was observed, or else when it was received.
    ///
    /// # Errors
    /// A time that is out of range.
    pub(super) fn effective(self, time: u64, observed: u64) -> Result<u64, RecordError> {
        let (field, effective) = match (time, observed) {
            (0, 0) => ("time_unix_nano", self.received),
            (0, observed) => ("observed_time_unix_nano", observed),
            (time, _) => ("time_unix_nano", time),
        };
        let newest = self.latest.saturating_add(AHEAD_NANOS_MAX);
        let oldest = self.oldest.max(1);
        if (oldest..=newest).contains(&effective) {
            return Ok(effective);
        }
        Err(RecordError {
            reason: Reason::RecordTimeOutOfRange,
            field: field.to_owned(),
            rule: format!("is out of range: time=`{effective}`, range=`{oldest}` to `{newest}`"),
        })
    }
}
