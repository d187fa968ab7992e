//! The stored form of an entity: a fixed header, then the entity exactly as on the wire.
//!
//! ```text
//! format (1 byte) = 1 | time of the write, ticks (8 bytes, big-endian) | trestle.table.v1.Entity
//! ```
//!
//! The message is canonical: fields in the order of their numbers, defaults left out, properties
//! in ordinal order of their names, no unknown field. The body (fields 1 to 3) is made by the
//! request task; the timestamp and the etag (4 and 5) are appended in the commit, which
//! assigns them. A read is then a slice, and a filter walks the bytes and reads only what it names.
//!
//! Reading never panics, for any bytes; what cannot be decoded is a [`CorruptRecord`].

mod encode;
mod project;
#[cfg(test)]
mod tests;
mod view;
mod wire;

use bytes::Bytes;
use trestle_kv::order::compare_text;
use trestle_model::time::Ticks;

use crate::{
    corrupt::CorruptRecord,
    entity::{Entity, EntityKey},
    value::Value,
};

pub use encode::{encode_body, seal};
pub use project::Projection;
pub use view::{EntityView, PropertyReader};
pub(crate) use wire::text;

/// The only format so far.
const FORMAT: u8 = 1;
/// Bytes before the message.
const HEADER_BYTES: usize = 9;

/// When a stored entity was written.
///
/// # Errors
/// An invalid header.
pub fn written_at(stored: &[u8]) -> Result<Ticks, CorruptRecord> {
    let (format, rest) = stored.split_first().ok_or(CorruptRecord("no header"))?;
    if *format != FORMAT {
        return Err(CorruptRecord("unknown format"));
    }
    let ticks = rest.first_chunk::<8>().ok_or(CorruptRecord("short header"))?;
    Ticks::new(u64::from_be_bytes(*ticks)).ok_or(CorruptRecord("time of the write is out of range"))
}

/// The encoded message of a stored entity: what a read returns.
///
/// # Errors
/// An invalid header. The message itself is not checked.
pub fn wire(stored: &Bytes) -> Result<Bytes, CorruptRecord> {
    written_at(stored)?;
    Ok(stored.slice(HEADER_BYTES..))
}

/// Decodes a stored entity. Binary values share the memory of `stored`.
///
/// # Errors
/// When anything in it cannot be read, or a property is out of order.
pub fn decode(stored: &Bytes) -> Result<Entity, CorruptRecord> {
    let wire = wire(stored)?;
    let view = EntityView::new(&wire);
    let (partition_key, row_key) = view.key()?;
    let key = EntityKey { partition_key: partition_key.to_owned(), row_key: row_key.to_owned() };
    let mut properties: Vec<(String, Value)> = Vec::new();
    for property in view.properties() {
        let (name, value) = property?;
        let last = properties.last().map(|(last, _)| last.as_str());
        if last.is_some_and(|last| compare_text(last, name).is_ge()) {
            return Err(CorruptRecord("properties are out of order"));
        }
        properties.push((name.to_owned(), view::to_value(value, &wire)));
    }
    view.timestamp()?;
    Ok(Entity { key, properties })
}
