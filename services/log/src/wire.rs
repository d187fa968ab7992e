//! Protobuf read and written field by field, without allocation and without a generated type.

mod put;

pub(crate) use put::{put_bytes, put_fixed32, put_fixed64, put_message, put_varint};

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

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(message: &[u8]) -> Result<Vec<(u32, FieldValue<'_>)>, MalformedMessage> {
        let mut reader = MessageReader::new(message);
        std::iter::from_fn(|| reader.next_field().transpose()).collect()
    }

    #[test]
    fn reads_fields_of_every_wire_type() {
        let message = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 0, 0, 0, 0, 0, 0, 0, // 2: fixed64
            0x1A, 2, b'h', b'i', // 3: bytes
            0x25, 7, 0, 0, 0, // 4: fixed32
        ];

        assert_eq!(
            fields(&message),
            Ok(vec![
                (1, FieldValue::Varint(150)),
                (2, FieldValue::Fixed64(1)),
                (3, FieldValue::Bytes(b"hi")),
                (4, FieldValue::Fixed32(7)),
            ])
        );
    }

    #[test]
    fn rejects_malformed_messages() {
        let malformed: &[&[u8]] = &[
            &[0x08],                                                       // no value
            &[0x1A, 3, b'h', b'i'],                                        // length past the end
            &[0x00, 0],                                                    // field 0
            &[0x0B],                                                       // a group
            &[0x11, 1, 2],                                                 // seven bytes too few
            &[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2],          // more than 64 bits
            &[0x1A, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, b'x'], // 2^64 - 1 bytes
            &[0x80, 0x80, 0x80, 0x80, 0x80, 1, 1],                         // number of 35 bits
        ];
        for message in malformed {
            assert!(fields(message).is_err(), "{message:?}");
        }
        assert_eq!(
            fields(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
            Ok(vec![(1, FieldValue::Varint(u64::MAX))])
        );
    }
}
