//! What a canonical entity is made of.

use crate::corrupt::CorruptRecord;

/// Tags of `Entity`: the field number and the wire type in one byte.
pub(super) mod entity {
    pub(in crate::stored) const PARTITION_KEY: u8 = 0x0A;
    pub(in crate::stored) const ROW_KEY: u8 = 0x12;
    pub(in crate::stored) const PROPERTY: u8 = 0x1A;
    pub(in crate::stored) const TIMESTAMP: u8 = 0x22;
    pub(in crate::stored) const ETAG: u8 = 0x2A;
}

/// Tags of `Property`.
pub(super) mod property {
    pub(in crate::stored) const NAME: u8 = 0x0A;
    pub(in crate::stored) const VALUE: u8 = 0x12;
}

/// Tags of `Value`.
pub(super) mod value {
    pub(in crate::stored) const STRING: u8 = 0x0A;
    pub(in crate::stored) const INT32: u8 = 0x10;
    pub(in crate::stored) const INT64: u8 = 0x18;
    pub(in crate::stored) const DOUBLE: u8 = 0x21;
    pub(in crate::stored) const BOOLEAN: u8 = 0x28;
    pub(in crate::stored) const DATETIME: u8 = 0x32;
    pub(in crate::stored) const GUID: u8 = 0x3A;
    pub(in crate::stored) const BINARY: u8 = 0x42;
}

/// Tags of `google.protobuf.Timestamp`.
pub(super) mod timestamp {
    pub(in crate::stored) const SECONDS: u8 = 0x08;
    pub(in crate::stored) const NANOS: u8 = 0x10;
}

#[inline]
pub(crate) fn text(bytes: &[u8]) -> Result<&str, CorruptRecord> {
    str::from_utf8(bytes).map_err(|_| CorruptRecord("text is not UTF-8"))
}
