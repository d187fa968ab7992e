//! Protobuf read and written field by field, without allocation and without a generated type.

mod put;
#[cfg(test)]
mod tests;

pub(crate) use put::{
    begin_message, end_message, put_bytes, put_field, put_fixed32, put_fixed64, put_message,
    put_varint,
};

/// An encoded message is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MalformedMessage(pub(crate) &'static str);

const CUT_OFF: MalformedMessage = MalformedMessage("message is cut off");

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> FieldValue<'a> {
    #[inline]
    pub(crate) fn varint(self) -> Result<u64, MalformedMessage> {
        match self {
            Self::Varint(value) => Ok(value),
            _ => Err(MalformedMessage("wire type is not varint")),
        }
    }

    #[inline]
    pub(crate) fn fixed64(self) -> Result<u64, MalformedMessage> {
        match self {
            Self::Fixed64(value) => Ok(value),
            _ => Err(MalformedMessage("wire type is not fixed64")),
        }
    }

    #[inline]
    pub(crate) fn fixed32(self) -> Result<u32, MalformedMessage> {
        match self {
            Self::Fixed32(value) => Ok(value),
            _ => Err(MalformedMessage("wire type is not fixed32")),
        }
    }

    #[inline]
    pub(crate) fn bytes(self) -> Result<&'a [u8], MalformedMessage> {
        match self {
            Self::Bytes(value) => Ok(value),
            _ => Err(MalformedMessage("wire type is not length-delimited")),
        }
    }

    #[inline]
    pub(crate) fn text(self) -> Result<&'a str, MalformedMessage> {
        std::str::from_utf8(self.bytes()?).map_err(|_| MalformedMessage("text is not UTF-8"))
    }
}

/// The fields of a message, in the order in which they are encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageReader<'a>(&'a [u8]);

impl<'a> MessageReader<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// The next field: its number and its value.
    #[inline]
    pub(crate) fn next_field(&mut self) -> Result<Option<(u32, FieldValue<'a>)>, MalformedMessage> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = u32::try_from(self.read_varint()?)
            .map_err(|_| MalformedMessage("field number is out of range"))?;
        let number = key >> 3;
        if number == 0 {
            return Err(MalformedMessage("field number is 0"));
        }
        let value = match key & 7 {
            0 => FieldValue::Varint(self.read_varint()?),
            1 => FieldValue::Fixed64(u64::from_le_bytes(self.read_array()?)),
            2 => FieldValue::Bytes(self.read_bytes()?),
            5 => FieldValue::Fixed32(u32::from_le_bytes(self.read_array()?)),
            _ => return Err(MalformedMessage("wire type is unsupported")),
        };
        Ok(Some((number, value)))
    }

    #[inline]
    fn read_varint(&mut self) -> Result<u64, MalformedMessage> {
        match self.0.split_first() {
            Some((first, rest)) if *first < 0x80 => {
                self.0 = rest;
                Ok(u64::from(*first))
            }
            _ => self.read_long_varint(),
        }
    }

    fn read_long_varint(&mut self) -> Result<u64, MalformedMessage> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(CUT_OFF)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7F) << shift;
            if shift == 63 && *byte > 1 {
                break;
            }
            if *byte < 0x80 {
                return Ok(value);
            }
        }
        Err(MalformedMessage("varint is too long"))
    }

    #[inline]
    fn read_bytes(&mut self) -> Result<&'a [u8], MalformedMessage> {
        let length = usize::try_from(self.read_varint()?).map_err(|_| CUT_OFF)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(bytes)
    }

    #[inline]
    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], MalformedMessage> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(*bytes)
    }
}
