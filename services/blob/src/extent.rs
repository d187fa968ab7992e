//! The form of an object: an extent of a content, with a checksum for each frame of it.
//!
//! ```text
//! data (1 byte to 4 MiB) | CRC-64 of each frame of 32 KiB of it, u64, little-endian
//! ```
//!
//! A checksum is over the frame, the id and the mark of the content, the index of the extent and the index of the
//! frame, so a frame in another place is as corrupt as a changed one, and so is that of another server. Contents of
//! earlier versions have no mark. A range is read with the frames that it lies in.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::{
    checksum::Crc64,
    record::{ContentId, Part},
};

/// Length of every extent of a content but the last, in bytes.
pub(crate) const EXTENT_BYTES: u64 = 4 * 1024 * 1024;
/// Length of every frame of an extent but the last, in bytes.
pub(crate) const FRAME_BYTES: u64 = 32 * 1024;
/// Length of a checksum, in bytes.
const CHECKSUM_BYTES: u64 = 8;

/// Names an extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExtentId {
    /// The content that it is of.
    pub(crate) content: ContentId,
    /// The mark of the content; not in the name of the object, and 0 where only that is known.
    pub(crate) mark: u64,
    /// Its index in the content.
    pub(crate) index: u64,
}

/// An extent with the length of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Its name.
    pub(crate) id: ExtentId,
    /// Length of its data, in bytes.
    pub(crate) size: u64,
}

/// The extent differs from its checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes differ from their checksum: frame=`{0}`")]
pub(crate) struct CorruptFrame(u64);

/// Where a range of an extent is in its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrameRanges {
    /// The frames that the range lies in.
    pub(crate) data: Range<u64>,
    /// Their checksums.
    pub(crate) checksums: Range<u64>,
}

impl Extent {
    /// The extents of a content.
    pub(crate) fn of_part(Part { content, mark, size }: Part) -> impl Iterator<Item = Self> {
        (0..size.div_ceil(EXTENT_BYTES)).map(move |index| {
            let size = EXTENT_BYTES.min(size - index * EXTENT_BYTES);
            Self { id: ExtentId { content, mark, index }, size }
        })
    }

    /// The bytes of its object.
    pub(crate) fn object_bytes(&self) -> u64 {
        self.size + self.size.div_ceil(FRAME_BYTES) * CHECKSUM_BYTES
    }

    /// What to read for a range of the data, which lies in it and is not empty.
    pub(crate) fn frames(&self, range: &Range<u64>) -> FrameRanges {
        let (first, end) = (range.start / FRAME_BYTES, range.end.div_ceil(FRAME_BYTES));
        let checksum = |frame: u64| self.size + frame * CHECKSUM_BYTES;
        FrameRanges {
            data: first * FRAME_BYTES..self.size.min(end * FRAME_BYTES),
            checksums: checksum(first)..checksum(end),
        }
    }

    /// The bytes of a range, from the frames that [`Extent::frames`] named.
    ///
    /// # Errors
    /// A frame that differs from its checksum.
    pub(crate) fn verified(
        &self,
        range: &Range<u64>,
        data: &Bytes,
        checksums: &[u8],
    ) -> Result<Bytes, CorruptFrame> {
        let start = self.frames(range).data.start;
        let first = start / FRAME_BYTES;
        let frames = data.chunks(to_usize(FRAME_BYTES));
        let mut stored = checksums.chunks_exact(to_usize(CHECKSUM_BYTES));
        for (frame, bytes) in (first..).zip(frames) {
            let expected = stored.next().and_then(|it| it.try_into().ok()).map(u64::from_le_bytes);
            if expected != Some(frame_checksum(self.id, frame, bytes)) {
                return Err(CorruptFrame(frame));
            }
        }
        let requested = to_usize(range.start - start)..to_usize(range.end - start);
        if requested.end > data.len() {
            return Err(CorruptFrame(first));
        }
        Ok(data.slice(requested))
    }
}

impl ExtentId {
    /// The name of its object.
    pub(crate) fn object(&self) -> String {
        format!("{:016x}-{:08x}", self.content.0, self.index)
    }

    /// The extent of an object; none for a foreign name.
    pub(crate) fn of_object(name: &str) -> Option<Self> {
        let (content, index) = name.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let id = Self { content: ContentId(number(content)?), mark: 0, index: number(index)? };
        (id.object() == name).then_some(id)
    }

    /// The checksums of its data, as its object ends with them. The data may be in pieces.
    pub(crate) fn checksums(&self, pieces: &[Bytes]) -> Bytes {
        let mut checksums = BytesMut::new();
        let (mut crc, mut frame, mut length) = (Crc64::new(), 0, 0);
        for mut piece in pieces.iter().cloned() {
            while !piece.is_empty() {
                let part = piece.split_to(piece.len().min(to_usize(FRAME_BYTES) - length));
                crc.update(&part);
                length += part.len();
                if length == to_usize(FRAME_BYTES) {
                    checksums.extend_from_slice(&self.sealed(crc, frame).to_le_bytes());
                    (crc, frame, length) = (Crc64::new(), frame + 1, 0);
                }
            }
        }
        if length > 0 {
            checksums.extend_from_slice(&self.sealed(crc, frame).to_le_bytes());
        }
        checksums.freeze()
    }

    fn sealed(&self, mut crc: Crc64, frame: u64) -> u64 {
        let mark = Some(self.mark).filter(|mark| *mark != 0);
        for number in [self.content.0, self.index, frame].into_iter().chain(mark) {
            crc.update(&number.to_le_bytes());
        }
        crc.value()
    }
}

fn frame_checksum(id: ExtentId, frame: u64, bytes: &[u8]) -> u64 {
    let mut crc = Crc64::new();
    crc.update(bytes);
    id.sealed(crc, frame)
}

/// A number of bytes or blocks in memory, which fits.
pub(crate) fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
