//! Structured messages: content in segments, each with its CRC-64, so that damage on the way is found on either side.
//!
//! Version 1, with numbers in little endian:
//! - the header of the message: version (1 byte), length of the message (8), flags (2), number of segments (2);
//! - for each segment: its number from 1 (2), the length of its content (8), the content, the CRC-64 of that (8);
//! - the CRC-64 of all content (8).
//!
//! Content is neither collected nor copied: what is decoded passes on before its checksum arrives, so it must have no
//! effect before [`StructuredDecoder::finish`].

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use self::{
    decode::{StructureError, StructuredDecoder},
    encode::StructuredEncoder,
};

/// The version in the header of a message.
const VERSION: u8 = 1;
/// The flag of checksums, the only one.
const HAS_CRC64: u16 = 1;
/// Bytes of the header of a message.
const MESSAGE_HEAD_BYTES: usize = 13;
/// Bytes of the header of a segment.
const SEGMENT_HEAD_BYTES: usize = 10;
/// Bytes of a checksum.
const CRC64_BYTES: usize = 8;
/// Most segments of a message.
const SEGMENTS_MAX: u64 = u16::MAX as u64;

/// Most bytes that a message has beside its content.
pub const OVERHEAD_BYTES_MAX: u64 = overhead(SEGMENTS_MAX);

/// Bytes of a message beside its content.
const fn overhead(segments: u64) -> u64 {
    let of_message = MESSAGE_HEAD_BYTES + CRC64_BYTES;
    let of_segment = SEGMENT_HEAD_BYTES + CRC64_BYTES;
    of_message as u64 + segments * of_segment as u64
}
