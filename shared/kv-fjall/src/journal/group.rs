//! One group in a journal, as the pinned database writes it (fjall 3.1, little endian):
//!
//! ```text
//! start  01, items: u32, sequence number: u64
//! item   02, value type: u8, compression: u8, keyspace: u64, key bytes: u16, value bytes: u32,
//!        stored value bytes: u32, key, stored value
//! clear  04, keyspace: u64
//! end    03, XXH3 of all items: u64, "FJL" 03
//! ```
//!
//! The hash covers neither start nor end. A test reads what the database wrote, so a change of the
//! format in an update is noticed.

use std::io::{self, Read, Seek};

use xxhash_rust::xxh3::Xxh3;

use super::rows::RowsByKind;
use super::window::FileWindow;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const TRAILER: &[u8; 4] = b"FJL\x03";

/// Bytes of a start, and of an end.
pub(super) const EDGE_BYTES: u64 = 13;
pub(super) const ITEM_HEADER_BYTES: u64 = 21;
const CLEAR_BYTES: u64 = 9;
/// Fewest bytes of a group.
pub(super) const GROUP_BYTES_MIN: u64 = 2 * EDGE_BYTES + CLEAR_BYTES;

/// Value types that the database replays: value, tombstone, weak tombstone.
pub(super) const VALUE: u8 = 0;
pub(super) const TOMBSTONE: u8 = 1;
const VALUE_TYPE_MAX: u8 = 2;
/// Compressions: none, LZ4.
pub(super) const PLAIN: u8 = 0;
const COMPRESSION_MAX: u8 = 1;

/// Where a group begins, and the fields of its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupStart {
    pub(super) items: u32,
    pub(super) seqno: u64,
}

/// What was found where a group should begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupRead {
    /// It ends there, and its hash is right.
    Whole { end: u64, seqno: u64 },
    /// Its parts are in order up to the end of it, but its hash is wrong.
    Altered { end: u64 },
    /// Its parts are not in order, or it is not finished. Read up to there.
    Broken { at: u64 },
}

/// Reads a group, and counts the rows that it has, or has up to where it is broken.
pub(super) fn read_group<R: Read + Seek>(
    journal: &mut FileWindow<R>,
    from: u64,
    rows: &mut RowsByKind,
) -> io::Result<GroupRead> {
    rows.clear();
    let Some(GroupStart { items, seqno }) = start(journal, from)? else {
        return Ok(GroupRead::Broken { at: from });
    };
    let (mut at, mut hash) = (from + EDGE_BYTES, Xxh3::new());
    for _ in 0..items {
        let Some(end) = item_end(journal, at, rows)? else {
            return Ok(GroupRead::Broken { at });
        };
        journal.hash(at, end, &mut hash)?;
        at = end;
    }
    let Some(expected) = end(journal, at)? else {
        return Ok(GroupRead::Broken { at });
    };
    let end = at + EDGE_BYTES;
    Ok(if hash.digest() == expected {
        GroupRead::Whole { end, seqno }
    } else {
        GroupRead::Altered { end }
    })
}

/// The start of a group with items; nothing where there is none.
pub(super) fn start<R: Read + Seek>(
    journal: &mut FileWindow<R>,
    at: u64,
) -> io::Result<Option<GroupStart>> {
    let bytes = journal.get(at, EDGE_BYTES)?.unwrap_or_default();
    let Some((&START, rest)) = bytes.split_first() else { return Ok(None) };
    let (Some(items), Some(seqno)) = (u32_at(rest, 0), u64_at(rest, 4)) else { return Ok(None) };
    Ok((items > 0).then_some(GroupStart { items, seqno }))
}

/// The hash in the end of a group.
pub(super) fn end<R: Read + Seek>(journal: &mut FileWindow<R>, at: u64) -> io::Result<Option<u64>> {
    let bytes = journal.get(at, EDGE_BYTES)?.unwrap_or_default();
    let Some((&END, rest)) = bytes.split_first() else { return Ok(None) };
    Ok(u64_at(rest, 0).filter(|_| rest.get(8..) == Some(TRAILER)))
}

/// What is in front of the key and the value of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ItemHeader {
    pub(super) value_type: u8,
    pub(super) compression: u8,
    pub(super) key_bytes: u16,
    /// Bytes of the value.
    pub(super) value_bytes: u32,
    /// Bytes of the value as it is stored.
    pub(super) stored_bytes: u32,
}

/// The header of an item that begins there; nothing where that is another part of a group, or damaged.
pub(super) fn item<R: Read + Seek>(
    journal: &mut FileWindow<R>,
    at: u64,
) -> io::Result<Option<ItemHeader>> {
    let Some(header) = journal.get(at, ITEM_HEADER_BYTES)? else { return Ok(None) };
    let Some(&[tag, value_type, compression]) = header.first_chunk() else { return Ok(None) };
    let lengths = (u16_at(header, 11), u32_at(header, 13), u32_at(header, 17));
    let (Some(key_bytes), Some(value_bytes), Some(stored_bytes)) = lengths else {
        return Ok(None);
    };
    let is_plain_and_cut = compression == PLAIN && value_bytes != stored_bytes;
    let is_item = tag == ITEM
        && value_type <= VALUE_TYPE_MAX
        && compression <= COMPRESSION_MAX
        && !is_plain_and_cut;
    let header = ItemHeader { value_type, compression, key_bytes, value_bytes, stored_bytes };
    Ok(is_item.then_some(header))
}

/// Where the item ends that begins there.
fn item_end<R: Read + Seek>(
    journal: &mut FileWindow<R>,
    at: u64,
    rows: &mut RowsByKind,
) -> io::Result<Option<u64>> {
    let tag = journal.some(at)?.first().copied();
    if tag == Some(CLEAR) {
        return Ok(Some(at + CLEAR_BYTES).filter(|end| *end <= journal.end()));
    }
    let Some(header) = item(journal, at)? else { return Ok(None) };
    let end = at + ITEM_HEADER_BYTES + u64::from(header.key_bytes) + u64::from(header.stored_bytes);
    if end > journal.end() {
        return Ok(None);
    }
    if header.key_bytes > 0
        && let Some(kind) = journal.some(at + ITEM_HEADER_BYTES)?.first()
    {
        let kind = *kind;
        rows.count(kind);
    }
    Ok(Some(end))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
