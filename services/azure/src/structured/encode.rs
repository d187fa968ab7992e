//! From content to a message.

use bytes::{BufMut as _, Bytes, BytesMut};
use crc64fast_nvme::Digest;

use super::{
    CRC64_BYTES, HAS_CRC64, MESSAGE_HEAD_BYTES, SEGMENT_HEAD_BYTES, SEGMENTS_MAX, VERSION, overhead,
};

/// Bytes of content of a segment, unless the message would have too many segments.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Encodes content of a known length that arrives in pieces of any size, in constant memory.
pub struct StructuredEncoder {
    segment_bytes: u64,
    segments: u64,
    content_bytes: u64,
    /// Content that has not arrived.
    left: u64,
    /// Content of the current segment that has not arrived.
    left_of_segment: u64,
    segment: u64,
    segment_crc64: Digest,
    message_crc64: Digest,
}

impl StructuredEncoder {
    /// An encoder of this many bytes of content.
    #[must_use]
    pub fn new(content_bytes: u64) -> Self {
        let segment_bytes = SEGMENT_BYTES.max(content_bytes.div_ceil(SEGMENTS_MAX));
        Self {
            segment_bytes,
            segments: content_bytes.div_ceil(segment_bytes).max(1),
            content_bytes,
            left: content_bytes,
            left_of_segment: 0,
            segment: 0,
            segment_crc64: Digest::new(),
            message_crc64: Digest::new(),
        }
    }

    /// Length of the whole message, in bytes.
    #[must_use]
    pub fn message_bytes(&self) -> u64 {
        self.content_bytes + overhead(self.segments)
    }

    /// The beginning of the message, which precedes all content; without content the whole message.
    #[must_use]
    pub fn start(&mut self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(MESSAGE_HEAD_BYTES + SEGMENT_HEAD_BYTES);
        bytes.put_u8(VERSION);
        bytes.put_u64_le(self.message_bytes());
        bytes.put_u16_le(HAS_CRC64);
        bytes.put_u16_le(number(self.segments));
        self.start_segment(&mut bytes);
        self.end_segment(&mut bytes);
        bytes.freeze()
    }

    /// Encodes the next content: its pieces, with what comes between and after them. Content beyond the length is left
    /// out.
    #[must_use]
    pub fn encode(&mut self, mut content: Bytes) -> Vec<Bytes> {
        let mut encoded = Vec::new();
        while !content.is_empty() && self.left > 0 {
            let length = usize::try_from(self.left_of_segment).unwrap_or(usize::MAX);
            let piece = content.split_to(length.min(content.len()));
            self.segment_crc64.write(&piece);
            self.message_crc64.write(&piece);
            self.left -= piece.len() as u64;
            self.left_of_segment -= piece.len() as u64;
            encoded.push(piece);
            let mut bytes = BytesMut::new();
            self.end_segment(&mut bytes);
            if !bytes.is_empty() {
                encoded.push(bytes.freeze());
            }
        }
        encoded
    }

    fn start_segment(&mut self, bytes: &mut BytesMut) {
        self.segment += 1;
        self.left_of_segment = self.left.min(self.segment_bytes);
        self.segment_crc64 = Digest::new();
        bytes.put_u16_le(number(self.segment));
        bytes.put_u64_le(self.left_of_segment);
    }

    /// Ends the segment where its content is complete, and begins the next one or ends the message.
    fn end_segment(&mut self, bytes: &mut BytesMut) {
        if self.left_of_segment > 0 {
            return;
        }
        bytes.reserve(CRC64_BYTES + SEGMENT_HEAD_BYTES);
        bytes.put_u64_le(self.segment_crc64.sum64());
        match self.left {
            0 => bytes.put_u64_le(self.message_crc64.sum64()),
            _ => self.start_segment(bytes),
        }
    }
}

/// The number of a segment, of which there are at most [`SEGMENTS_MAX`].
fn number(segments: u64) -> u16 {
    u16::try_from(segments).unwrap_or(u16::MAX)
}
