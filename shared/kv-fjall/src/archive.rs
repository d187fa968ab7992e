//! The archives in which the database keeps tables and what it lists of them: sections, a table of contents with a
//! checksum, and a trailer with its position.
//!
//! ```text
//! sections …  "TOC!" count (pos len name_len name)…  "SFA!" 1 0 toc_checksum toc_pos toc_len
//! ```

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use xxhash_rust::xxh3::xxh3_128;

const TOC_MAGIC: &[u8] = b"TOC!";
/// With the version of the format, and the kind of checksums.
const TRAILER_MAGIC: &[u8] = b"SFA!\x01\x00";
/// The trailer: its magic, a checksum, a position and a length.
const TRAILER_BYTES: usize = 38;
/// Most bytes of a table of contents: a section takes about thirty, and an archive has ten.
const TOC_BYTES_MAX: u64 = 64 * 1024;

/// A named part of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArchiveSection {
    pub(super) name: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

/// Where a section is.
struct TocEntry {
    pos: u64,
    len: u64,
    name: Vec<u8>,
}

/// The sections of an archive; none if it is not whole.
pub(super) fn read(archive: &[u8]) -> Option<Vec<ArchiveSection>> {
    let (_, trailer) = archive.split_last_chunk::<TRAILER_BYTES>()?;
    let (checksum, pos, len) = parse_trailer(trailer)?;
    let toc = part(archive, pos, len)?;
    let section = |entry: TocEntry| {
        let bytes = part(archive, entry.pos, entry.len)?.to_vec();
        Some(ArchiveSection { name: entry.name, bytes })
    };
    parse_toc(toc, checksum)?.into_iter().map(section).collect()
}

/// An archive of these sections.
pub(super) fn write(sections: &[ArchiveSection]) -> Vec<u8> {
    let (mut archive, mut entries) = (Vec::new(), Vec::new());
    for ArchiveSection { name, bytes } in sections {
        entries.extend(position(archive.len()).to_le_bytes());
        entries.extend(position(bytes.len()).to_le_bytes());
        entries.extend(u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
        entries.extend(name);
        archive.extend(bytes);
    }
    let count = u32::try_from(sections.len()).unwrap_or(u32::MAX).to_le_bytes();
    let toc = [TOC_MAGIC, &count, &entries].concat();
    let pos = position(archive.len());
    archive.extend(&toc);
    archive.extend(TRAILER_MAGIC);
    archive.extend(xxh3_128(&toc).to_le_bytes());
    archive.extend(pos.to_le_bytes());
    archive.extend(position(toc.len()).to_le_bytes());
    archive
}

/// Whether the end of an archive, by which the rest is found, is whole. Reads no section.
pub(super) fn has_whole_end(file: &File) -> io::Result<bool> {
    let bytes = file.metadata()?.len();
    let Some(start) = bytes.checked_sub(position(TRAILER_BYTES)) else { return Ok(false) };
    let mut trailer = [0; TRAILER_BYTES];
    file.read_exact_at(&mut trailer, start)?;
    let Some((checksum, pos, len)) = parse_trailer(&trailer) else { return Ok(false) };
    if len > TOC_BYTES_MAX || pos.checked_add(len) != Some(start) {
        return Ok(false);
    }
    let mut toc = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    file.read_exact_at(&mut toc, pos)?;
    Ok(parse_toc(&toc, checksum).is_some())
}

/// The checksum, the position and the length of the table of contents.
fn parse_trailer(trailer: &[u8; TRAILER_BYTES]) -> Option<(u128, u64, u64)> {
    let rest = trailer.strip_prefix(TRAILER_MAGIC)?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let (pos, len) = rest.split_first_chunk()?;
    let len = u64::from_le_bytes(len.try_into().ok()?);
    Some((u128::from_le_bytes(*checksum), u64::from_le_bytes(*pos), len))
}

fn parse_toc(toc: &[u8], checksum: u128) -> Option<Vec<TocEntry>> {
    if xxh3_128(toc) != checksum {
        return None;
    }
    let (count, mut rest) = toc.strip_prefix(TOC_MAGIC)?.split_first_chunk()?;
    let mut entries = Vec::new();
    for _ in 0..u32::from_le_bytes(*count) {
        let (pos, after) = rest.split_first_chunk()?;
        let (len, after) = after.split_first_chunk()?;
        let (name_len, after) = after.split_first_chunk()?;
        let (name, after) = after.split_at_checked(u16::from_le_bytes(*name_len).into())?;
        let (pos, len) = (u64::from_le_bytes(*pos), u64::from_le_bytes(*len));
        entries.push(TocEntry { pos, len, name: name.to_vec() });
        rest = after;
    }
    Some(entries)
}

fn part(archive: &[u8], pos: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(pos).ok()?;
    archive.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

fn position(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
