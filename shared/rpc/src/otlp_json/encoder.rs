//! The message that is written.

use bytes::BufMut as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use trestle_proto::wire::put_bytes;

use super::{contract::NumberKind, values::Number};

/// A message in the order in which its fields are read, of bounded size.
#[derive(Debug)]
pub(super) struct Encoder {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Encoder {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes: Vec::new(), bytes_max }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Whether it has more than the most bytes.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() > self.bytes_max
    }

    /// Writes a field of text or bytes.
    pub(super) fn put_bytes(&mut self, number: u32, value: &[u8]) {
        put_bytes(&mut self.bytes, number, value);
    }

    /// Writes a truth value, with the key of its field unless it is an element of a packed list.
    pub(super) fn put_bool(&mut self, key: Option<u32>, value: bool) {
        self.put_key(key, WireType::Varint);
        encode_varint(value.into(), &mut self.bytes);
    }

    /// Writes a number of an enum.
    pub(super) fn put_enum(&mut self, key: Option<u32>, value: i32) {
        self.put_number(key, NumberKind::Int32, Number::Whole(value.into()));
    }

    /// Writes a number that is in the range of its kind.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range; the bits of negative numbers"
    )]
    pub(super) fn put_number(&mut self, key: Option<u32>, kind: NumberKind, value: Number) {
        let (whole, real) = match value {
            Number::Whole(whole) => (whole, whole as f64),
            Number::Real(real) => (0, real),
        };
        let wire_type = match kind {
            NumberKind::Fixed32 | NumberKind::Sfixed32 | NumberKind::Float => {
                WireType::ThirtyTwoBit
            }
            NumberKind::Fixed64 | NumberKind::Sfixed64 | NumberKind::Double => {
                WireType::SixtyFourBit
            }
            _ => WireType::Varint,
        };
        self.put_key(key, wire_type);
        let out = &mut self.bytes;
        match kind {
            // A negative number has the bits of one with 64.
            NumberKind::Int32 | NumberKind::Int64 | NumberKind::Uint32 | NumberKind::Uint64 => {
                encode_varint(whole as u64, out);
            }
            NumberKind::Sint32 | NumberKind::Sint64 => {
                let whole = whole as i64;
                encode_varint(((whole << 1) ^ (whole >> 63)).cast_unsigned(), out);
            }
            NumberKind::Fixed32 | NumberKind::Sfixed32 => out.put_u32_le(whole as u32),
            NumberKind::Fixed64 | NumberKind::Sfixed64 => out.put_u64_le(whole as u64),
            NumberKind::Float => out.put_f32_le(real as f32),
            NumberKind::Double => out.put_f64_le(real),
        }
    }

    fn put_key(&mut self, key: Option<u32>, wire_type: WireType) {
        if let Some(number) = key {
            encode_key(number, wire_type, &mut self.bytes);
        }
    }
}

impl AsMut<Vec<u8>> for Encoder {
    fn as_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}
