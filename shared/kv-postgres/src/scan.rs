//! Scans: the rows of a range, and those of the layers below its pointers, in the order of their keys.

use std::collections::VecDeque;

use bytes::Bytes;
use trestle_kv::{Direction, Entry, Scan, ScanLimit, Span, after_key, after_prefix};

use crate::{
    failure::Failure,
    place::{LAYER_BYTES, ROW_BYTES_MAX, layer, pointer, start_of_layer},
    session::ReadSession,
};

/// Most rows that are requested at a time: a page of a thousand, and the row that shows whether there are more.
const BATCH_ROWS: usize = 1_024;

/// Reads the entries of a range. All of its requests must be of one snapshot; `once` is for none: then nothing is
/// returned where one request is not enough.
pub(crate) async fn scan(
    session: &ReadSession,
    keyspace: usize,
    span: &Span,
    limit: ScanLimit,
    once: bool,
) -> Result<Option<Scan>, Failure> {
    let mut reader =
        ScanReader { limit, bytes: 0, scan: Scan { entries: Vec::new(), more: false } };
    let mut levels = vec![ScanLevel::top(span)];
    let mut requests = 0;
    while let Some(level) = levels.last_mut() {
        let Some((row, value)) = level.rows.pop_front() else {
            if level.is_exhausted {
                levels.pop();
                continue;
            }
            if once && requests > 0 {
                return Ok(None);
            }
            requests += 1;
            level.fetch(session, keyspace, &reader).await?;
            continue;
        };
        if let Some(start) = start_of_layer(&row) {
            let below = level.below(start);
            levels.push(below);
        } else if reader.is_full() {
            reader.scan.more = true;
            break;
        } else {
            reader.push(level.key_of(&row), value);
        }
    }
    Ok(Some(reader.scan))
}

/// What was read, and how much is still to be.
struct ScanReader {
    limit: ScanLimit,
    bytes: usize,
    scan: Scan,
}

impl ScanReader {
    /// Whether the last entry met a limit. At least one is read, whatever they are.
    fn is_full(&self) -> bool {
        let rows = self.scan.entries.len();
        rows > 0 && (rows >= self.limit.rows || self.bytes >= self.limit.bytes)
    }

    fn push(&mut self, key: Bytes, value: Bytes) {
        self.bytes = self.bytes.saturating_add(key.len()).saturating_add(value.len());
        self.scan.entries.push(Entry { key, value });
    }

    /// How many rows and bytes to request: one row more than is returned shows whether there are more.
    fn wanted(&self) -> (usize, usize) {
        let rows = self.limit.rows.saturating_sub(self.scan.entries.len()).saturating_add(1);
        let bytes = self.limit.bytes.saturating_sub(self.bytes).max(1);
        (rows.min(BATCH_ROWS), bytes)
    }
}

/// The rows of one layer that a scan reads.
struct ScanLevel {
    /// Its range, in keys of the layer.
    span: Span,
    /// What its rows are a part of: the start of each key, in place of the first bytes of its row.
    prefix: Bytes,
    stripped: usize,
    /// Rows that were read and not used yet.
    rows: VecDeque<(Bytes, Bytes)>,
    /// The range of rows that were not read yet.
    lower: Vec<u8>,
    upper: Vec<u8>,
    is_exhausted: bool,
}

impl ScanLevel {
    fn top(span: &Span) -> Self {
        Self::of(span.clone(), Bytes::new(), 0)
    }

    fn of(span: Span, prefix: Bytes, stripped: usize) -> Self {
        let (lower, upper) = (lower(&span.start), upper(&span.end));
        let rows = VecDeque::new();
        Self { span, prefix, stripped, rows, lower, upper, is_exhausted: false }
    }

    /// The key of a row.
    fn key_of(&self, row: &[u8]) -> Bytes {
        let rest = row.get(self.stripped..).unwrap_or_default();
        [&self.prefix, rest].concat().into()
    }

    /// The layer of the keys that begin so.
    fn below(&self, start: &[u8]) -> Self {
        let prefix = layer(start);
        let bound = |key: &[u8]| {
            let rest = key.strip_prefix(start).filter(|rest| !rest.is_empty());
            rest.map(|rest| [&prefix, rest].concat())
        };
        let first = bound(&self.span.start).unwrap_or_else(|| prefix.to_vec());
        let end = bound(&self.span.end).unwrap_or_else(|| after_prefix(&prefix));
        let span = Span { direction: self.span.direction, ..Span::new(first, end) };
        Self::of(span, self.key_of(start), LAYER_BYTES)
    }

    async fn fetch(
        &mut self,
        session: &ReadSession,
        keyspace: usize,
        reader: &ScanReader,
    ) -> Result<(), Failure> {
        let (rows_max, bytes_max) = reader.wanted();
        let statements = session.of(keyspace)?;
        let statement = match self.span.direction {
            Direction::Forward => &statements.scan_up,
            Direction::Backward => &statements.scan_down,
        };
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let (lower, upper) = (&self.lower[..], &self.upper[..]);
        let (rows, bytes) = (number(rows_max), number(bytes_max));
        let found = session.client().query(statement, &[&lower, &upper, &rows, &bytes]).await?;
        let mut read = 0;
        for row in &found {
            let (key, value): (&[u8], &[u8]) = (row.try_get(0)?, row.try_get(1)?);
            read += key.len() + value.len();
            self.rows.push_back((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
        }
        self.is_exhausted = found.len() < rows_max && read < bytes_max;
        if let Some((last, _)) = self.rows.back() {
            match self.span.direction {
                Direction::Forward => self.lower = after_key(last),
                Direction::Backward => self.upper = last.to_vec(),
            }
        }
        Ok(())
    }
}

/// The first row that may belong to a range that starts here.
fn lower(start: &[u8]) -> Vec<u8> {
    match start.split_at_checked(ROW_BYTES_MAX) {
        Some((first, rest)) if !rest.is_empty() => pointer(first),
        _ => start.to_vec(),
    }
}

/// The first row that cannot belong to a range that ends here.
fn upper(end: &[u8]) -> Vec<u8> {
    match end.split_at_checked(ROW_BYTES_MAX) {
        Some((first, rest)) if !rest.is_empty() => after_key(&pointer(first)),
        _ => end.to_vec(),
    }
}
