//! From domain types to responses.

use trestle_objects::ObjectArea;
use trestle_proto::log::v1 as proto;

use crate::{
    names::StreamName,
    segment::PromotedType,
    stream::{Head, PromotedAttribute, RollPolicy, SegmentRecord, StreamRecord},
};

/// Nanoseconds of a second.
const SECOND_NANOS: u64 = 1_000_000_000;

/// A stream.
pub(super) fn stream(name: &StreamName, record: StreamRecord) -> proto::LogStream {
    let settings = record.settings;
    proto::LogStream {
        name: name.as_str().to_owned(),
        labels: settings.labels,
        retention: settings.retention.map(duration),
        roll_policy: Some(roll(settings.roll)),
        promoted_attributes: settings.promoted.into_iter().map(promoted).collect(),
        create_time: Some(record.created_at.into()),
    }
}

/// The statistics of a stream.
pub(super) fn stats(head: &Head) -> proto::LogStreamStats {
    proto::LogStreamStats {
        next_sequence: head.next_sequence,
        unsealed_records: head.unsealed_records(),
        unsealed_bytes: head.unsealed_bytes,
        segments: head.segments,
        segment_records: head.segment_records,
        segment_bytes: head.segment_bytes,
        snapshot: head.snapshot,
    }
}

/// A segment in an area.
pub(super) fn segment(area: &ObjectArea, record: &SegmentRecord) -> proto::LogSegment {
    proto::LogSegment {
        id: record.id.0,
        url: area.url_of(&record.path),
        bytes: record.bytes,
        records: record.records,
        min_time: Some(time(record.min_time)),
        max_time: Some(time(record.max_time)),
        min_sequence: record.min_sequence,
        max_sequence: record.max_sequence,
        level: record.level,
        create_time: Some(record.created_at.into()),
        damage: record.damage.clone(),
    }
}

fn duration(duration: std::time::Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or_default(),
    }
}

/// A time in nanoseconds since 1970.
pub(super) fn time(nanos: u64) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: i64::try_from(nanos / SECOND_NANOS).unwrap_or(i64::MAX),
        nanos: i32::try_from(nanos % SECOND_NANOS).unwrap_or_default(),
    }
}

fn roll(policy: RollPolicy) -> proto::RollPolicy {
    let RollPolicy { max_age, max_bytes } = policy;
    proto::RollPolicy { max_age: Some(duration(max_age)), max_bytes }
}

fn promoted(attribute: PromotedAttribute) -> proto::PromotedAttribute {
    let PromotedAttribute { key, kind, is_indexed } = attribute;
    let kind = match kind {
        PromotedType::String => proto::AttributeType::String,
        PromotedType::Int64 => proto::AttributeType::Int64,
        PromotedType::Double => proto::AttributeType::Double,
        PromotedType::Bool => proto::AttributeType::Bool,
    };
    proto::PromotedAttribute { key, r#type: kind.into(), is_indexed }
}
