//! Reading parts of an encoded entity in place.

use bytes::Bytes;
use trestle_filter::EdmValueRef;
use trestle_model::time::Ticks;
use trestle_proto::wire::MessageReader;

use super::wire::{entity, property, text, timestamp, value};
use crate::{
    corrupt::CorruptRecord,
    value::{Value, parse_guid},
};

/// An encoded entity, decoded lazily.
#[derive(Debug, Clone, Copy)]
pub struct EntityView<'a> {
    wire: &'a [u8],
}

impl<'a> EntityView<'a> {
    /// Over the encoded message, without the header of the stored form.
    #[must_use]
    pub fn new(wire: &'a [u8]) -> Self {
        Self { wire }
    }

    /// The partition key and the row key.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn key(&self) -> Result<(&'a str, &'a str), CorruptRecord> {
        let (partition_key, row_key, _) = self.open()?;
        Ok((text(partition_key)?, text(row_key)?))
    }

    /// The time of the last write.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn timestamp(&self) -> Result<Ticks, CorruptRecord> {
        let mut properties = self.properties();
        while properties.next_raw()?.is_some() {}
        properties.timestamp()
    }

    /// The properties, in order.
    #[must_use]
    pub fn properties(&self) -> PropertyReader<'a> {
        match self.open() {
            Ok((_, _, properties)) => properties,
            Err(corrupt) => PropertyReader { rest: MessageReader::new(&[]), failed: Some(corrupt) },
        }
    }

    /// The value of one property; none when the entity does not have it.
    ///
    /// # Errors
    /// When the entity cannot be read up to the property.
    pub fn property(&self, name: &str) -> Result<Option<EdmValueRef<'a>>, CorruptRecord> {
        let mut properties = self.properties();
        while let Some(property) = properties.next_raw()? {
            if property.name == name.as_bytes() {
                return property.value().map(Some);
            }
        }
        Ok(None)
    }

    /// The bytes of both keys, and the properties.
    #[inline]
    pub(crate) fn open(&self) -> Result<(&'a [u8], &'a [u8], PropertyReader<'a>), CorruptRecord> {
        let mut reader = MessageReader::new(self.wire);
        let mut key = |tag| {
            if reader.take_tag(tag) { reader.bytes() } else { Ok(&[][..]) }
        };
        let partition_key = key(entity::PARTITION_KEY)?;
        let row_key = key(entity::ROW_KEY)?;
        Ok((partition_key, row_key, PropertyReader { rest: reader, failed: None }))
    }
}

/// A property whose value was not read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawProperty<'a> {
    /// Bytes of the name.
    pub(crate) name: &'a [u8],
    rest: MessageReader<'a>,
}

impl<'a> RawProperty<'a> {
    #[inline]
    pub(crate) fn value(mut self) -> Result<EdmValueRef<'a>, CorruptRecord> {
        if !self.rest.take_tag(property::VALUE) {
            return Err(CorruptRecord("property has no value"));
        }
        let value = self.rest.bytes()?;
        if !self.rest.is_empty() {
            return Err(CorruptRecord("property has unknown fields"));
        }
        read_value(value)
    }
}

/// The properties of an encoded entity.
#[derive(Debug, Clone)]
pub struct PropertyReader<'a> {
    rest: MessageReader<'a>,
    failed: Option<CorruptRecord>,
}

impl<'a> PropertyReader<'a> {
    /// The next property. Its value is not decoded: most are skipped by their name.
    #[inline]
    pub(crate) fn next_raw(&mut self) -> Result<Option<RawProperty<'a>>, CorruptRecord> {
        if let Some(corrupt) = self.failed {
            return Err(corrupt);
        }
        if !self.rest.take_tag(entity::PROPERTY) {
            return Ok(None);
        }
        let mut rest = MessageReader::new(self.rest.bytes()?);
        if !rest.take_tag(property::NAME) {
            return Err(CorruptRecord("property has no name"));
        }
        let name = rest.bytes()?;
        Ok(Some(RawProperty { name, rest }))
    }

    /// Bytes of `wire` that are read so far; `wire` is what the entity was opened over.
    pub(super) fn offset(&self, wire: &[u8]) -> Result<usize, CorruptRecord> {
        match self.failed {
            Some(corrupt) => Err(corrupt),
            None => Ok(wire.len().saturating_sub(self.rest.len())),
        }
    }

    /// The timestamp, which follows the last property.
    pub(crate) fn timestamp(&mut self) -> Result<Ticks, CorruptRecord> {
        if let Some(corrupt) = self.failed {
            return Err(corrupt);
        }
        if !self.rest.take_tag(entity::TIMESTAMP) {
            return Err(CorruptRecord("entity has no timestamp"));
        }
        let time = read_time(self.rest.bytes()?)?;
        if !self.rest.take_tag(entity::ETAG) {
            return Err(CorruptRecord("entity has no etag"));
        }
        text(self.rest.bytes()?)?;
        if !self.rest.is_empty() {
            return Err(CorruptRecord("entity has unknown fields"));
        }
        Ok(time)
    }
}

impl<'a> Iterator for PropertyReader<'a> {
    type Item = Result<(&'a str, EdmValueRef<'a>), CorruptRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.next_raw().and_then(|raw| match raw {
            None => Ok(None),
            Some(property) => Ok(Some((text(property.name)?, property.value()?))),
        });
        if item.is_err() {
            // One error ends the walk.
            *self = PropertyReader { rest: MessageReader::new(&[]), failed: None };
        }
        item.transpose()
    }
}

/// Reads an encoded value in place.
///
/// # Errors
/// When it is not one canonical value.
#[inline]
fn read_value(message: &[u8]) -> Result<EdmValueRef<'_>, CorruptRecord> {
    use EdmValueRef as V;
    let mut reader = MessageReader::new(message);
    let value = match reader.byte()? {
        value::STRING => V::String(text(reader.bytes()?)?),
        value::INT32 => {
            let number = i32::try_from(reader.varint()?.cast_signed());
            V::Int32(number.map_err(|_| CorruptRecord("number is out of range"))?)
        }
        value::INT64 => V::Int64(reader.varint()?.cast_signed()),
        value::DOUBLE => V::Double(f64::from_bits(reader.fixed64()?)),
        value::BOOLEAN => match reader.byte()? {
            0 => V::Boolean(false),
            1 => V::Boolean(true),
            _ => return Err(CorruptRecord("boolean is neither true nor false")),
        },
        value::DATETIME => V::DateTime(read_time(reader.bytes()?)?),
        value::GUID => {
            let guid = parse_guid(text(reader.bytes()?)?);
            V::Guid(guid.ok_or(CorruptRecord("guid is malformed"))?)
        }
        value::BINARY => V::Binary(reader.bytes()?),
        _ => return Err(CorruptRecord("value has an unknown type")),
    };
    if reader.is_empty() { Ok(value) } else { Err(CorruptRecord("value has unknown fields")) }
}

/// As an owned value; binary shares the memory of `source`, which it must be part of.
pub(super) fn to_value(value: EdmValueRef<'_>, source: &Bytes) -> Value {
    use EdmValueRef as V;
    match value {
        V::String(text) => Value::String(text.to_owned()),
        V::Int32(number) => Value::Int32(number),
        V::Int64(number) => Value::Int64(number),
        V::Double(number) => Value::Double(number),
        V::Boolean(truth) => Value::Boolean(truth),
        V::DateTime(ticks) => Value::DateTime(ticks),
        V::Guid(guid) => Value::Guid(guid),
        V::Binary(bytes) => Value::Binary(source.slice_ref(bytes)),
    }
}

#[inline]
fn read_time(message: &[u8]) -> Result<Ticks, CorruptRecord> {
    let mut reader = MessageReader::new(message);
    let mut part = |tag| {
        if reader.take_tag(tag) { reader.varint() } else { Ok(0) }
    };
    let seconds = part(timestamp::SECONDS)?.cast_signed();
    let nanos = part(timestamp::NANOS)?;
    let nanos = i32::try_from(nanos).map_err(|_| CorruptRecord("nanoseconds are out of range"))?;
    if !reader.is_empty() {
        return Err(CorruptRecord("time has unknown fields"));
    }
    Ticks::from_unix(seconds, nanos).ok_or(CorruptRecord("time is out of range"))
}
