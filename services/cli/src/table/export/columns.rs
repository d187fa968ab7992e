//! The columns of a file of Parquet: one for each property, of the type that all of its values have.

use std::collections::{BTreeMap, BTreeSet};

use arrow_schema::{DataType, TimeUnit};
use prost_types::Timestamp;
use trestle_proto::table::v1::{Entity, value::Kind};

use crate::edm::EdmType;

/// The time zone of times.
pub(super) const UTC: &str = "UTC";
const NANOS_PER_SECOND: i64 = 1_000_000_000;
const MICROS_PER_SECOND: i64 = 1_000_000;
const NANOS_PER_MICRO: i32 = 1_000;

/// The values that a property has in a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FoundValues {
    types: BTreeSet<EdmType>,
    /// Whether a time has a fraction of a microsecond.
    has_fine_times: bool,
    /// Whether a time is out of the range of nanoseconds, which is 1677 to 2262.
    has_far_times: bool,
}

/// Adds the values of an entity.
pub(super) fn find(columns: &mut BTreeMap<String, FoundValues>, entity: Entity) {
    for property in entity.properties {
        let kind = property.value.and_then(|value| value.kind);
        let found = match columns.get_mut(&property.name) {
            Some(found) => found,
            None => columns.entry(property.name).or_default(),
        };
        if let Some(kind) = kind {
            found.add(&kind);
        }
    }
}

impl FoundValues {
    fn add(&mut self, kind: &Kind) {
        self.types.insert(EdmType::of(kind));
        if let Kind::DatetimeValue(at) = kind {
            self.has_fine_times |= micros(at).is_none();
            self.has_far_times |= nanos(at).is_none();
        }
    }
}

/// The form of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnForm {
    /// Of any type, as JSON has it.
    Text,
    Int32,
    Int64,
    Double,
    Boolean,
    Binary,
    Micros,
    Nanos,
}

/// A column of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParquetColumn {
    name: String,
    pub(super) form: ColumnForm,
    /// The types that the values of the first pass have.
    types: BTreeSet<EdmType>,
}

impl ParquetColumn {
    pub(super) fn new(name: String, found: FoundValues) -> Self {
        let FoundValues { mut types, has_fine_times, has_far_times } = found;
        if types.is_empty() {
            types.insert(EdmType::String);
        }
        let only = types.first().filter(|_| types.len() == 1);
        let form = match only {
            None | Some(EdmType::String | EdmType::Guid) => ColumnForm::Text,
            Some(EdmType::Int32) => ColumnForm::Int32,
            Some(EdmType::Int64) => ColumnForm::Int64,
            Some(EdmType::Double) => ColumnForm::Double,
            Some(EdmType::Boolean) => ColumnForm::Boolean,
            Some(EdmType::Binary) => ColumnForm::Binary,
            Some(EdmType::DateTime) => match (has_fine_times, has_far_times) {
                (false, _) => ColumnForm::Micros,
                (true, false) => ColumnForm::Nanos,
                (true, true) => ColumnForm::Text,
            },
        };
        Self { name, form, types }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a value of the type belongs in the column.
    pub(super) fn has(&self, edm: EdmType) -> bool {
        self.types.contains(&edm)
    }

    /// Why values that are no text are exported as text; none where they are not.
    pub(super) fn why_text(&self) -> Option<String> {
        if self.types.len() > 1 {
            let names: Vec<_> = self.types.iter().map(|edm| edm.name()).collect();
            return Some(format!("its values have several types: {}", names.join(", ")));
        }
        (self.form == ColumnForm::Text && self.has(EdmType::DateTime)).then(|| {
            "no type has all of its times, in steps of 100 ns and outside of 1677 to 2262"
                .to_owned()
        })
    }

    pub(super) fn data_type(&self) -> DataType {
        match self.form {
            ColumnForm::Text => DataType::Utf8,
            ColumnForm::Int32 => DataType::Int32,
            ColumnForm::Int64 => DataType::Int64,
            ColumnForm::Double => DataType::Float64,
            ColumnForm::Boolean => DataType::Boolean,
            ColumnForm::Binary => DataType::Binary,
            ColumnForm::Micros => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            ColumnForm::Nanos => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
        }
    }
}

/// A time in microseconds since 1970; none where that loses a part of it.
pub(super) fn micros(at: &Timestamp) -> Option<i64> {
    let is_whole = at.nanos % NANOS_PER_MICRO == 0;
    let seconds = at.seconds.checked_mul(MICROS_PER_SECOND).filter(|_| is_whole)?;
    seconds.checked_add((at.nanos / NANOS_PER_MICRO).into())
}

/// A time in nanoseconds since 1970; none out of their range.
pub(super) fn nanos(at: &Timestamp) -> Option<i64> {
    at.seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(at.nanos.into())
}
