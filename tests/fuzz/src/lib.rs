//! Typed inputs of the fuzz targets, and a server to send requests to.
//!
//! Inputs are drawn from few names and keys beside free ones, so that the parts of an input meet:
//! a filter reads properties that the entity has, a batch hits one row twice.

use arbitrary::Arbitrary;
use prost_types::Timestamp;
use trestle_proto::table::v1 as proto;

mod conditions;
mod gateway;
mod server;

pub use conditions::Condition;
pub use gateway::{Gateway, PAGE, WebResponse};
pub use server::{Server, methods};

/// Base64, as keys and credentials are written.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A key, often one of few.
#[derive(Debug, Clone, Arbitrary)]
pub enum Key {
    /// The empty key.
    Empty,
    /// One of few, among them neighbours that UTF-8 and UTF-16 order differently.
    Predefined(u8),
    /// Anything, legal or not.
    Free(String),
}

impl Key {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        const PREDEFINED: [&str; 6] = ["a", "aa", "b", "c", "\u{FFFF}", "\u{10000}"];
        match self {
            Self::Empty => String::new(),
            Self::Predefined(index) => {
                PREDEFINED[usize::from(*index) % PREDEFINED.len()].to_owned()
            }
            Self::Free(text) => text.clone(),
        }
    }
}

/// A property name, often one of few.
#[derive(Debug, Clone, Arbitrary)]
pub enum Name {
    /// One of few.
    Predefined(u8),
    /// Anything, legal or not.
    Free(String),
}

impl Name {
    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        const PREDEFINED: [&str; 6] = ["x", "y", "X", "n_1", "\u{E9}t\u{E9}", "\u{10400}"];
        match self {
            Self::Predefined(index) => {
                PREDEFINED[usize::from(*index) % PREDEFINED.len()].to_owned()
            }
            Self::Free(text) => text.clone(),
        }
    }
}

/// A value of a property, legal or not.
#[derive(Debug, Clone, Arbitrary)]
pub enum Value {
    /// No value.
    Null,
    /// Edm.String
    String(String),
    /// Edm.Int32
    Int32(i32),
    /// Edm.Int64
    Int64(i64),
    /// Edm.Double
    Double(f64),
    /// Edm.Boolean
    Boolean(bool),
    /// Edm.DateTime, mostly in range.
    Time(u64),
    /// Edm.DateTime, unvalidated.
    AnyTime(i64, i32),
    /// Edm.Guid
    Guid(u128),
    /// Edm.Guid, unvalidated.
    AnyGuid(String),
    /// Edm.Binary
    Binary(Vec<u8>),
}

impl Value {
    /// In protobuf.
    #[must_use]
    pub fn proto(&self) -> proto::Value {
        use proto::value::Kind;
        let kind = match self.clone() {
            Self::Null => return proto::Value { kind: None },
            Self::String(text) => Kind::StringValue(text),
            Self::Int32(number) => Kind::Int32Value(number),
            Self::Int64(number) => Kind::Int64Value(number),
            Self::Double(number) => Kind::DoubleValue(number),
            Self::Boolean(truth) => Kind::BooleanValue(truth),
            Self::Time(ticks) => {
                let seconds = i64::try_from(ticks % 250_000_000_000).unwrap_or(0) + -11_644_473_600;
                let nanos = i32::try_from(ticks % 10_000_000).unwrap_or(0) * 100;
                Kind::DatetimeValue(Timestamp { seconds, nanos })
            }
            Self::AnyTime(seconds, nanos) => Kind::DatetimeValue(Timestamp { seconds, nanos }),
            Self::Guid(bits) => {
                Kind::GuidValue(uuid::Uuid::from_u128(bits).hyphenated().to_string())
            }
            Self::AnyGuid(text) => Kind::GuidValue(text),
            Self::Binary(bytes) => Kind::BinaryValue(bytes.into()),
        };
        proto::Value { kind: Some(kind) }
    }
}

/// An entity, legal or not.
#[derive(Debug, Clone, Arbitrary)]
pub struct Entity {
    /// Its partition key.
    pub partition_key: Key,
    /// Its row key.
    pub row_key: Key,
    /// Its properties.
    pub properties: Vec<(Name, Value)>,
}

impl Entity {
    /// In protobuf.
    #[must_use]
    pub fn proto(&self) -> proto::Entity {
        let property = |(name, value): &(Name, Value)| proto::Property {
            name: name.text(),
            value: Some(value.proto()),
        };
        proto::Entity {
            partition_key: self.partition_key.text(),
            row_key: self.row_key.text(),
            properties: self.properties.iter().map(property).collect(),
            ..Default::default()
        }
    }
}
