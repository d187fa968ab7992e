//! Runs of rows, as chunks contain them, and where a run ends.
//!
//! ```text
//! 1 | for each row: shared varint, suffix length varint, value length varint, suffix, value
//! ```
//!
//! `shared` is how many bytes the key has in common with the one before. A run ends where its last key decides, so
//! that a change of a row changes one run, and rows that come or go change the runs around them and no others.

use bytes::Bytes;
use prost::encoding::encode_varint;
use trestle_kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use xxhash_rust::xxh3::xxh3_64;

const VERSION: u8 = 1;
/// No run ends before it has this length, in bytes, unless there are no more rows.
const BYTES_MIN: usize = 256 * 1024;
/// A run ends at once when it has this length, in bytes.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Beyond the least, a run is so long on average.
const BYTES_MEAN: u64 = 768 * 1024;
/// What a row has beside its value, about.
const SUFFIX_BYTES: usize = 16;

/// Bytes of a key that a manifest names.
const KEY_BYTES_SHOWN: usize = 200;

/// Some rows, in the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkedRows {
    /// Their form.
    pub(crate) bytes: Vec<u8>,
    /// How many.
    pub(crate) rows: u64,
    /// The first key.
    pub(crate) first: Bytes,
    /// The last key.
    pub(crate) last: Bytes,
}

/// Cuts rows into runs.
#[derive(Default)]
pub(crate) struct RowChunker {
    bytes: Vec<u8>,
    rows: u64,
    first: Bytes,
    last: Bytes,
}

impl RowChunker {
    /// Without rows.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a row behind those before. Returns the run that ends with it.
    pub(crate) fn push(&mut self, key: &Bytes, value: &[u8]) -> Option<ChunkedRows> {
        if self.rows == 0 {
            self.bytes.push(VERSION);
            self.first = key.clone();
        }
        let shared = match self.rows {
            0 => 0,
            _ => self.last.iter().zip(key).take_while(|(a, b)| a == b).count(),
        };
        let suffix = key.get(shared..).unwrap_or_default();
        for number in [shared, suffix.len(), value.len()] {
            encode_varint(number as u64, &mut self.bytes);
        }
        self.bytes.extend_from_slice(suffix);
        self.bytes.extend_from_slice(value);
        self.last = key.clone();
        self.rows += 1;
        self.ends(key, value).then(|| self.cut())
    }

    /// The last run, if any rows are left.
    pub(crate) fn finish(mut self) -> Option<ChunkedRows> {
        (self.rows > 0).then(|| self.cut())
    }

    /// By the row alone, beyond the bounds, and not by how much its key has in common with the one before: the chance
    /// grows with the size, so that runs of large and of small rows have about the same length.
    fn ends(&self, key: &[u8], value: &[u8]) -> bool {
        let chance = u64::MAX / BYTES_MEAN;
        let row = u64::try_from(value.len() + SUFFIX_BYTES).unwrap_or(u64::MAX);
        self.bytes.len() >= BYTES_MAX
            || (self.bytes.len() >= BYTES_MIN && xxh3_64(key) < chance.saturating_mul(row))
    }

    fn cut(&mut self) -> ChunkedRows {
        let Self { bytes, rows, first, last } = std::mem::take(self);
        ChunkedRows { bytes, rows, first, last }
    }
}

/// Bytes that are no run of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its rows are malformed: {0}")]
pub(crate) struct MalformedRows(&'static str);

/// The rows of a run, up to the first that is malformed. Keys and values are within the limits of the store, and keys
/// ascend.
pub(crate) fn decode(run: &[u8]) -> impl Iterator<Item = Result<(Bytes, Bytes), MalformedRows>> {
    let (version, rest) = run.split_first().unwrap_or((&0, &[]));
    let failed = (*version != VERSION).then_some(MalformedRows("unknown version"));
    RunReader { rest, key: None, failed }
}

struct RunReader<'r> {
    rest: &'r [u8],
    key: Option<Bytes>,
    failed: Option<MalformedRows>,
}

impl Iterator for RunReader<'_> {
    type Item = Result<(Bytes, Bytes), MalformedRows>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(failed) = self.failed.take() {
            self.rest = &[];
            return Some(Err(failed));
        }
        if self.rest.is_empty() {
            return None;
        }
        let row = self.row();
        if row.is_err() {
            self.rest = &[];
        }
        Some(row)
    }
}

impl<'r> RunReader<'r> {
    fn row(&mut self) -> Result<(Bytes, Bytes), MalformedRows> {
        let (shared, suffix, value) = (self.varint()?, self.varint()?, self.varint()?);
        if value > VALUE_BYTES_MAX || suffix > KEY_BYTES_MAX {
            return Err(MalformedRows("a length is out of range"));
        }
        let suffix = self.take(suffix)?;
        let value = Bytes::copy_from_slice(self.take(value)?);
        let before = self.key.as_deref().unwrap_or_default();
        let prefix = before.get(..shared).ok_or(MalformedRows("a key refers to no bytes"))?;
        let key = Bytes::from([prefix, suffix].concat());
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(MalformedRows("a key is out of range"));
        }
        if self.key.as_ref().is_some_and(|before| *before >= key) {
            return Err(MalformedRows("keys do not ascend"));
        }
        self.key = Some(key.clone());
        Ok((key, value))
    }

    fn varint(&mut self) -> Result<usize, MalformedRows> {
        let mut number = 0_usize;
        for shift in [0, 7, 14, 21] {
            let (byte, rest) = self.rest.split_first().ok_or(MalformedRows("a row is cut off"))?;
            self.rest = rest;
            number |= usize::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(MalformedRows("a length is out of range"))
    }

    fn take(&mut self, length: usize) -> Result<&'r [u8], MalformedRows> {
        let cut = self.rest.split_at_checked(length);
        let (bytes, rest) = cut.ok_or(MalformedRows("a row is cut off"))?;
        self.rest = rest;
        Ok(bytes)
    }
}

/// The beginning of a key, for people.
pub(crate) fn shown_key(key: &[u8]) -> String {
    key.get(..KEY_BYTES_SHOWN).unwrap_or(key).escape_ascii().to_string()
}

#[cfg(test)]
mod tests;
