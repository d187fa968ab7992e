//! A group with its rows, as a reader of the change log needs it.
//!
//! Its framing and its hash are checked first, by what a recovery reads with; then its items are read again, most often
//! from the same buffer.

use std::io::{self, Read, Seek};

use bytes::Bytes;

use super::group::{
    EDGE_BYTES, GroupRead, ITEM_HEADER_BYTES, ItemHeader, PLAIN, TOMBSTONE, VALUE, end, item,
    read_group,
};
use super::rows::RowsByKind;
use super::window::FileWindow;
use trestle_kv::limits::{CHANGE_BYTES_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// Most bytes of keys and values of a group. One is closed by the change that takes it to 1 MiB, and the engine's own
/// rows are small.
const GROUP_BYTES_MAX: usize = CHANGE_BYTES_MAX + 8 * 1024 * 1024;

/// A group of a journal.
#[derive(Debug)]
pub(crate) struct LoggedGroup {
    /// Where the next one begins.
    pub(crate) end: u64,
    /// The hash in its end.
    pub(crate) check: u64,
    pub(crate) seqno: u64,
    pub(crate) items: Vec<LoggedItem>,
}

/// A row that a group writes; no value, if it is deleted.
#[derive(Debug)]
pub(crate) struct LoggedItem {
    pub(crate) key: Bytes,
    pub(crate) value: Option<Bytes>,
}

/// A group that is not read.
#[derive(Debug)]
pub(crate) enum GroupFault {
    /// It is damaged, or not finished.
    Damaged(String),
    /// It has an item that this engine does not write.
    Unsupported(String),
}

/// One journal, read group by group.
pub(crate) struct GroupReader<R> {
    window: FileWindow<R>,
    rows: RowsByKind,
}

impl<R: Read + Seek> GroupReader<R> {
    /// Reads the first bytes of a journal, up to `end`.
    pub(crate) fn new(source: R, end: u64) -> Self {
        Self { window: FileWindow::new(source, end), rows: RowsByKind::default() }
    }

    /// Where reading ends.
    pub(crate) fn end(&self) -> u64 {
        self.window.end()
    }

    /// The hash of the group that ends at a position; nothing where none does.
    pub(crate) fn check_before(&mut self, at: u64) -> io::Result<Option<u64>> {
        match at.checked_sub(EDGE_BYTES) {
            Some(from) => end(&mut self.window, from),
            None => Ok(None),
        }
    }

    /// The group that begins at a position.
    pub(crate) fn read(&mut self, from: u64) -> io::Result<Result<LoggedGroup, GroupFault>> {
        let (group_end, seqno) = match read_group(&mut self.window, from, &mut self.rows)? {
            GroupRead::Whole { end, seqno } => (end, seqno),
            GroupRead::Altered { .. } => return Ok(damaged("the hash of a group is wrong")),
            GroupRead::Broken { at } => {
                return Ok(damaged(&format!("no whole group is there: broken_at=`{at}`")));
            }
        };
        let items_end = group_end - EDGE_BYTES;
        let Some(check) = end(&mut self.window, items_end)? else {
            return Ok(damaged("the end of a group changed while it was read"));
        };
        let (mut items, mut at, mut left) = (Vec::new(), from + EDGE_BYTES, GROUP_BYTES_MAX);
        while at < items_end {
            let Some(header) = item(&mut self.window, at)? else {
                let reason = format!("a keyspace was cleared: at=`{at}`");
                return Ok(Err(GroupFault::Unsupported(reason)));
            };
            let read = match self.item(at + ITEM_HEADER_BYTES, header, left)? {
                Ok(read) => read,
                Err(fault) => return Ok(Err(fault)),
            };
            left -= read.key.len() + read.value.as_ref().map_or(0, Bytes::len);
            items.push(read);
            at += ITEM_HEADER_BYTES + u64::from(header.key_bytes) + u64::from(header.stored_bytes);
        }
        Ok(Ok(LoggedGroup { end: group_end, check, seqno, items }))
    }

    /// The key and the value behind a header, if they have at most `left` bytes.
    fn item(
        &mut self,
        at: u64,
        header: ItemHeader,
        left: usize,
    ) -> io::Result<Result<LoggedItem, GroupFault>> {
        let ItemHeader { value_type, compression, .. } = header;
        let to_usize = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (key_bytes, value_bytes) =
            (usize::from(header.key_bytes), to_usize(header.value_bytes));
        if value_type > TOMBSTONE {
            let reason = format!("an item has another type: type=`{value_type}`, at=`{at}`");
            return Ok(Err(GroupFault::Unsupported(reason)));
        }
        // What LZ4 stores of a value that does not compress is a little longer.
        let stored_max = value_bytes.saturating_add(value_bytes / 8 + 64);
        if key_bytes == 0
            || key_bytes > KEY_BYTES_MAX
            || value_bytes > VALUE_BYTES_MAX
            || to_usize(header.stored_bytes) > stored_max
            || key_bytes + value_bytes > left
        {
            return Ok(damaged(&format!(
                "an item has a length that is not possible: at=`{at}`, key_bytes=`{key_bytes}`, \
                 value_bytes=`{value_bytes}`, stored_bytes=`{}`",
                header.stored_bytes
            )));
        }
        let value_at = at + u64::from(header.key_bytes);
        let key = Bytes::from(self.window.read(at, value_at)?);
        if value_type != VALUE {
            return Ok(Ok(LoggedItem { key, value: None }));
        }
        let stored = self.window.read(value_at, value_at + u64::from(header.stored_bytes))?;
        let value =
            if compression == PLAIN { Some(stored) } else { decompress(&stored, value_bytes) };
        let Some(value) = value else {
            return Ok(damaged(&format!("a value cannot be decompressed: at=`{at}`")));
        };
        Ok(Ok(LoggedItem { key, value: Some(value.into()) }))
    }
}

/// A value of so many bytes.
fn decompress(stored: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let mut value = vec![0; bytes];
    let written = lz4_flex::block::decompress_into(stored, &mut value).ok()?;
    (written == bytes).then_some(value)
}

fn damaged<T>(reason: &str) -> Result<T, GroupFault> {
    Err(GroupFault::Damaged(reason.to_owned()))
}

#[cfg(test)]
mod tests;
