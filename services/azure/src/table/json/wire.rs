//! Encoded entities, as in the responses of the table service, read in place.
//!
//! Fields may have any order, and those of a later contract are ignored.

use tonic::Status;
use trestle_model::fault::{Fault, Reason};
use trestle_proto::wire::{FieldValue, MalformedMessage, MessageReader};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use crate::error::RestError;

/// A malformed entity in a response of the table service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the table service answered with an entity that cannot be read")]
pub(crate) struct Unreadable;

impl From<MalformedMessage> for Unreadable {
    fn from(_: MalformedMessage) -> Self {
        Self
    }
}

impl From<Unreadable> for Status {
    fn from(unreadable: Unreadable) -> Self {
        Fault::new(Reason::InternalError, unreadable.to_string()).into_status(DOMAIN)
    }
}

impl From<Unreadable> for RestError {
    fn from(unreadable: Unreadable) -> Self {
        Status::from(unreadable).into()
    }
}

/// The system properties of an entity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct System<'a> {
    pub(super) partition_key: &'a str,
    pub(super) row_key: &'a str,
    /// Seconds since 1970 and nanoseconds.
    pub(super) timestamp: (i64, i32),
    pub(super) etag: &'a str,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum WireValue<'a> {
    String(&'a str),
    Int32(i32),
    Int64(i64),
    Double(f64),
    Boolean(bool),
    /// Seconds since 1970 and nanoseconds.
    DateTime(i64, i32),
    Guid(&'a str),
    Binary(&'a [u8]),
}

/// Field numbers of `trestle.table.v1.Entity`.
mod entity {
    pub(super) const PARTITION_KEY: u32 = 1;
    pub(super) const ROW_KEY: u32 = 2;
    pub(super) const PROPERTY: u32 = 3;
    pub(super) const TIMESTAMP: u32 = 4;
    pub(super) const ETAG: u32 = 5;
}

/// Field numbers of `Property`.
mod property {
    pub(super) const NAME: u32 = 1;
    pub(super) const VALUE: u32 = 2;
}

/// Reads every field that is not a property.
pub(super) fn system(encoded: &[u8]) -> Result<System<'_>, Unreadable> {
    let mut system = System::default();
    for field in MessageReader::new(encoded).fields() {
        match field? {
            (entity::PARTITION_KEY, FieldValue::Bytes(bytes)) => {
                system.partition_key = text(bytes)?;
            }
            (entity::ROW_KEY, FieldValue::Bytes(bytes)) => system.row_key = text(bytes)?,
            (entity::TIMESTAMP, FieldValue::Bytes(bytes)) => system.timestamp = time(bytes)?,
            (entity::ETAG, FieldValue::Bytes(bytes)) => system.etag = text(bytes)?,
            _ => {}
        }
    }
    Ok(system)
}

/// The properties that have a value, in their order.
pub(super) fn properties(
    encoded: &[u8],
) -> impl Iterator<Item = Result<(&str, WireValue<'_>), Unreadable>> {
    MessageReader::new(encoded).fields().filter_map(|field| match field {
        Ok((entity::PROPERTY, FieldValue::Bytes(bytes))) => named(bytes).transpose(),
        Ok(_) => None,
        Err(malformed) => Some(Err(malformed.into())),
    })
}

fn named(encoded: &[u8]) -> Result<Option<(&str, WireValue<'_>)>, Unreadable> {
    let (mut name, mut found) = ("", None);
    for field in MessageReader::new(encoded).fields() {
        match field? {
            (property::NAME, FieldValue::Bytes(bytes)) => name = text(bytes)?,
            (property::VALUE, FieldValue::Bytes(bytes)) => found = value(bytes)?,
            _ => {}
        }
    }
    Ok(found.map(|value| (name, value)))
}

fn value(encoded: &[u8]) -> Result<Option<WireValue<'_>>, Unreadable> {
    let mut value = None;
    for field in MessageReader::new(encoded).fields() {
        value = match field? {
            (1, FieldValue::Bytes(bytes)) => Some(WireValue::String(text(bytes)?)),
            (2, FieldValue::Varint(number)) => Some(WireValue::Int32(int32(number))),
            (3, FieldValue::Varint(number)) => Some(WireValue::Int64(number.cast_signed())),
            (4, FieldValue::Fixed64(bits)) => Some(WireValue::Double(f64::from_bits(bits))),
            (5, FieldValue::Varint(number)) => Some(WireValue::Boolean(number != 0)),
            (6, FieldValue::Bytes(bytes)) => {
                let (seconds, nanos) = time(bytes)?;
                Some(WireValue::DateTime(seconds, nanos))
            }
            (7, FieldValue::Bytes(bytes)) => Some(WireValue::Guid(text(bytes)?)),
            (8, FieldValue::Bytes(bytes)) => Some(WireValue::Binary(bytes)),
            _ => value,
        };
    }
    Ok(value)
}

fn time(encoded: &[u8]) -> Result<(i64, i32), Unreadable> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in MessageReader::new(encoded).fields() {
        match field? {
            (1, FieldValue::Varint(number)) => seconds = number.cast_signed(),
            (2, FieldValue::Varint(number)) => nanos = int32(number),
            _ => {}
        }
    }
    Ok((seconds, nanos))
}

/// An int32 on the wire is its 64-bit form, sign extended.
#[expect(clippy::cast_possible_truncation, reason = "as protobuf defines: the low 32 bits")]
fn int32(number: u64) -> i32 {
    number as i32
}

fn text(bytes: &[u8]) -> Result<&str, Unreadable> {
    str::from_utf8(bytes).map_err(|_| Unreadable)
}
