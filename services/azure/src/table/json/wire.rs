//! Encoded entities, as in the responses of the table service, read in place.
//!
//! Fields may have any order, and those of a later contract are ignored.

use prost::encoding::{WireType, decode_key, decode_varint};
use tonic::Status;
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::status::{DOMAIN, IntoStatus as _};

use crate::error::RestError;

/// A malformed entity in a response of the table service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the table service answered with an entity that cannot be read")]
pub(crate) struct Unreadable;

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
    for field in WireFields(encoded) {
        match field? {
            (entity::PARTITION_KEY, WireField::Bytes(bytes)) => system.partition_key = text(bytes)?,
            (entity::ROW_KEY, WireField::Bytes(bytes)) => system.row_key = text(bytes)?,
            (entity::TIMESTAMP, WireField::Bytes(bytes)) => system.timestamp = time(bytes)?,
            (entity::ETAG, WireField::Bytes(bytes)) => system.etag = text(bytes)?,
            _ => {}
        }
    }
    Ok(system)
}

/// The properties that have a value, in their order.
pub(super) fn properties(
    encoded: &[u8],
) -> impl Iterator<Item = Result<(&str, WireValue<'_>), Unreadable>> {
    WireFields(encoded).filter_map(|field| match field {
        Ok((entity::PROPERTY, WireField::Bytes(bytes))) => named(bytes).transpose(),
        Ok(_) => None,
        Err(unreadable) => Some(Err(unreadable)),
    })
}

fn named(encoded: &[u8]) -> Result<Option<(&str, WireValue<'_>)>, Unreadable> {
    let (mut name, mut found) = ("", None);
    for field in WireFields(encoded) {
        match field? {
            (property::NAME, WireField::Bytes(bytes)) => name = text(bytes)?,
            (property::VALUE, WireField::Bytes(bytes)) => found = value(bytes)?,
            _ => {}
        }
    }
    Ok(found.map(|value| (name, value)))
}

fn value(encoded: &[u8]) -> Result<Option<WireValue<'_>>, Unreadable> {
    let mut value = None;
    for field in WireFields(encoded) {
        value = match field? {
            (1, WireField::Bytes(bytes)) => Some(WireValue::String(text(bytes)?)),
            (2, WireField::Varint(number)) => Some(WireValue::Int32(int32(number))),
            (3, WireField::Varint(number)) => Some(WireValue::Int64(number.cast_signed())),
            (4, WireField::Fixed(bytes)) => Some(WireValue::Double(f64::from_le_bytes(bytes))),
            (5, WireField::Varint(number)) => Some(WireValue::Boolean(number != 0)),
            (6, WireField::Bytes(bytes)) => {
                let (seconds, nanos) = time(bytes)?;
                Some(WireValue::DateTime(seconds, nanos))
            }
            (7, WireField::Bytes(bytes)) => Some(WireValue::Guid(text(bytes)?)),
            (8, WireField::Bytes(bytes)) => Some(WireValue::Binary(bytes)),
            _ => value,
        };
    }
    Ok(value)
}

fn time(encoded: &[u8]) -> Result<(i64, i32), Unreadable> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in WireFields(encoded) {
        match field? {
            (1, WireField::Varint(number)) => seconds = number.cast_signed(),
            (2, WireField::Varint(number)) => nanos = int32(number),
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

/// A field of a message.
enum WireField<'a> {
    Varint(u64),
    Fixed([u8; 8]),
    Bytes(&'a [u8]),
    /// Of a type that no supported field has.
    Other,
}

/// The fields of a message, one after the other; ends after a malformed one.
struct WireFields<'a>(&'a [u8]);

impl<'a> WireFields<'a> {
    fn field(&mut self) -> Result<(u32, WireField<'a>), Unreadable> {
        let (number, wire_type) = decode_key(&mut self.0).map_err(|_| Unreadable)?;
        let field = match wire_type {
            WireType::Varint => {
                WireField::Varint(decode_varint(&mut self.0).map_err(|_| Unreadable)?)
            }
            WireType::SixtyFourBit => {
                let (bytes, rest) = self.0.split_first_chunk().ok_or(Unreadable)?;
                self.0 = rest;
                WireField::Fixed(*bytes)
            }
            WireType::LengthDelimited => {
                let len = decode_varint(&mut self.0).map_err(|_| Unreadable)?;
                let len = usize::try_from(len).map_err(|_| Unreadable)?;
                let (bytes, rest) = self.0.split_at_checked(len).ok_or(Unreadable)?;
                self.0 = rest;
                WireField::Bytes(bytes)
            }
            WireType::ThirtyTwoBit => {
                let (_, rest) = self.0.split_at_checked(4).ok_or(Unreadable)?;
                self.0 = rest;
                WireField::Other
            }
            WireType::StartGroup | WireType::EndGroup => return Err(Unreadable),
        };
        Ok((number, field))
    }
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<(u32, WireField<'a>), Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}
