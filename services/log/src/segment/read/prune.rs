//! Row groups that cannot have a value, by their bloom filters.

use parquet::{bloom_filter::Sbbf, data_type::AsBytes};

use crate::{
    row::{RequiredEquality, ValueRef},
    segment::{
        metadata::CachedMetadata,
        schema::{PromotedType, column},
        source::{CorruptSegment, ReadSegmentError, SegmentSource},
    },
};

/// Whether a row group may have a row that meets every condition.
pub(super) async fn may_match(
    source: &dyn SegmentSource,
    metadata: &CachedMetadata,
    group: usize,
    required: &[RequiredEquality],
) -> Result<bool, ReadSegmentError> {
    for equality in required {
        let Some(at) = column_of(metadata, equality) else {
            continue;
        };
        let column = metadata.parquet().row_group(group).column(at);
        let (offset, length) = (column.bloom_filter_offset(), column.bloom_filter_length());
        let offset = offset.and_then(|offset| u64::try_from(offset).ok());
        let length = length.and_then(|length| u64::try_from(length).ok());
        let (Some(offset), Some(length)) = (offset, length) else {
            continue;
        };
        let bytes = source.read(offset..offset.saturating_add(length)).await?;
        let filter = Sbbf::from_bytes(&bytes)
            .map_err(|error| CorruptSegment::Parquet(error).of(source.name()))?;
        if !may_have(&filter, equality) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The column that has every value which is equal.
fn column_of(metadata: &CachedMetadata, equality: &RequiredEquality) -> Option<usize> {
    match equality {
        RequiredEquality::TraceId(_) => Some(column::TRACE_ID),
        RequiredEquality::Attribute(key, value) => {
            let at = metadata.schema.promoted_at(key)?;
            let promoted = metadata.schema.promoted.get(at - metadata.schema.base)?;
            let is_same = matches!(
                (promoted.kind, value),
                (PromotedType::String, ValueRef::Str(_)) | (PromotedType::Int64, ValueRef::Int(_))
            );
            is_same.then_some(at)
        }
    }
}

fn may_have(filter: &Sbbf, equality: &RequiredEquality) -> bool {
    match equality {
        RequiredEquality::TraceId(id) => filter.check(id.as_slice().as_bytes()),
        RequiredEquality::Attribute(_, ValueRef::Str(text)) => filter.check(text.as_ref()),
        RequiredEquality::Attribute(_, ValueRef::Int(value)) => filter.check(value),
        RequiredEquality::Attribute(..) => true,
    }
}
