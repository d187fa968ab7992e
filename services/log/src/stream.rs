//! What is known of streams and segments: values without behaviour of their own.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use trestle_model::time::Ticks;

use crate::segment::{PromotedColumn, PromotedType};

/// Identifies a stream. Random, and never used again: rows and segments are under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct StreamId(pub(crate) u64);

/// Identifies a segment: the version of the change that announced its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentId(pub(crate) u64);

/// The settings of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StreamSettings {
    /// Labels of the application.
    pub(crate) labels: BTreeMap<String, String>,
    /// How long records are kept at least; none: always.
    pub(crate) retention: Option<Duration>,
    /// When records are sealed.
    pub(crate) roll: RollPolicy,
    /// Attributes with a column of their own.
    pub(crate) promoted: Vec<PromotedAttribute>,
}

/// When records are sealed into a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RollPolicy {
    /// The age of the oldest unsealed record, by arrival.
    pub(crate) max_age: Duration,
    /// The bytes of the unsealed records.
    pub(crate) max_bytes: u64,
}

impl Default for RollPolicy {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(300), max_bytes: 64 * 1024 * 1024 }
    }
}

/// An attribute with a column of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromotedAttribute {
    /// The key of the attribute.
    pub(crate) key: String,
    /// The type of the column.
    pub(crate) kind: PromotedType,
    /// Whether segments have a bloom filter on the column.
    pub(crate) is_indexed: bool,
}

/// A stream, under its account and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamRecord {
    /// Its id.
    pub(crate) id: StreamId,
    /// When it was created.
    pub(crate) created_at: Ticks,
    /// Its settings.
    pub(crate) settings: StreamSettings,
    /// Every column that an attribute has or had: its index is a part of the id of the column, which never changes.
    pub(crate) columns: Vec<(String, PromotedType)>,
}

impl StreamRecord {
    /// A stream with these settings.
    pub(crate) fn new(id: StreamId, created_at: Ticks, settings: StreamSettings) -> Self {
        let mut record = Self { id, created_at, settings, columns: Vec::new() };
        record.name_columns();
        record
    }

    /// Gives an index to each promoted attribute that has none.
    pub(crate) fn name_columns(&mut self) {
        for PromotedAttribute { key, kind, .. } in &self.settings.promoted {
            let column = (key.clone(), *kind);
            if !self.columns.contains(&column) {
                self.columns.push(column);
            }
        }
    }

    /// The columns of its promoted attributes.
    pub(crate) fn promoted_columns(&self) -> Vec<PromotedColumn> {
        let column = |attribute: &PromotedAttribute| {
            let PromotedAttribute { key, kind, is_indexed } = attribute.clone();
            let position = self.columns.iter().position(|column| *column == (key.clone(), kind));
            let position = u16::try_from(position?).ok()?;
            Some(PromotedColumn { key, kind, is_indexed, position })
        };
        self.settings.promoted.iter().filter_map(column).collect()
    }
}

/// The position of a stream; it exists as long as the stream does. Every change of the stream reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Head {
    /// The sequence of the next record.
    pub(crate) next_sequence: u64,
    /// Records before this sequence are in segments. Batches of them may exist for a while.
    pub(crate) sealed_before: u64,
    /// The bytes of the other batches.
    pub(crate) unsealed_bytes: u64,
    /// When the first of them arrived; meaningless without one.
    pub(crate) unsealed_since: u64,
    /// The number of the snapshot of the manifest.
    pub(crate) snapshot: u64,
    /// How many segments there are.
    pub(crate) segments: u64,
    /// The records in them.
    pub(crate) segment_records: u64,
    /// The bytes of their objects.
    pub(crate) segment_bytes: u64,
    /// How many of them are known to be damaged.
    pub(crate) damaged_segments: u64,
}

impl Head {
    /// How many records are not sealed.
    pub(crate) fn unsealed_records(&self) -> u64 {
        self.next_sequence.saturating_sub(self.sealed_before)
    }

    /// Bytes of what is not sealed, and of the segments.
    pub(crate) fn stored_bytes(&self) -> u64 {
        let unsealed = if self.unsealed_records() > 0 { self.unsealed_bytes } else { 0 };
        unsealed.saturating_add(self.segment_bytes)
    }
}

/// A published segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentRecord {
    /// Its id.
    pub(crate) id: SegmentId,
    /// Its object, below the area of logs.
    pub(crate) path: String,
    /// The bytes of the object.
    pub(crate) bytes: u64,
    /// How many records.
    pub(crate) records: u64,
    /// The time of the oldest record, in nanoseconds since 1970.
    pub(crate) min_time: u64,
    /// The time of the newest record.
    pub(crate) max_time: u64,
    /// The least sequence.
    pub(crate) min_sequence: u64,
    /// The greatest sequence.
    pub(crate) max_sequence: u64,
    /// How often its records were merged.
    pub(crate) level: u32,
    /// When it was published.
    pub(crate) created_at: Ticks,
    /// The checksums of the frames of the object.
    pub(crate) checksums: Bytes,
    /// Why it cannot be read, once that was found; empty: it can, as far as is known.
    pub(crate) damage: String,
}

/// A segment that the retention removed, and that can be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpiredSegment {
    /// When it was removed.
    pub(crate) at: Ticks,
    /// The segment.
    pub(crate) segment: SegmentRecord,
}

/// An append that had a request id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestRecord {
    /// The sequence of its first record.
    pub(crate) first_sequence: u64,
    /// How many records.
    pub(crate) count: u32,
    /// When it was stored.
    pub(crate) at: Ticks,
}
