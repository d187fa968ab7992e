//! The stored form of an entity: a fixed header, then the entity exactly as it travels.
//!
//! ```text
//! format (1 byte) = 1 | time of the write, ticks (8 bytes, big-endian) | trestle.table.v1.Entity
//! ```
//!
//! The message is canonical: fields in the order of their numbers, defaults left out, properties
//! in ordinal order of their names, nothing unknown. The body (fields 1 to 3) is made by the
//! request task; the timestamp and the etag (4 and 5) are appended when the time of the write is
//! known. A read is then a slice, and a filter walks the bytes and reads only what it names.
//!
//! Reading never panics, whatever the bytes; what cannot be read is [`Corrupt`].

mod encode;
mod project;
#[cfg(test)]
mod tests;
mod view;
mod wire;

use bytes::Bytes;
use trestle_kv::order::compare_text;
use trestle_service::clock::Ticks;

use crate::{
    entity::{Entity, EntityKey},
    value::Value,
};

pub use encode::{encode_body, seal};
pub use project::Projection;
pub use view::{EntityView, Properties, ValueRef};
pub(crate) use wire::text;

/// The only format so far.
const FORMAT: u8 = 1;
/// Bytes before the message.
const HEADER_BYTES: usize = 9;

/// A stored entity that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stored entity is not readable: {0}")]
pub struct Corrupt(pub &'static str);

/// When a stored entity was written.
///
/// # Errors
/// When the header is not one of ours.
pub fn written_at(stored: &[u8]) -> Result<Ticks, Corrupt> {
    let (format, rest) = stored.split_first().ok_or(Corrupt("no header"))?;
    if *format != FORMAT {
        return Err(Corrupt("unknown format"));
    }
    let ticks = rest.first_chunk::<8>().ok_or(Corrupt("short header"))?;
    Ticks::new(u64::from_be_bytes(*ticks)).ok_or(Corrupt("time of the write is out of range"))
}

/// The encoded message of a stored entity: what a read answers.
///
/// # Errors
/// When the header is not one of ours. The message itself is not looked at.
pub fn wire(stored: &Bytes) -> Result<Bytes, Corrupt> {
    written_at(stored)?;
    Ok(stored.slice(HEADER_BYTES..))
}

/// Decodes a stored entity. Binary values share the memory of `stored`.
///
/// # Errors
/// When anything in it cannot be read, or a property is out of order.
pub fn decode(stored: &Bytes) -> Result<Entity, Corrupt> {
    let wire = wire(stored)?;
    let view = EntityView::new(&wire);
    let (partition_key, row_key) = view.key()?;
    let key = EntityKey { partition_key: partition_key.to_owned(), row_key: row_key.to_owned() };
    let mut properties: Vec<(String, Value)> = Vec::new();
    for property in view.properties() {
        let (name, value) = property?;
        let last = properties.last().map(|(last, _)| last.as_str());
        if last.is_some_and(|last| compare_text(last, name).is_ge()) {
            return Err(Corrupt("properties are out of order"));
        }
        properties.push((name.to_owned(), value.to_value(&wire)));
    }
    view.timestamp()?;
    Ok(Entity { key, properties })
}
