//! Where a key is kept: a row of an index has at most 2,704 bytes, and keys are longer.
//!
//! A key of up to [`ROW_BYTES_MAX`] bytes is its row. Of a longer one the first bytes, and a zero, are a *pointer*: an
//! empty row. The key itself is in a layer below it, as the hash of those first bytes and the rest, behind the kind 0,
//! which no keyspace has; where that is too long again, it has a pointer in the layer. So rows compare like keys: a
//! pointer stands where all keys of its layer would, a look-up of a key needs no other row, and a scan that meets a
//! pointer descends.
//!
//! A pointer is there exactly as long as its layer has a row. Keys of several domains may be below it, so a domain does
//! not protect it: each transaction that writes or removes a row below it locks the pointer itself, all of its pointers
//! in one statement and in their order, before it looks whether a layer is empty. See `row_changes`.

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use trestle_kv::after_prefix;

/// Longest key that is a row by itself. With the entry of the index around it that is within its bound, whatever the
/// bytes: an index compresses nothing of it.
pub(crate) const ROW_BYTES_MAX: usize = 2_400;

/// Bytes of the prefix of a layer: the kind 0 and a hash.
pub(crate) const LAYER_BYTES: usize = 33;

/// Where a key is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowPlace {
    /// The rows that scans need on their way to it, from the top.
    pub(crate) pointers: Vec<Bytes>,
    /// Its row.
    pub(crate) row: Bytes,
}

/// The place of a key.
pub(crate) fn place(key: &Bytes) -> RowPlace {
    let mut place = RowPlace { pointers: Vec::new(), row: key.clone() };
    while let Some((start, rest)) = place.row.split_at_checked(ROW_BYTES_MAX)
        && !rest.is_empty()
    {
        let below = [&layer(start), rest].concat();
        place.pointers.push(pointer(start).into());
        place.row = below.into();
    }
    place
}

/// The row of a key.
pub(crate) fn row_of(key: &[u8]) -> Bytes {
    place(&Bytes::copy_from_slice(key)).row
}

/// The pointer to the layer of the keys that begin so.
pub(crate) fn pointer(start: &[u8]) -> Vec<u8> {
    [start, &[0]].concat()
}

/// What the keys of a layer begin with.
pub(crate) fn layer(start: &[u8]) -> [u8; LAYER_BYTES] {
    let mut prefix = [0; LAYER_BYTES];
    if let Some((_, hash)) = prefix.split_first_mut() {
        hash.copy_from_slice(digest(&SHA256, start).as_ref());
    }
    prefix
}

/// The range of the rows in the layer of a pointer: the first one, and what is after the last one.
pub(crate) fn range_below(pointer: &[u8]) -> Option<([u8; LAYER_BYTES], Vec<u8>)> {
    let prefix = layer(start_of_layer(pointer)?);
    Some((prefix, after_prefix(&prefix)))
}

/// Of a row: what the keys of its layer begin with, if it is a pointer.
pub(crate) fn start_of_layer(row: &[u8]) -> Option<&[u8]> {
    match row.split_at_checked(ROW_BYTES_MAX) {
        Some((start, [0])) => Some(start),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
