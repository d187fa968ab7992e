//! Protobuf written field by field.

use bytes::BufMut;
use prost::encoding::WireType;

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

/// Writes a number in as many bytes as it needs, without a key.
#[inline]
pub fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

#[inline]
fn push_key(out: &mut Vec<u8>, number: u32, wire_type: WireType) {
    push_varint(out, u64::from(number) << 3 | wire_type as u64);
}

/// Writes a field of a number in as many bytes as it needs.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, number: u32, value: u64) {
    push_key(out, number, WireType::Varint);
    push_varint(out, value);
}

/// Writes a field of eight bytes.
#[inline]
pub fn put_fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    push_key(out, number, WireType::SixtyFourBit);
    out.put_u64_le(value);
}

/// Writes a field of four bytes.
#[inline]
pub fn put_fixed32(out: &mut Vec<u8>, number: u32, value: u32) {
    push_key(out, number, WireType::ThirtyTwoBit);
    out.put_u32_le(value);
}

/// Writes a field of bytes, of text or of an encoded message.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    push_key(out, number, WireType::LengthDelimited);
    push_varint(out, value.len() as u64);
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
    push_key(out.as_mut(), number, WireType::LengthDelimited);
    let at = out.as_mut().len();
    out.as_mut().push(0);
    write(out)?;
    let out = out.as_mut();
    let length = out.len() - at - 1;
    match (u8::try_from(length), out.get_mut(at)) {
        (Ok(short @ ..0x80), Some(byte)) => *byte = short,
        _ => {
            let mut prefix = Vec::with_capacity(10);
            push_varint(&mut prefix, length as u64);
            out.splice(at..=at, prefix);
        }
    }
    Ok(())
}

/// Bytes of a length that is written after the message: varints of four bytes end at 256 MiB.
const LENGTH_BYTES: usize = 4;

/// Begins a large nested message, whose bytes are not moved when its length is determined. Returns where they begin.
pub fn begin_message(out: &mut Vec<u8>, number: u32) -> usize {
    push_key(out, number, WireType::LengthDelimited);
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
