//! Protobuf written field by field.

use bytes::BufMut;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::FieldValue;

/// Writes a field as it was read.
#[inline]
pub fn put_field(out: &mut Vec<u8>, number: u32, value: FieldValue<'_>) {
    match value {
        FieldValue::Varint(value) => put_varint(out, number, value),
        FieldValue::Fixed64(value) => put_fixed64(out, number, value),
        FieldValue::Bytes(value) => put_bytes(out, number, value),
        FieldValue::Fixed32(value) => put_fixed32(out, number, value),
    }
}

/// Writes a field of a number in as many bytes as it needs.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::Varint, out);
    encode_varint(value, out);
}

/// Writes a field of eight bytes.
#[inline]
pub fn put_fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    encode_key(number, WireType::SixtyFourBit, out);
    out.put_u64_le(value);
}

/// Writes a field of four bytes.
#[inline]
pub fn put_fixed32(out: &mut Vec<u8>, number: u32, value: u32) {
    encode_key(number, WireType::ThirtyTwoBit, out);
    out.put_u32_le(value);
}

/// Writes a field of bytes, of text or of an encoded message.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Writes a nested message or a packed list, whose length is not determined before it is written.
///
/// # Errors
/// That of `write`.
pub fn put_message<W: AsMut<Vec<u8>>, E>(
    out: &mut W,
    number: u32,
    write: impl FnOnce(&mut W) -> Result<(), E>,
) -> Result<(), E> {
    encode_key(number, WireType::LengthDelimited, out.as_mut());
    let at = out.as_mut().len();
    out.as_mut().push(0);
    write(out)?;
    let out = out.as_mut();
    let length = out.len() - at - 1;
    match (u8::try_from(length), out.get_mut(at)) {
        (Ok(short @ ..0x80), Some(byte)) => *byte = short,
        _ => {
            let mut prefix = Vec::with_capacity(10);
            encode_varint(length as u64, &mut prefix);
            out.splice(at..=at, prefix);
        }
    }
    Ok(())
}

/// Bytes of a length that is written after the message: varints of four bytes end at 256 MiB.
const LENGTH_BYTES: usize = 4;

/// Begins a large nested message, whose bytes are not moved when its length is determined. Returns where they begin.
pub fn begin_message(out: &mut Vec<u8>, number: u32) -> usize {
    encode_key(number, WireType::LengthDelimited, out);
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.len()
}

/// Writes the length of the message that ends here, as a varint that may have more bytes than it needs.
pub fn end_message(out: &mut [u8], begin: usize) {
    let mut length = out.len().saturating_sub(begin);
    let prefix = begin.checked_sub(LENGTH_BYTES).and_then(|at| out.get_mut(at..begin));
    for (index, byte) in prefix.into_iter().flatten().enumerate() {
        let more = if index + 1 < LENGTH_BYTES { 0x80 } else { 0 };
        *byte = u8::try_from(length & 0x7F).unwrap_or_default() | more;
        length >>= 7;
    }
}
