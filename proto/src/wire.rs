//! Protobuf read and written field by field: borrowed, without allocation, and without a generated type. Any bytes are
//! read to their end or to an error.

mod put;
#[cfg(test)]
mod tests;

pub use put::{
    begin_message, end_message, push_varint, put_bytes, put_field, put_fixed32, put_fixed64,
    put_message, put_varint,
};

/// An encoded message is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedMessage(pub &'static str);

const CUT_OFF: MalformedMessage = MalformedMessage("message is cut off");
const UNSUPPORTED: MalformedMessage = MalformedMessage("wire type is unsupported");

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A number of up to 64 bits.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// What has a length: text, bytes, a message, a packed list.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

impl<'a> FieldValue<'a> {
    /// A varint.
    ///
    /// # Errors
    /// Another wire type.
    #[inline]
    pub fn varint(self) -> Result<u64, MalformedMessage> {
        match self {
            Self::Varint(value) => Ok(value),
            _ => Err(MalformedMessage("wire type is not varint")),
        }
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// Another wire type.
    #[inline]
    pub fn fixed64(self) -> Result<u64, MalformedMessage> {
        match self {
            Self::Fixed64(value) => Ok(value),
            _ => Err(MalformedMessage("wire type is not fixed64")),
        }
    }

    /// Four bytes.
    ///
    /// # Errors
    /// Another wire type.
    #[inline]
    pub fn fixed32(self) -> Result<u32, MalformedMessage> {
        match self {
            Self::Fixed32(value) => Ok(value),
            _ => Err(MalformedMessage("wire type is not fixed32")),
        }
    }

    /// What has a length.
    ///
    /// # Errors
    /// Another wire type.
    #[inline]
    pub fn bytes(self) -> Result<&'a [u8], MalformedMessage> {
        match self {
            Self::Bytes(value) => Ok(value),
            _ => Err(MalformedMessage("wire type is not length-delimited")),
        }
    }

    /// Text.
    ///
    /// # Errors
    /// Another wire type, or bytes that are not UTF-8.
    #[inline]
    pub fn text(self) -> Result<&'a str, MalformedMessage> {
        std::str::from_utf8(self.bytes()?).map_err(|_| MalformedMessage("text is not UTF-8"))
    }
}

/// What is left to read of a message: field by field in any order, or by what a canonical message has next.
#[derive(Debug, Clone, Copy)]
pub struct MessageReader<'a>(&'a [u8]);

impl<'a> MessageReader<'a> {
    /// From the first field on.
    #[must_use]
    #[inline]
    pub fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    /// The next field: its number and its value.
    ///
    /// # Errors
    /// A field that is malformed, or a group.
    #[inline]
    pub fn next_field(&mut self) -> Result<Option<(u32, FieldValue<'a>)>, MalformedMessage> {
        match self.next_with_groups()? {
            Some((number, Some(value))) => Ok(Some((number, value))),
            Some((_, None)) => Err(UNSUPPORTED),
            None => Ok(None),
        }
    }

    /// The next field; without a value where a group begins or ends, as no message of proto3 has one.
    ///
    /// # Errors
    /// A field that is malformed.
    #[inline]
    pub fn next_with_groups(
        &mut self,
    ) -> Result<Option<(u32, Option<FieldValue<'a>>)>, MalformedMessage> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = u32::try_from(self.varint()?)
            .map_err(|_| MalformedMessage("field number is out of range"))?;
        let number = key >> 3;
        if number == 0 {
            return Err(MalformedMessage("field number is 0"));
        }
        let value = match key & 7 {
            0 => FieldValue::Varint(self.varint()?),
            1 => FieldValue::Fixed64(self.fixed64()?),
            2 => FieldValue::Bytes(self.bytes()?),
            3 | 4 => return Ok(Some((number, None))),
            5 => FieldValue::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(UNSUPPORTED),
        };
        Ok(Some((number, Some(value))))
    }

    /// The fields in the order in which they are encoded, up to the first that is malformed.
    #[inline]
    pub fn fields(
        mut self,
    ) -> impl Iterator<Item = Result<(u32, FieldValue<'a>), MalformedMessage>> {
        std::iter::from_fn(move || {
            let field = self.next_field().transpose();
            if let Some(Err(_)) = field {
                self.0 = &[];
            }
            field
        })
    }

    /// Whether all is read.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that are left to read.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the key of a field, its number and its wire type in one byte, if that is next.
    #[inline]
    pub fn take_tag(&mut self, tag: u8) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if *first == tag => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// One byte, whatever it is of.
    ///
    /// # Errors
    /// The end of the message.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, MalformedMessage> {
        self.array().map(|[byte]| byte)
    }

    /// A number in up to ten bytes, which need not be the fewest.
    ///
    /// # Errors
    /// More than 64 bits, or the end of the message.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, MalformedMessage> {
        match self.0.split_first() {
            Some((first, rest)) if *first < 0x80 => {
                self.0 = rest;
                Ok(u64::from(*first))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, MalformedMessage> {
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

    /// Bytes with their length before them.
    ///
    /// # Errors
    /// The end of the message.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], MalformedMessage> {
        let length = usize::try_from(self.varint()?).map_err(|_| CUT_OFF)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A number in eight bytes.
    ///
    /// # Errors
    /// The end of the message.
    #[inline]
    pub fn fixed64(&mut self) -> Result<u64, MalformedMessage> {
        self.array().map(u64::from_le_bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedMessage> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(*bytes)
    }
}
