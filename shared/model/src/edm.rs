//! The property types of the Azure table model: their names, and values as text.

use trestle_proto::table::v1::value::Kind;

pub mod datetime;
mod text;

pub use text::{format_value, is_guid, parse_type, parse_value};

/// A property type of the Azure table model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdmType {
    /// `Edm.String`.
    String,
    /// `Edm.Int32`.
    Int32,
    /// `Edm.Int64`.
    Int64,
    /// `Edm.Double`.
    Double,
    /// `Edm.Boolean`.
    Boolean,
    /// `Edm.DateTime`.
    DateTime,
    /// `Edm.Guid`.
    Guid,
    /// `Edm.Binary`.
    Binary,
}

/// Every type.
pub const ALL: [EdmType; 8] = [
    EdmType::String,
    EdmType::Int32,
    EdmType::Int64,
    EdmType::Double,
    EdmType::Boolean,
    EdmType::DateTime,
    EdmType::Guid,
    EdmType::Binary,
];

impl EdmType {
    /// The name as Azure spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "Edm.String",
            Self::Int32 => "Edm.Int32",
            Self::Int64 => "Edm.Int64",
            Self::Double => "Edm.Double",
            Self::Boolean => "Edm.Boolean",
            Self::DateTime => "Edm.DateTime",
            Self::Guid => "Edm.Guid",
            Self::Binary => "Edm.Binary",
        }
    }

    /// The type of a name as Azure spells it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|edm| edm.name() == name)
    }

    /// The type of a value.
    #[must_use]
    pub fn of(kind: &Kind) -> Self {
        match kind {
            Kind::StringValue(_) => Self::String,
            Kind::Int32Value(_) => Self::Int32,
            Kind::Int64Value(_) => Self::Int64,
            Kind::DoubleValue(_) => Self::Double,
            Kind::BooleanValue(_) => Self::Boolean,
            Kind::DatetimeValue(_) => Self::DateTime,
            Kind::GuidValue(_) => Self::Guid,
            Kind::BinaryValue(_) => Self::Binary,
        }
    }
}
