//! The columns of segments. Ids and names never change: engines find columns by them.
//!
//! | id | column | type | content |
//! |---|---|---|---|
//! | 1 | `time` | timestamp (us, UTC) | the effective time, rounded down |
//! | 2 | `time_ns` | int32 | the nanoseconds of it behind the microsecond, 0 to 999 |
//! | 3 | `observed_time` | int64, optional | when it was observed, in nanoseconds since 1970 |
//! | 4 | `sequence` | int64 | the position in the stream |
//! | 5 | `severity_number` | int32, optional | the severity, 1 to 24 |
//! | 6 | `severity_text` | string, optional | the severity as the source names it |
//! | 7 | `event_name` | string, optional | the class of the event, or the name of the metric |
//! | 8 | `body` | string, optional | the body, if it is text |
//! | 9 | `body_value` | binary, optional | any other body, an encoded `AnyValue` |
//! | 10 | `attributes` | string, optional | the attributes without a column, JSON |
//! | 11 | `resource` | string, optional | the attributes of the resource, JSON |
//! | 12 | `scope` | string, optional | the scope, JSON |
//! | 13 | `trace_id` | fixed (16), optional | the trace |
//! | 14 | `span_id` | fixed (8), optional | the span |
//! | 15 | `flags` | int64, optional | the flags |
//! | 16 | `dropped_attributes_count` | int64, optional | how many attributes the source dropped |
//! | 17 | `value` | double, optional | the value of a data point |
//! | 18 | `start_time` | int64, optional | what the value of a data point is since, in nanoseconds since 1970 |
//! | 19 | `temporality` | string, optional | `delta` or `cumulative` |
//! | 20 | `is_monotonic` | boolean, optional | whether a sum only increases |
//! | 21 | `unit` | string, optional | the unit of a data point |
//! | 1000 + n | `attr_KEY` | string, int64, double or boolean, optional | a promoted attribute, if it has this type |
//!
//! Files of older versions end with one of the columns from 17 on; promoted attributes follow.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, Field, FieldRef, Schema, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

/// The id of the first promoted attribute.
const PROMOTED_ID_FIRST: i32 = 1_000;
/// What the name of the column of a promoted attribute begins with.
const PROMOTED_PREFIX: &str = "attr_";
/// The time zone of times.
pub(super) const UTC: &str = "UTC";

/// How many columns the files of the first version have, without promoted attributes.
const FIRST_COLUMNS: usize = 17;

/// The places of the columns that every new segment has.
pub(super) mod column {
    pub(in crate::segment) const TIME: usize = 0;
    pub(in crate::segment) const TIME_NS: usize = 1;
    pub(in crate::segment) const OBSERVED_TIME: usize = 2;
    pub(in crate::segment) const SEQUENCE: usize = 3;
    pub(in crate::segment) const SEVERITY_NUMBER: usize = 4;
    pub(in crate::segment) const SEVERITY_TEXT: usize = 5;
    pub(in crate::segment) const EVENT_NAME: usize = 6;
    pub(in crate::segment) const BODY: usize = 7;
    pub(in crate::segment) const BODY_VALUE: usize = 8;
    pub(in crate::segment) const ATTRIBUTES: usize = 9;
    pub(in crate::segment) const RESOURCE: usize = 10;
    pub(in crate::segment) const SCOPE: usize = 11;
    pub(in crate::segment) const TRACE_ID: usize = 12;
    pub(in crate::segment) const SPAN_ID: usize = 13;
    pub(in crate::segment) const FLAGS: usize = 14;
    pub(in crate::segment) const DROPPED: usize = 15;
    pub(in crate::segment) const VALUE: usize = 16;
    pub(in crate::segment) const START_TIME: usize = 17;
    pub(in crate::segment) const TEMPORALITY: usize = 18;
    pub(in crate::segment) const IS_MONOTONIC: usize = 19;
    pub(in crate::segment) const UNIT: usize = 20;
}

/// The type of the column of a promoted attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PromotedType {
    String,
    Int64,
    Double,
    Bool,
}

/// A promoted attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromotedColumn {
    /// The key of the attribute.
    pub(crate) key: String,
    pub(crate) kind: PromotedType,
    /// Whether segments have a bloom filter on the column.
    pub(crate) is_indexed: bool,
    /// The place in the settings of the stream, from which the id of the column follows. The same key and type keep it.
    pub(crate) position: u16,
}

impl PromotedColumn {
    /// The name of the column.
    pub(super) fn name(&self) -> String {
        format!("{PROMOTED_PREFIX}{}", self.key)
    }
}

impl PromotedType {
    fn data_type(self) -> DataType {
        match self {
            Self::String => DataType::Utf8,
            Self::Int64 => DataType::Int64,
            Self::Double => DataType::Float64,
            Self::Bool => DataType::Boolean,
        }
    }
}

/// The columns of the segments of a stream.
#[derive(Debug, Clone)]
pub(crate) struct SegmentSchema {
    pub(super) arrow: Arc<Schema>,
    /// How many columns precede those of promoted attributes.
    pub(super) base: usize,
    pub(super) promoted: Vec<PromotedColumn>,
    /// How large the parts of a segment are.
    pub(super) sizes: SegmentSizes,
}

/// How large the parts of a segment are. Tests have smaller ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentSizes {
    /// Rows of a row group: what a read opens at once.
    pub(super) group_rows: usize,
    /// Rows of a page: what a read decompresses at once.
    pub(super) page_rows: usize,
    /// Rows of the first chunk of a read, so that its first row arrives soon.
    pub(super) first_rows: usize,
}

impl SegmentSizes {
    /// Those of every segment that is stored.
    const STORED: Self = Self { group_rows: 128 * 1024, page_rows: 4 * 1024, first_rows: 1_024 };
}

impl SegmentSchema {
    /// With these promoted attributes, whose keys are unique.
    pub(crate) fn new(promoted: Vec<PromotedColumn>) -> Self {
        let mut fields = base_fields();
        let base = fields.len();
        for column in &promoted {
            let id = PROMOTED_ID_FIRST + i32::from(column.position);
            fields.push(field(id, &column.name(), column.kind.data_type(), true));
        }
        let arrow = Arc::new(Schema::new(fields));
        Self { arrow, base, promoted, sizes: SegmentSizes::STORED }
    }

    /// That of a file with these columns.
    ///
    /// # Errors
    /// What the file lacks.
    pub(super) fn of_file(file: &Schema) -> Result<Self, String> {
        let known = base_fields();
        let mut pairs = known.iter().zip(file.fields());
        let is_other = |(expected, found): (&Field, &FieldRef)| expected.name() != found.name();
        let base = pairs.position(is_other).unwrap_or(known.len().min(file.fields().len()));
        for (expected, found) in known.iter().zip(file.fields()).take(base.max(FIRST_COLUMNS)) {
            if expected.name() != found.name() || expected.data_type() != found.data_type() {
                return Err(format!("column `{}` is not as expected", expected.name()));
            }
        }
        if base < FIRST_COLUMNS {
            return Err("columns are missing".to_owned());
        }
        let mut promoted = Vec::new();
        for (position, found) in (0..).zip(file.fields().iter().skip(base)) {
            let kind = match found.data_type() {
                DataType::Utf8 => PromotedType::String,
                DataType::Int64 => PromotedType::Int64,
                DataType::Float64 => PromotedType::Double,
                DataType::Boolean => PromotedType::Bool,
                _ => return Err(format!("column `{}` is not as expected", found.name())),
            };
            let key = found.name().strip_prefix(PROMOTED_PREFIX);
            let key = key.ok_or_else(|| format!("column `{}` is not expected", found.name()))?;
            promoted.push(PromotedColumn {
                key: key.to_owned(),
                kind,
                is_indexed: false,
                position,
            });
        }
        let arrow = Arc::new(Schema::new(file.fields().clone()));
        Ok(Self { arrow, base, promoted, sizes: SegmentSizes::STORED })
    }
}

fn base_fields() -> Vec<Field> {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
    let columns = [
        ("time", time, false),
        ("time_ns", DataType::Int32, false),
        ("observed_time", DataType::Int64, true),
        ("sequence", DataType::Int64, false),
        ("severity_number", DataType::Int32, true),
        ("severity_text", DataType::Utf8, true),
        ("event_name", DataType::Utf8, true),
        ("body", DataType::Utf8, true),
        ("body_value", DataType::Binary, true),
        ("attributes", DataType::Utf8, true),
        ("resource", DataType::Utf8, true),
        ("scope", DataType::Utf8, true),
        ("trace_id", DataType::FixedSizeBinary(16), true),
        ("span_id", DataType::FixedSizeBinary(8), true),
        ("flags", DataType::Int64, true),
        ("dropped_attributes_count", DataType::Int64, true),
        ("value", DataType::Float64, true),
        ("start_time", DataType::Int64, true),
        ("temporality", DataType::Utf8, true),
        ("is_monotonic", DataType::Boolean, true),
        ("unit", DataType::Utf8, true),
    ];
    let fields = (1..).zip(columns);
    fields.map(|(id, (name, of_type, nullable))| field(id, name, of_type, nullable)).collect()
}

fn field(id: i32, name: &str, data_type: DataType, nullable: bool) -> Field {
    let id = (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string());
    Field::new(name, data_type, nullable).with_metadata(HashMap::from([id]))
}

impl SegmentSchema {
    /// The place of the column of a promoted attribute.
    pub(super) fn promoted_at(&self, key: &str) -> Option<usize> {
        let at = self.promoted.iter().position(|column| column.key == key)?;
        Some(self.base + at)
    }

    /// The place of a column, if the file has it.
    pub(super) fn place(&self, column: usize) -> Option<usize> {
        (column < self.base).then_some(column)
    }
}
