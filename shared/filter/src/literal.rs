//! Literals, and the values that they are compared with.

use std::fmt::{self, Display, Write as _};

use bytes::Bytes;
use trestle_model::{etag::format_time, time::Ticks};
use uuid::Uuid;

/// A constant of a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `'text'`
    String(String),
    /// `12`
    Int32(i32),
    /// `12L`
    Int64(i64),
    /// `1.5`; finite.
    Double(f64),
    /// `true`
    Boolean(bool),
    /// `datetime'2026-01-31T08:00:00Z'`
    DateTime(Ticks),
    /// `guid'…'`
    Guid(Uuid),
    /// `X'0aff'`
    Binary(Bytes),
}

/// A value of one of the types of literals, in place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EdmValueRef<'a> {
    /// Edm.String.
    String(&'a str),
    /// Edm.Int32.
    Int32(i32),
    /// Edm.Int64.
    Int64(i64),
    /// Edm.Double.
    Double(f64),
    /// Edm.Boolean.
    Boolean(bool),
    /// Edm.DateTime.
    DateTime(Ticks),
    /// Edm.Guid.
    Guid(Uuid),
    /// Edm.Binary.
    Binary(&'a [u8]),
}

impl Literal {
    /// As a value to compare with.
    #[must_use]
    pub fn as_value(&self) -> EdmValueRef<'_> {
        match self {
            Self::String(text) => EdmValueRef::String(text),
            Self::Int32(number) => EdmValueRef::Int32(*number),
            Self::Int64(number) => EdmValueRef::Int64(*number),
            Self::Double(number) => EdmValueRef::Double(*number),
            Self::Boolean(truth) => EdmValueRef::Boolean(*truth),
            Self::DateTime(ticks) => EdmValueRef::DateTime(*ticks),
            Self::Guid(guid) => EdmValueRef::Guid(*guid),
            Self::Binary(bytes) => EdmValueRef::Binary(bytes),
        }
    }
}

/// Canonical text.
impl Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Self::Int32(number) => number.fmt(f),
            Self::Int64(number) => write!(f, "{number}L"),
            // The debug form always has a dot or an exponent, so it reads back as a double.
            Self::Double(number) => write!(f, "{number:?}"),
            Self::Boolean(truth) => truth.fmt(f),
            Self::DateTime(ticks) => write!(f, "datetime'{}'", format_time(*ticks)),
            Self::Guid(guid) => write!(f, "guid'{}'", guid.hyphenated()),
            Self::Binary(bytes) => {
                f.write_str("X'")?;
                for byte in bytes {
                    write!(f, "{byte:02x}")?;
                }
                f.write_char('\'')
            }
        }
    }
}
