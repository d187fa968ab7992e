//! The few forms of protobuf that a canonical entity is made of, read without allocation.

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

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireReader<'a>(pub(super) &'a [u8]);

impl<'a> WireReader<'a> {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes `tag`, if it is next.
    #[inline]
    pub(super) fn take_tag(&mut self, tag: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == tag => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Result<u8, CorruptRecord> {
        let (first, rest) = self.0.split_first().ok_or(CorruptRecord("message is cut off"))?;
        self.0 = rest;
        Ok(*first)
    }

    /// A number of up to ten bytes.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, CorruptRecord> {
        let first = self.byte()?;
        if first < 0x80 { Ok(u64::from(first)) } else { self.long_varint(first) }
    }

    fn long_varint(&mut self, first: u8) -> Result<u64, CorruptRecord> {
        let mut number = u64::from(first & 0x7F);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(CorruptRecord("number is too long"))
    }

    /// Bytes with their length before them.
    #[inline]
    pub(super) fn chunk(&mut self) -> Result<&'a [u8], CorruptRecord> {
        let len =
            usize::try_from(self.varint()?).map_err(|_| CorruptRecord("length is too large"))?;
        let (chunk, rest) =
            self.0.split_at_checked(len).ok_or(CorruptRecord("message is cut off"))?;
        self.0 = rest;
        Ok(chunk)
    }

    /// Eight bytes.
    #[inline]
    pub(super) fn fixed64(&mut self) -> Result<[u8; 8], CorruptRecord> {
        let (bytes, rest) =
            self.0.split_first_chunk().ok_or(CorruptRecord("message is cut off"))?;
        self.0 = rest;
        Ok(*bytes)
    }
}

#[inline]
pub(crate) fn text(bytes: &[u8]) -> Result<&str, CorruptRecord> {
    str::from_utf8(bytes).map_err(|_| CorruptRecord("text is not UTF-8"))
}
