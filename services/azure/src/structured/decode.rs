//! From a message to its content.

use bytes::{Buf as _, Bytes};
use crc64fast_nvme::Digest;

use super::{CRC64_BYTES, HAS_CRC64, MESSAGE_HEAD_BYTES, SEGMENT_HEAD_BYTES, VERSION, overhead};

/// Why a message is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StructureError {
    /// Another version than 1.
    #[error("must be a structured message of version 1: version=`{0}`")]
    OtherVersion(u8),
    /// Other flags than that of checksums.
    #[error("must be a structured message with checksums only: flags=`{0}`")]
    Flags(u16),
    /// The header states another length than the segments and the content have.
    #[error("must state the length of the message, {expected}: length=`{stated}`")]
    Length {
        /// By the number of segments and the length of the content.
        expected: u64,
        /// In the header.
        stated: u64,
    },
    /// No segment.
    #[error("must be a structured message with a segment")]
    NoSegment,
    /// A segment with another number than the next one.
    #[error("must have segments in their order: expected=`{expected}`, number=`{number}`")]
    Order {
        /// The next one.
        expected: u16,
        /// In the header of the segment.
        number: u16,
    },
    /// A segment whose length does not fit the content that is left.
    #[error("must have segments whose lengths add up to the content: segment=`{segment}`")]
    SegmentLength {
        /// The segment.
        segment: u16,
    },
    /// Content with another checksum.
    #[error("the CRC-64 of segment {segment} is not that of its content")]
    SegmentCrc64 {
        /// The segment.
        segment: u16,
    },
    /// Segments whose checksum over all is another one.
    #[error("the CRC-64 of the structured message is not that of its content")]
    MessageCrc64,
    /// Bytes after the end.
    #[error("must end with the structured message")]
    TooLong,
    /// An end within the message.
    #[error("ended within the structured message")]
    TooShort,
}

impl StructureError {
    /// Whether a checksum differs: the content was damaged, and the client may send it again.
    #[must_use]
    pub fn is_mismatch(&self) -> bool {
        matches!(self, Self::SegmentCrc64 { .. } | Self::MessageCrc64)
    }
}

/// The part of a message that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StructurePart {
    MessageHead,
    SegmentHead,
    /// Content of a segment, of which as many bytes are left.
    Content(u64),
    SegmentEnd,
    MessageEnd,
    End,
}

/// Decodes a message that arrives in pieces of any size, in constant memory.
pub struct StructuredDecoder {
    part: StructurePart,
    /// Bytes of the part that have arrived, unless it is content.
    head: [u8; MESSAGE_HEAD_BYTES],
    filled: usize,
    /// Bytes of content after the current segment.
    left: u64,
    segments: u16,
    /// The number of the current segment.
    segment: u16,
    segment_crc64: Digest,
    message_crc64: Digest,
}

impl StructuredDecoder {
    /// A decoder of a message with this many bytes of content.
    #[must_use]
    pub fn new(content_bytes: u64) -> Self {
        Self {
            part: StructurePart::MessageHead,
            head: [0; MESSAGE_HEAD_BYTES],
            filled: 0,
            left: content_bytes,
            segments: 0,
            segment: 0,
            segment_crc64: Digest::new(),
            message_crc64: Digest::new(),
        }
    }

    /// Takes the next content from `bytes`; none where all of them are consumed.
    ///
    /// # Errors
    /// A malformed message, also if its rest has not arrived. The decoder must not be used after it.
    pub fn decode(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, StructureError> {
        while !bytes.is_empty() {
            match self.part {
                StructurePart::Content(left) => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let content = bytes.split_to(length);
                    self.segment_crc64.write(&content);
                    self.message_crc64.write(&content);
                    self.content_of(left - length as u64);
                    return Ok(Some(content));
                }
                StructurePart::End => return Err(StructureError::TooLong),
                StructurePart::MessageHead => {
                    self.fill(bytes, MESSAGE_HEAD_BYTES, Self::message_head)?;
                }
                StructurePart::SegmentHead => {
                    self.fill(bytes, SEGMENT_HEAD_BYTES, Self::segment_head)?;
                }
                StructurePart::SegmentEnd => self.fill(bytes, CRC64_BYTES, Self::segment_end)?,
                StructurePart::MessageEnd => self.fill(bytes, CRC64_BYTES, Self::message_end)?,
            }
        }
        Ok(None)
    }

    /// Checks that the message is complete, so that all content is verified.
    ///
    /// # Errors
    /// [`StructureError::TooShort`].
    pub fn finish(&self) -> Result<(), StructureError> {
        if self.part == StructurePart::End { Ok(()) } else { Err(StructureError::TooShort) }
    }

    /// Fills the part with bytes, and reads it once it is complete.
    fn fill(
        &mut self,
        bytes: &mut Bytes,
        length: usize,
        read: fn(&mut Self, &[u8]) -> Result<(), StructureError>,
    ) -> Result<(), StructureError> {
        let count = (length - self.filled).min(bytes.len());
        if let Some(room) = self.head.get_mut(self.filled..self.filled + count) {
            bytes.copy_to_slice(room);
        }
        self.filled += count;
        if self.filled < length {
            return Ok(());
        }
        self.filled = 0;
        let head = self.head;
        read(self, head.get(..length).unwrap_or_default())
    }

    fn message_head(&mut self, mut head: &[u8]) -> Result<(), StructureError> {
        let (version, stated) = (head.get_u8(), head.get_u64_le());
        let (flags, segments) = (head.get_u16_le(), head.get_u16_le());
        if version != VERSION {
            return Err(StructureError::OtherVersion(version));
        }
        if flags != HAS_CRC64 {
            return Err(StructureError::Flags(flags));
        }
        if segments == 0 {
            return Err(StructureError::NoSegment);
        }
        let expected = self.left.saturating_add(overhead(u64::from(segments)));
        if stated != expected {
            return Err(StructureError::Length { expected, stated });
        }
        self.segments = segments;
        self.part = StructurePart::SegmentHead;
        Ok(())
    }

    fn segment_head(&mut self, mut head: &[u8]) -> Result<(), StructureError> {
        let (number, length) = (head.get_u16_le(), head.get_u64_le());
        let expected = self.segment.saturating_add(1);
        if number != expected {
            return Err(StructureError::Order { expected, number });
        }
        let left = self.left.checked_sub(length).filter(|left| {
            // The last one has the rest, and each of several has content.
            let is_last = number == self.segments;
            is_last == (*left == 0) && (length > 0 || self.segments == 1)
        });
        self.left = left.ok_or(StructureError::SegmentLength { segment: number })?;
        self.segment = number;
        self.segment_crc64 = Digest::new();
        self.content_of(length);
        Ok(())
    }

    /// Goes on with the content of a segment, or where none is left, with its end.
    fn content_of(&mut self, left: u64) {
        self.part = if left > 0 { StructurePart::Content(left) } else { StructurePart::SegmentEnd };
    }

    fn segment_end(&mut self, mut end: &[u8]) -> Result<(), StructureError> {
        if end.get_u64_le() != self.segment_crc64.sum64() {
            return Err(StructureError::SegmentCrc64 { segment: self.segment });
        }
        let is_last = self.segment == self.segments;
        self.part = if is_last { StructurePart::MessageEnd } else { StructurePart::SegmentHead };
        Ok(())
    }

    fn message_end(&mut self, mut end: &[u8]) -> Result<(), StructureError> {
        if end.get_u64_le() != self.message_crc64.sum64() {
            return Err(StructureError::MessageCrc64);
        }
        self.part = StructurePart::End;
        Ok(())
    }
}
