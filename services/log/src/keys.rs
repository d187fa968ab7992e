//! Every key of the log service, and the domains that they belong to.
//!
//! The first byte of a key is its kind. Kinds are part of the disk format: never renumber, never reuse.
//!
//! | kind | key after the kind | value |
//! |---|---|---|
//! | 0x70 stream | account, name | `StreamRecord` |
//! | 0x71 deleted stream | stream id u64 | version 1, ticks u64 |
//! | 0x72 head | stream id u64 | `Head` |
//! | 0x73 segment | stream id u64, newest time u64, segment id u64 | `SegmentRecord` |
//! | 0x74 announced object | stream id u64, segment id u64 | path of an object that is not published |
//! | 0x75 retired object | stream id u64, ticks u64, segment id u64 | path of an object that was published |
//! | 0x76 request | stream id u64, request id | `RequestRecord` |
//! | 0x77 time of a request | stream id u64, ticks u64, request id | version 1, ticks u64 |
//! | 0x78 expired segment | stream id u64, ticks u64, segment id u64 | `SegmentRecord` of one past its retention |
//! | 0x80 batch | stream id u64, first sequence u64 | see `batch` |
//!
//! All keys with a stream id form one domain, the stream; each other key is a domain of its own. Times of records are
//! nanoseconds since 1970, those of changes are ticks.

use bytes::Bytes;
use trestle_kv::{Domain, DomainRef, Keyspace, Span, key_domain, order};
use trestle_model::{name::AccountName, time::Ticks};

use crate::{
    error::LogError,
    names::StreamName,
    stream::{SegmentId, StreamId},
};

const STREAM: u8 = 0x70;
const DELETED: u8 = 0x71;
const HEAD: u8 = 0x72;
const SEGMENT: u8 = 0x73;
const ANNOUNCED: u8 = 0x74;
const RETIRED: u8 = 0x75;
const REQUEST: u8 = 0x76;
const REQUEST_TIME: u8 = 0x77;
const EXPIRED: u8 = 0x78;
const BATCH: u8 = 0x80;

/// Version byte of the numbers in this file.
const VERSION: u8 = 1;
/// Kind and stream id.
const HEAD_BYTES: usize = 9;

/// The keyspaces of this service: records, and the batches that are not sealed.
pub const KEYSPACES: &[Keyspace] = &[
    Keyspace { name: "log_meta", kinds: 0x70..=0x7F, domain: domain_of },
    Keyspace { name: "log_tail", kinds: 0x80..=0x83, domain: domain_of },
];

/// A kind of rows of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamRow {
    /// Published segments.
    Segment = SEGMENT as isize,
    /// Objects that are being written.
    Announced = ANNOUNCED as isize,
    /// Objects that are to be deleted.
    Retired = RETIRED as isize,
    /// Request ids.
    Request = REQUEST as isize,
    /// Request ids by time.
    RequestTime = REQUEST_TIME as isize,
    /// Segments past the retention, which can be restored.
    Expired = EXPIRED as isize,
    /// Batches.
    Batch = BATCH as isize,
}

impl StreamRow {
    /// All of them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Segment,
        Self::Expired,
        Self::Announced,
        Self::Retired,
        Self::Request,
        Self::RequestTime,
        Self::Batch,
    ];

    fn kind(self) -> u8 {
        match self {
            Self::Segment => SEGMENT,
            Self::Announced => ANNOUNCED,
            Self::Retired => RETIRED,
            Self::Request => REQUEST,
            Self::RequestTime => REQUEST_TIME,
            Self::Expired => EXPIRED,
            Self::Batch => BATCH,
        }
    }
}

fn domain_of(key: &[u8]) -> DomainRef<'_> {
    let is_of_stream = matches!(
        key.first(),
        Some(&(HEAD | SEGMENT | ANNOUNCED | RETIRED | REQUEST | REQUEST_TIME | EXPIRED | BATCH))
    );
    let part = is_of_stream.then(|| key.get(1..HEAD_BYTES)).flatten();
    part.map_or_else(|| key_domain(key), |part| DomainRef { group: HEAD, part })
}

/// The domain of every row of a stream.
pub(crate) fn stream_domain(id: StreamId) -> Domain {
    Domain::of_key(&head(id), domain_of)
}

/// The domain of a key that contains no stream id.
pub(crate) fn own_domain(key: &Bytes) -> Domain {
    Domain::of_key(key, domain_of)
}

fn numbered(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + 8 * numbers.len());
    key.push(kind);
    for number in numbers {
        order::push_u64(&mut key, *number);
    }
    key
}

fn of_account(account: &AccountName) -> Vec<u8> {
    let mut key = vec![STREAM];
    order::push_text(&mut key, account.as_str());
    key
}

/// Key of the record of a stream.
pub(crate) fn stream(account: &AccountName, name: &StreamName) -> Bytes {
    let mut key = of_account(account);
    order::push_text(&mut key, name.as_str());
    key.into()
}

/// The streams of an account whose names start with `prefix`, by name.
pub(crate) fn streams(account: &AccountName, prefix: &str) -> Span {
    let mut key = of_account(account);
    // The text without its end mark: names are ASCII.
    key.extend_from_slice(prefix.as_bytes());
    Span::prefix(&key)
}

/// The kind of a row of a stream; none of another row.
pub(crate) fn row_of(key: &[u8]) -> Option<StreamRow> {
    StreamRow::ALL.into_iter().find(|row| key.first() == Some(&row.kind()))
}

/// Every stream.
pub(crate) fn every_stream() -> Span {
    Span::prefix(&[STREAM])
}

/// The head of every stream.
pub(crate) fn every_head() -> Span {
    Span::prefix(&[HEAD])
}

/// The id in a key of [`head`].
pub(crate) fn head_of(key: &[u8]) -> Result<StreamId, LogError> {
    let id = || order::take_u64(&mut key.get(1..)?);
    id().map(StreamId).ok_or_else(|| LogError::corrupt("key of a head"))
}

/// The account and the name in a key of [`stream`].
pub(crate) fn stream_name_of(key: &[u8]) -> Result<(String, StreamName), LogError> {
    let name = || {
        let mut rest = key.get(1..)?;
        let account = order::take_text(&mut rest)?;
        Some((account, StreamName::stored(order::take_text(&mut rest)?)))
    };
    name().ok_or_else(|| LogError::corrupt("key of a stream"))
}

/// Key of a deleted stream.
pub(crate) fn deleted_stream(id: StreamId) -> Bytes {
    numbered(DELETED, &[id.0]).into()
}

/// Every deleted stream.
pub(crate) fn deleted_streams() -> Span {
    Span::prefix(&[DELETED])
}

/// Key of the position of a stream.
pub(crate) fn head(id: StreamId) -> Bytes {
    numbered(HEAD, &[id.0]).into()
}

/// Every row of one kind of a stream.
pub(crate) fn rows(row: StreamRow, id: StreamId) -> Span {
    Span::prefix(&numbered(row.kind(), &[id.0]))
}

/// The rows of one kind of a stream whose next number is at least this.
pub(crate) fn rows_from(row: StreamRow, id: StreamId, number: u64) -> Span {
    Span::new(numbered(row.kind(), &[id.0, number]), rows(row, id).end)
}

/// The rows of one kind of a stream whose next number is less than this.
pub(crate) fn rows_before(row: StreamRow, id: StreamId, number: u64) -> Span {
    Span::new(rows(row, id).start, numbered(row.kind(), &[id.0, number]))
}

/// Key of a segment.
pub(crate) fn segment(stream: StreamId, max_time: u64, id: SegmentId) -> Bytes {
    numbered(SEGMENT, &[stream.0, max_time, id.0]).into()
}

/// Key of an object that is written before it is published.
pub(crate) fn announced(stream: StreamId, id: SegmentId) -> Bytes {
    numbered(ANNOUNCED, &[stream.0, id.0]).into()
}

/// Key of an object that is to be deleted a while after this time.
pub(crate) fn retired(stream: StreamId, at: Ticks, id: SegmentId) -> Bytes {
    numbered(RETIRED, &[stream.0, at.get(), id.0]).into()
}

/// Key of a segment that its retention removed at this time.
pub(crate) fn expired(stream: StreamId, at: Ticks, id: SegmentId) -> Bytes {
    numbered(EXPIRED, &[stream.0, at.get(), id.0]).into()
}

/// Key of a request id.
pub(crate) fn request(stream: StreamId, id: &str) -> Bytes {
    let mut key = numbered(REQUEST, &[stream.0]);
    key.extend_from_slice(id.as_bytes());
    key.into()
}

/// Key of the time of a request id.
pub(crate) fn request_time(stream: StreamId, at: Ticks, id: &str) -> Bytes {
    let mut key = numbered(REQUEST_TIME, &[stream.0, at.get()]);
    key.extend_from_slice(id.as_bytes());
    key.into()
}

/// The request id in a key of [`request_time`].
pub(crate) fn request_id_of(key: &[u8]) -> Result<&str, LogError> {
    let id = key.get(HEAD_BYTES + 8..).and_then(|id| std::str::from_utf8(id).ok());
    id.ok_or_else(|| LogError::corrupt("key of the time of a request"))
}

/// Key of a batch.
pub(crate) fn batch(stream: StreamId, first_sequence: u64) -> Bytes {
    numbered(BATCH, &[stream.0, first_sequence]).into()
}

/// The stream in the key of one of its rows, or of a deleted one.
pub(crate) fn stream_of(key: &[u8]) -> Result<StreamId, LogError> {
    let id = || order::take_u64(&mut key.get(1..)?);
    id().map(StreamId).ok_or_else(|| LogError::corrupt("key of a row of a stream"))
}

/// The number behind the stream id in a key.
pub(crate) fn number_of(key: &[u8]) -> Result<u64, LogError> {
    let number = || order::take_u64(&mut key.get(HEAD_BYTES..)?);
    number().ok_or_else(|| LogError::corrupt("key with a number"))
}

/// The stored form of a time.
pub(crate) fn encode_ticks(ticks: Ticks) -> Bytes {
    let mut value = vec![VERSION];
    order::push_u64(&mut value, ticks.get());
    value.into()
}

/// A time from its stored form.
///
/// # Errors
/// [`LogError::Corrupt`].
pub(crate) fn decode_ticks(value: &[u8]) -> Result<Ticks, LogError> {
    let ticks = match value.split_first() {
        Some((&VERSION, rest)) => rest.try_into().ok().map(u64::from_be_bytes),
        _ => None,
    };
    ticks.and_then(Ticks::new).ok_or_else(|| LogError::corrupt("time"))
}

#[cfg(test)]
mod tests;
