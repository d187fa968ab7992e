//! The form of records on disk: a format byte, then a message of our own. Field numbers never change. It is independent
//! of the contract, so that a change of the contract never changes what is on disk.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use trestle_kv::Entry;
use trestle_model::time::Ticks;

use crate::{
    error::LogError,
    keys,
    segment::PromotedType,
    stream::{
        ExpiredSegment, Head, PromotedAttribute, RequestRecord, RollPolicy, SegmentId,
        SegmentRecord, StreamId, StreamRecord, StreamSettings,
    },
};

/// The first byte of a record.
const FORMAT: u8 = 1;

/// A record with a form on disk.
pub(crate) trait StoredForm: Sized {
    /// The message.
    type Form: Message + Default;
    /// What it is, for the error.
    const WHAT: &'static str;

    /// The message of a record.
    fn to_form(&self) -> Self::Form;

    /// The record of a message; none if a field is out of range.
    fn of_form(form: Self::Form) -> Option<Self>;

    /// The stored form.
    fn encode(&self) -> Bytes {
        let form = self.to_form();
        let mut value = Vec::with_capacity(1 + form.encoded_len());
        value.push(FORMAT);
        form.encode_raw(&mut value);
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`LogError::Corrupt`].
    fn decode(value: &[u8]) -> Result<Self, LogError> {
        let form = value.strip_prefix(&[FORMAT]).and_then(|it| Self::Form::decode(it).ok());
        form.and_then(Self::of_form).ok_or_else(|| LogError::corrupt(Self::WHAT))
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StreamForm {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    created_at: u64,
    #[prost(btree_map = "string, string", tag = "3")]
    labels: std::collections::BTreeMap<String, String>,
    #[prost(uint64, optional, tag = "4")]
    retention_seconds: Option<u64>,
    #[prost(uint64, tag = "5")]
    max_age_millis: u64,
    #[prost(uint64, tag = "6")]
    max_bytes: u64,
    #[prost(message, repeated, tag = "7")]
    promoted: Vec<PromotedForm>,
    /// Every column that an attribute has or had, in order.
    #[prost(message, repeated, tag = "8")]
    columns: Vec<PromotedForm>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PromotedForm {
    #[prost(string, tag = "1")]
    key: String,
    /// 1: text, 2: whole number, 3: floating point number, 4: true or false.
    #[prost(uint32, tag = "2")]
    kind: u32,
    #[prost(bool, tag = "3")]
    is_indexed: bool,
}

fn kind_number(kind: PromotedType) -> u32 {
    match kind {
        PromotedType::String => 1,
        PromotedType::Int64 => 2,
        PromotedType::Double => 3,
        PromotedType::Bool => 4,
    }
}

fn kind_of(number: u32) -> Option<PromotedType> {
    use PromotedType as K;
    [K::String, K::Int64, K::Double, K::Bool].into_iter().find(|kind| kind_number(*kind) == number)
}

fn promoted_form(attribute: &PromotedAttribute) -> PromotedForm {
    let PromotedAttribute { key, kind, is_indexed } = attribute.clone();
    PromotedForm { key, kind: kind_number(kind), is_indexed }
}

fn promoted_of(form: PromotedForm) -> Option<PromotedAttribute> {
    let PromotedForm { key, kind, is_indexed } = form;
    Some(PromotedAttribute { key, kind: kind_of(kind)?, is_indexed })
}

fn column_form((key, kind): &(String, PromotedType)) -> PromotedForm {
    PromotedForm { key: key.clone(), kind: kind_number(*kind), is_indexed: false }
}

fn column_of(form: PromotedForm) -> Option<(String, PromotedType)> {
    Some((form.key, kind_of(form.kind)?))
}

impl StoredForm for StreamRecord {
    type Form = StreamForm;
    const WHAT: &'static str = "record of a stream";

    fn to_form(&self) -> StreamForm {
        let StreamSettings { labels, retention, roll, promoted } = &self.settings;
        StreamForm {
            id: self.id.0,
            created_at: self.created_at.get(),
            labels: labels.clone(),
            retention_seconds: retention.map(|retention| retention.as_secs()),
            max_age_millis: u64::try_from(roll.max_age.as_millis()).unwrap_or(u64::MAX),
            max_bytes: roll.max_bytes,
            promoted: promoted.iter().map(promoted_form).collect(),
            columns: self.columns.iter().map(column_form).collect(),
        }
    }

    fn of_form(form: StreamForm) -> Option<Self> {
        let settings = StreamSettings {
            labels: form.labels,
            retention: form.retention_seconds.map(Duration::from_secs),
            roll: RollPolicy {
                max_age: Duration::from_millis(form.max_age_millis),
                max_bytes: form.max_bytes,
            },
            promoted: form.promoted.into_iter().map(promoted_of).collect::<Option<_>>()?,
        };
        Some(Self {
            id: StreamId(form.id),
            created_at: Ticks::new(form.created_at)?,
            settings,
            columns: form.columns.into_iter().map(column_of).collect::<Option<_>>()?,
        })
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeadForm {
    #[prost(uint64, tag = "1")]
    next_sequence: u64,
    #[prost(uint64, tag = "2")]
    sealed_before: u64,
    #[prost(uint64, tag = "3")]
    unsealed_bytes: u64,
    #[prost(uint64, tag = "4")]
    unsealed_since: u64,
    #[prost(uint64, tag = "5")]
    snapshot: u64,
    #[prost(uint64, tag = "6")]
    segments: u64,
    #[prost(uint64, tag = "7")]
    segment_records: u64,
    #[prost(uint64, tag = "8")]
    segment_bytes: u64,
    #[prost(uint64, tag = "9")]
    damaged_segments: u64,
}

impl StoredForm for Head {
    type Form = HeadForm;
    const WHAT: &'static str = "head of a stream";

    fn to_form(&self) -> HeadForm {
        HeadForm {
            next_sequence: self.next_sequence,
            sealed_before: self.sealed_before,
            unsealed_bytes: self.unsealed_bytes,
            unsealed_since: self.unsealed_since,
            snapshot: self.snapshot,
            segments: self.segments,
            segment_records: self.segment_records,
            segment_bytes: self.segment_bytes,
            damaged_segments: self.damaged_segments,
        }
    }

    fn of_form(form: HeadForm) -> Option<Self> {
        let head = Self {
            next_sequence: form.next_sequence,
            sealed_before: form.sealed_before,
            unsealed_bytes: form.unsealed_bytes,
            unsealed_since: form.unsealed_since,
            snapshot: form.snapshot,
            segments: form.segments,
            segment_records: form.segment_records,
            segment_bytes: form.segment_bytes,
            damaged_segments: form.damaged_segments,
        };
        (head.sealed_before <= head.next_sequence).then_some(head)
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SegmentForm {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    path: String,
    #[prost(uint64, tag = "3")]
    bytes: u64,
    #[prost(uint64, tag = "4")]
    records: u64,
    #[prost(fixed64, tag = "5")]
    min_time: u64,
    #[prost(fixed64, tag = "6")]
    max_time: u64,
    #[prost(uint64, tag = "7")]
    min_sequence: u64,
    #[prost(uint64, tag = "8")]
    max_sequence: u64,
    #[prost(uint32, tag = "9")]
    level: u32,
    #[prost(uint64, tag = "10")]
    created_at: u64,
    #[prost(bytes = "bytes", tag = "11")]
    checksums: Bytes,
    #[prost(string, tag = "12")]
    damage: String,
}

impl StoredForm for SegmentRecord {
    type Form = SegmentForm;
    const WHAT: &'static str = "record of a segment";

    fn to_form(&self) -> SegmentForm {
        SegmentForm {
            id: self.id.0,
            path: self.path.clone(),
            bytes: self.bytes,
            records: self.records,
            min_time: self.min_time,
            max_time: self.max_time,
            min_sequence: self.min_sequence,
            max_sequence: self.max_sequence,
            level: self.level,
            created_at: self.created_at.get(),
            checksums: self.checksums.clone(),
            damage: self.damage.clone(),
        }
    }

    fn of_form(form: SegmentForm) -> Option<Self> {
        Some(Self {
            id: SegmentId(form.id),
            path: form.path,
            bytes: form.bytes,
            records: form.records,
            min_time: form.min_time,
            max_time: form.max_time,
            min_sequence: form.min_sequence,
            max_sequence: form.max_sequence,
            level: form.level,
            created_at: Ticks::new(form.created_at)?,
            checksums: form.checksums,
            damage: form.damage,
        })
    }
}

impl ExpiredSegment {
    /// From its row.
    ///
    /// # Errors
    /// [`LogError::Corrupt`].
    pub(crate) fn of_row(entry: &Entry) -> Result<Self, LogError> {
        let at = Ticks::new(keys::number_of(&entry.key)?);
        let at = at.ok_or_else(|| LogError::corrupt("time of an expired segment"))?;
        Ok(Self { at, segment: SegmentRecord::decode(&entry.value)? })
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RequestForm {
    #[prost(uint64, tag = "1")]
    first_sequence: u64,
    #[prost(uint32, tag = "2")]
    count: u32,
    #[prost(uint64, tag = "3")]
    at: u64,
}

impl StoredForm for RequestRecord {
    type Form = RequestForm;
    const WHAT: &'static str = "record of a request";

    fn to_form(&self) -> RequestForm {
        let Self { first_sequence, count, at } = *self;
        RequestForm { first_sequence, count, at: at.get() }
    }

    fn of_form(form: RequestForm) -> Option<Self> {
        let RequestForm { first_sequence, count, at } = form;
        Some(Self { first_sequence, count, at: Ticks::new(at)? })
    }
}

/// The stored form of a path.
pub(crate) fn encode_path(path: &str) -> Bytes {
    [&[FORMAT], path.as_bytes()].concat().into()
}

/// A path from its stored form.
///
/// # Errors
/// [`LogError::Corrupt`].
pub(crate) fn decode_path(value: &[u8]) -> Result<&str, LogError> {
    let path = value.strip_prefix(&[FORMAT]).and_then(|path| std::str::from_utf8(path).ok());
    path.ok_or_else(|| LogError::corrupt("path of an object"))
}

#[cfg(test)]
mod tests;
