//! Typed property values: the eight types of the Azure table model, validated once.
//!
//! A [`Value`] always obeys the limits of its type. Null is not a value: a property without one
//! is not stored. Comparison of values belongs to the query language, see `trestle_filter`.

use std::fmt::Display;

use bytes::Bytes;
use trestle_model::fault::{Reason, Violations, quoted};
use trestle_model::limits;
use trestle_model::time::Ticks;
use trestle_proto::table::v1 as proto;
use uuid::Uuid;

/// Characters of a guid in the form 8-4-4-4-12.
const GUID_CHARS: usize = 36;
/// 1601-01-01T00:00:00Z, the first point in time that Azure accepts, in seconds since 1970.
const FIRST_SECOND: i64 = -11_644_473_600;
const NANOS_PER_SECOND: i32 = 1_000_000_000;
const TICK_NANOS: i32 = 100;

/// A rule is broken; the violations of the request list it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleBroken;

/// The value of a property.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Edm.String; at most 32,768 UTF-16 code units.
    String(String),
    /// Edm.Int32.
    Int32(i32),
    /// Edm.Int64.
    Int64(i64),
    /// Edm.Double; NaN and the infinities are values like others.
    Double(f64),
    /// Edm.Boolean.
    Boolean(bool),
    /// Edm.DateTime; from the year 1601 on.
    DateTime(Ticks),
    /// Edm.Guid.
    Guid(Uuid),
    /// Edm.Binary; at most 65,536 bytes.
    Binary(Bytes),
}

impl Value {
    /// Parses the value of the field at `field`; none for null.
    ///
    /// # Errors
    /// When a rule is broken; `violations` then lists it.
    pub fn parse(
        value: proto::Value,
        field: &dyn Display,
        violations: &mut Violations,
    ) -> Result<Option<Self>, RuleBroken> {
        let Some(kind) = value.kind else {
            return Ok(None);
        };
        match Self::from_kind(kind) {
            Ok(value) => Ok(Some(value)),
            Err((reason, text)) => {
                violations.push(reason, field.to_string(), text);
                Err(RuleBroken)
            }
        }
    }

    fn from_kind(kind: proto::value::Kind) -> Result<Self, (Reason, String)> {
        use proto::value::Kind;
        let value = match kind {
            Kind::StringValue(text) => {
                let (units, max) = (utf16_len(&text), limits::STRING_UTF16_UNITS_MAX);
                if units > max {
                    let rule = "string is larger than 64KB (32K characters)";
                    let text = format!("{rule}: utf16_units=`{units}`, max=`{max}`");
                    return Err((Reason::PropertyValueTooLarge, text));
                }
                Self::String(text)
            }
            Kind::BinaryValue(bytes) => {
                let (len, max) = (bytes.len(), limits::BINARY_BYTES_MAX);
                if len > max {
                    let text = format!("binary is larger than 64KB: bytes=`{len}`, max=`{max}`");
                    return Err((Reason::PropertyValueTooLarge, text));
                }
                Self::Binary(bytes)
            }
            Kind::Int32Value(number) => Self::Int32(number),
            Kind::Int64Value(number) => Self::Int64(number),
            Kind::DoubleValue(number) => Self::Double(number),
            Kind::BooleanValue(truth) => Self::Boolean(truth),
            Kind::DatetimeValue(time) => Self::DateTime(parse_time(time)?),
            Kind::GuidValue(text) => Self::Guid(parse_guid(&text).ok_or_else(|| {
                let rule = "guid is not of the form 8-4-4-4-12 hex digits";
                (Reason::InvalidInput, format!("{rule}: value=`{}`", quoted(&text)))
            })?),
        };
        Ok(value)
    }

    /// Bytes of the value as Azure counts them for the size of an entity.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::String(text) => 4 + 2 * utf16_len(text),
            Self::Binary(bytes) => 4 + bytes.len(),
            Self::DateTime(_) | Self::Int64(_) | Self::Double(_) => 8,
            Self::Guid(_) => 16,
            Self::Int32(_) => 4,
            Self::Boolean(_) => 1,
        }
    }
}

impl From<Value> for proto::Value {
    fn from(value: Value) -> Self {
        use proto::value::Kind;
        let kind = match value {
            Value::String(text) => Kind::StringValue(text),
            Value::Int32(number) => Kind::Int32Value(number),
            Value::Int64(number) => Kind::Int64Value(number),
            Value::Double(number) => Kind::DoubleValue(number),
            Value::Boolean(truth) => Kind::BooleanValue(truth),
            Value::DateTime(ticks) => Kind::DatetimeValue(ticks.into()),
            Value::Guid(guid) => Kind::GuidValue(guid.hyphenated().to_string()),
            Value::Binary(bytes) => Kind::BinaryValue(bytes),
        };
        Self { kind: Some(kind) }
    }
}

/// Bytes of UTF-8 whose units a byte can count: at most two for each.
const UTF16_CHUNK_BYTES: usize = 127;

/// Length of a text in UTF-16 code units, which is how every limit of the data model counts.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    // A character is a unit, and those of four bytes are two. Chunks are short enough to be counted
    // in bytes, and so many bytes at a time: every write counts every text of its entity twice.
    let units = |byte: &u8| u8::from(byte & 0xC0 != 0x80) + u8::from(*byte >= 0xF0);
    let chunks = text.as_bytes().chunks(UTF16_CHUNK_BYTES);
    chunks.map(|chunk| usize::from(chunk.iter().map(units).sum::<u8>())).sum()
}

/// Parses a guid of the form 8-4-4-4-12 hex digits, and no other form.
#[must_use]
pub fn parse_guid(text: &str) -> Option<Uuid> {
    // Of the forms that `uuid` reads only the hyphenated one has this length.
    if text.len() == GUID_CHARS { Uuid::try_parse(text).ok() } else { None }
}

fn parse_time(time: prost_types::Timestamp) -> Result<Ticks, (Reason, String)> {
    let prost_types::Timestamp { seconds, nanos } = time;
    let rejected = |reason, rule| (reason, format!("{rule}: seconds=`{seconds}`, nanos=`{nanos}`"));
    if !(0..NANOS_PER_SECOND).contains(&nanos) {
        let rule = "nanos of a datetime are not from 0 to 999999999";
        return Err(rejected(Reason::InvalidInput, rule));
    }
    // Digits below a tick are cut off, as those of a text: clients send the nanoseconds of their clock.
    let ticks = Ticks::from_unix(seconds, nanos - nanos % TICK_NANOS);
    ticks.filter(|_| seconds >= FIRST_SECOND).ok_or_else(|| {
        rejected(Reason::OutOfRangeInput, "datetime is not in the years 1601 to 9999")
    })
}

#[cfg(test)]
mod tests;
