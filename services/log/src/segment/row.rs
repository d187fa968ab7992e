//! A row of a segment, as filters see it.

use std::borrow::Cow;

use arrow_array::{
    Array, BinaryArray, BooleanArray, FixedSizeBinaryArray, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, TimestampMicrosecondArray,
    cast::AsArray as _,
    types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType},
};

use super::{
    columns::MICROSECOND,
    plan::ColumnSet,
    schema::{PromotedType, SegmentSchema, column},
    source::CorruptSegment,
};
use crate::{
    json::{find_member, scope_name},
    row::{RowFields, ValueRef},
};

/// The column of a promoted attribute.
pub(super) enum PromotedArray {
    String(StringArray),
    Int64(Int64Array),
    Double(Float64Array),
    Bool(BooleanArray),
}

/// The columns of some rows; those that were not read are absent.
pub(super) struct ColumnArrays<'s> {
    schema: &'s SegmentSchema,
    pub(super) rows: usize,
    time: Option<TimestampMicrosecondArray>,
    time_ns: Option<Int32Array>,
    pub(super) observed_time: Option<Int64Array>,
    sequence: Option<Int64Array>,
    pub(super) severity_number: Option<Int32Array>,
    pub(super) severity_text: Option<StringArray>,
    pub(super) event_name: Option<StringArray>,
    pub(super) body: Option<StringArray>,
    pub(super) body_value: Option<BinaryArray>,
    pub(super) attributes: Option<StringArray>,
    pub(super) resource: Option<StringArray>,
    pub(super) scope: Option<StringArray>,
    pub(super) trace_id: Option<FixedSizeBinaryArray>,
    pub(super) span_id: Option<FixedSizeBinaryArray>,
    pub(super) flags: Option<Int64Array>,
    pub(super) dropped: Option<Int64Array>,
    pub(super) value: Option<Float64Array>,
    pub(super) start_time: Option<Int64Array>,
    temporality: Option<StringArray>,
    is_monotonic: Option<BooleanArray>,
    unit: Option<StringArray>,
    promoted: Vec<Option<PromotedArray>>,
}

impl<'s> ColumnArrays<'s> {
    /// The columns of a batch that has those of `columns`.
    ///
    /// # Errors
    /// Columns of other types.
    pub(super) fn of(
        batch: &RecordBatch,
        columns: &ColumnSet,
        schema: &'s SegmentSchema,
    ) -> Result<Self, CorruptSegment> {
        let expected = columns.0.iter().filter_map(|at| schema.arrow.fields().get(*at));
        if columns.0.len() != batch.num_columns()
            || !expected
                .zip(batch.columns())
                .all(|(field, found)| field.data_type() == found.data_type())
        {
            return Err(CorruptSegment::Content("a column has another type".to_owned()));
        }
        let array = |at: usize| {
            let place = columns.0.binary_search(&at).ok()?;
            batch.columns().get(place)
        };
        let text = |at| array(at).and_then(|array| array.as_string_opt::<i32>()).cloned();
        let int64 = |at| array(at).and_then(|array| array.as_primitive_opt::<Int64Type>()).cloned();
        let int32 = |at| array(at).and_then(|array| array.as_primitive_opt::<Int32Type>()).cloned();
        let double =
            |at| array(at).and_then(|array| array.as_primitive_opt::<Float64Type>()).cloned();
        let fixed = |at| array(at).and_then(|array| array.as_fixed_size_binary_opt()).cloned();
        let times = array(column::TIME)
            .and_then(|array| array.as_primitive_opt::<TimestampMicrosecondType>());
        let promoted = schema.promoted.iter().zip(schema.base..).map(|(promoted, at)| {
            Some(match promoted.kind {
                PromotedType::String => PromotedArray::String(text(at)?),
                PromotedType::Int64 => PromotedArray::Int64(int64(at)?),
                PromotedType::Double => PromotedArray::Double(double(at)?),
                PromotedType::Bool => PromotedArray::Bool(array(at)?.as_boolean_opt()?.clone()),
            })
        });
        Ok(Self {
            schema,
            rows: batch.num_rows(),
            time: times.cloned(),
            time_ns: int32(column::TIME_NS),
            observed_time: int64(column::OBSERVED_TIME),
            sequence: int64(column::SEQUENCE),
            severity_number: int32(column::SEVERITY_NUMBER),
            severity_text: text(column::SEVERITY_TEXT),
            event_name: text(column::EVENT_NAME),
            body: text(column::BODY),
            body_value: array(column::BODY_VALUE)
                .and_then(|array| array.as_binary_opt::<i32>())
                .cloned(),
            attributes: text(column::ATTRIBUTES),
            resource: text(column::RESOURCE),
            scope: text(column::SCOPE),
            trace_id: fixed(column::TRACE_ID),
            span_id: fixed(column::SPAN_ID),
            flags: int64(column::FLAGS),
            dropped: int64(column::DROPPED),
            value: double(column::VALUE),
            start_time: schema.place(column::START_TIME).and_then(int64),
            temporality: schema.place(column::TEMPORALITY).and_then(text),
            is_monotonic: schema
                .place(column::IS_MONOTONIC)
                .and_then(|at| array(at)?.as_boolean_opt().cloned()),
            unit: schema.place(column::UNIT).and_then(text),
            promoted: promoted.collect(),
        })
    }

    pub(super) fn row(&self, index: usize) -> SegmentRow<'_> {
        SegmentRow { columns: self, index }
    }
}

/// A row of [`ColumnArrays`].
#[derive(Clone, Copy)]
pub(super) struct SegmentRow<'c> {
    pub(super) columns: &'c ColumnArrays<'c>,
    pub(super) index: usize,
}

impl<'c> SegmentRow<'c> {
    pub(super) fn text(&self, column: Option<&'c StringArray>) -> Option<&'c str> {
        column.filter(|column| column.is_valid(self.index)).map(|column| column.value(self.index))
    }

    pub(super) fn int64(&self, column: Option<&'c Int64Array>) -> Option<i64> {
        column.filter(|column| column.is_valid(self.index)).map(|column| column.value(self.index))
    }

    pub(super) fn int32(&self, column: Option<&'c Int32Array>) -> Option<i32> {
        column.filter(|column| column.is_valid(self.index)).map(|column| column.value(self.index))
    }

    pub(super) fn id(&self, column: Option<&'c FixedSizeBinaryArray>) -> Option<&'c [u8]> {
        column.filter(|column| column.is_valid(self.index)).map(|column| column.value(self.index))
    }

    /// The values of promoted attributes, with their keys.
    pub(super) fn promoted(&self) -> impl Iterator<Item = (&'c str, ValueRef<'c>)> {
        let Self { columns, index } = *self;
        let keys = columns.schema.promoted.iter().map(|column| column.key.as_str());
        let values = columns.promoted.iter().map(move |array| array.as_ref()?.get(index));
        keys.zip(values).filter_map(|(key, value)| Some((key, value?)))
    }
}

impl PromotedArray {
    fn get(&self, index: usize) -> Option<ValueRef<'_>> {
        match self {
            Self::String(array) if array.is_valid(index) => {
                Some(ValueRef::Str(Cow::Borrowed(array.value(index))))
            }
            Self::Int64(array) if array.is_valid(index) => Some(ValueRef::Int(array.value(index))),
            Self::Double(array) if array.is_valid(index) => {
                Some(ValueRef::Double(array.value(index)))
            }
            Self::Bool(array) if array.is_valid(index) => Some(ValueRef::Bool(array.value(index))),
            _ => None,
        }
    }
}

impl RowFields for SegmentRow<'_> {
    fn time(&self) -> u64 {
        let columns = self.columns;
        let micros = columns.time.as_ref().map_or(0, |times| times.value(self.index));
        let nanos = self.int32(columns.time_ns.as_ref()).unwrap_or_default();
        let (micros, nanos) = (micros.cast_unsigned(), nanos.cast_unsigned());
        micros.saturating_mul(MICROSECOND).saturating_add(nanos.into())
    }

    fn sequence(&self) -> u64 {
        self.int64(self.columns.sequence.as_ref()).unwrap_or_default().cast_unsigned()
    }

    fn severity(&self) -> i32 {
        self.int32(self.columns.severity_number.as_ref()).unwrap_or_default()
    }

    fn severity_text(&self) -> &str {
        self.text(self.columns.severity_text.as_ref()).unwrap_or_default()
    }

    fn body(&self) -> Option<&str> {
        self.text(self.columns.body.as_ref())
    }

    fn event_name(&self) -> &str {
        self.text(self.columns.event_name.as_ref()).unwrap_or_default()
    }

    fn value(&self) -> Option<f64> {
        let column = self.columns.value.as_ref()?;
        column.is_valid(self.index).then(|| column.value(self.index))
    }

    fn temporality(&self) -> &str {
        self.text(self.columns.temporality.as_ref()).unwrap_or_default()
    }

    fn is_monotonic(&self) -> Option<bool> {
        let column = self.columns.is_monotonic.as_ref()?;
        column.is_valid(self.index).then(|| column.value(self.index))
    }

    fn unit(&self) -> &str {
        self.text(self.columns.unit.as_ref()).unwrap_or_default()
    }

    fn trace_id(&self) -> &[u8] {
        self.id(self.columns.trace_id.as_ref()).unwrap_or_default()
    }

    fn span_id(&self) -> &[u8] {
        self.id(self.columns.span_id.as_ref()).unwrap_or_default()
    }

    fn attribute(&self, key: &str) -> Option<ValueRef<'_>> {
        let place = self.columns.schema.promoted_at(key);
        let promoted =
            place.and_then(|at| self.columns.promoted.get(at - self.columns.schema.base));
        let promoted = promoted.and_then(|array| array.as_ref()?.get(self.index));
        promoted.or_else(|| find_member(self.text(self.columns.attributes.as_ref())?, key))
    }

    fn resource(&self, key: &str) -> Option<ValueRef<'_>> {
        find_member(self.text(self.columns.resource.as_ref())?, key)
    }

    fn scope_name(&self) -> Cow<'_, str> {
        self.text(self.columns.scope.as_ref()).map(scope_name).unwrap_or_default()
    }
}
