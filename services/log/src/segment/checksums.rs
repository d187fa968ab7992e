//! Checksums of a segment: CRC-64/NVME of every frame of 64 KiB, stored in the manifest, so that every byte that a read
//! returns was verified.

use std::ops::Range;

use bytes::Bytes;
use crc64fast_nvme::Digest;

/// Bytes of a frame; the last one may be shorter.
pub(super) const FRAME_BYTES: u64 = 64 * 1024;
/// Bytes of a checksum.
const CHECKSUM_BYTES: usize = 8;

/// The checksums of the frames of an object.
pub(super) fn checksums_of(object: &[u8]) -> Bytes {
    #[expect(clippy::cast_possible_truncation, reason = "64 KiB")]
    let frames = object.chunks(FRAME_BYTES as usize);
    frames.flat_map(|frame| checksum_of(frame).to_le_bytes()).collect()
}

fn checksum_of(frame: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.write(frame);
    digest.sum64()
}

/// The range of the whole frames that overlap `range`, in an object of `size` bytes.
pub(super) fn frames_around(range: &Range<u64>, size: u64) -> Range<u64> {
    let start = range.start / FRAME_BYTES * FRAME_BYTES;
    start..range.end.next_multiple_of(FRAME_BYTES).min(size)
}

/// The offset of the first frame that is corrupt, of those in `bytes`, which begin at `start`.
pub(super) fn find_corrupt(bytes: &[u8], start: u64, checksums: &[u8]) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, reason = "64 KiB")]
    let frames = bytes.chunks(FRAME_BYTES as usize);
    let offsets = (start / FRAME_BYTES..).map(|index| index * FRAME_BYTES);
    frames.zip(offsets).find_map(|(frame, offset)| {
        let index = usize::try_from(offset / FRAME_BYTES).ok()?;
        let at = index.checked_mul(CHECKSUM_BYTES);
        let expected = at.and_then(|at| checksums.get(at..)?.first_chunk::<CHECKSUM_BYTES>());
        let is_intact = expected == Some(&checksum_of(frame).to_le_bytes());
        (!is_intact).then_some(offset)
    })
}
