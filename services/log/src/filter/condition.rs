//! The conditions of filters of records.

use std::fmt;

use trestle_filter::{FilterPath, Function, Literal, Operator};

use crate::row::Property;

/// A condition on a property of a record. One with an absent property is false.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LogCondition {
    /// A comparison with a literal of a type that the property can have.
    Compare { property: Property, operator: Operator, literal: Literal },
    /// A call of a function.
    Call { function: Function, property: Property, text: String },
}

impl LogCondition {
    pub(super) fn property(&self) -> &Property {
        match self {
            Self::Compare { property, .. } | Self::Call { property, .. } => property,
        }
    }
}

/// The properties without a key, by their names.
static NAMES: [(&str, Property); 13] = [
    ("severity", Property::Severity),
    ("severity_text", Property::SeverityText),
    ("body", Property::Body),
    ("event_name", Property::EventName),
    ("value", Property::Value),
    ("temporality", Property::Temporality),
    ("is_monotonic", Property::IsMonotonic),
    ("unit", Property::Unit),
    ("trace_id", Property::TraceId),
    ("span_id", Property::SpanId),
    ("time", Property::Time),
    ("sequence", Property::Sequence),
    ("scope", Property::Scope),
];

const ATTRIBUTES: &str = "attributes";
const RESOURCE: &str = "resource";

/// The property at a path; none if there is none.
pub(super) fn property_at(path: &FilterPath) -> Option<Property> {
    match (path.name.as_str(), &path.key) {
        (ATTRIBUTES, Some(key)) => Some(Property::Attribute(key.clone())),
        (RESOURCE, Some(key)) => Some(Property::Resource(key.clone())),
        (name, None) => {
            let found = NAMES.iter().find(|(known, _)| *known == name);
            found.map(|(_, property)| property.clone())
        }
        _ => None,
    }
}

/// The names of all properties, for error texts.
pub(super) fn property_names() -> String {
    let names: Vec<_> = NAMES.iter().map(|(name, _)| format!("`{name}`")).collect();
    format!("{}, `{ATTRIBUTES}/KEY` or `{RESOURCE}/KEY`", names.join(", "))
}

/// The path of a property.
fn path(property: &Property) -> FilterPath {
    let (name, key) = match property {
        Property::Attribute(key) => (ATTRIBUTES, Some(key.clone())),
        Property::Resource(key) => (RESOURCE, Some(key.clone())),
        other => {
            let found = NAMES.iter().find(|(_, known)| known == other);
            (found.map_or("", |(name, _)| name), None)
        }
    };
    FilterPath { name: name.to_owned(), key }
}

/// Canonical text.
impl fmt::Display for LogCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare { property, operator, literal } => {
                write!(f, "{} {} {literal}", path(property), operator.text())
            }
            Self::Call { function, property, text } => {
                let text = Literal::String(text.clone());
                write!(f, "{}({}, {text})", function.text(), path(property))
            }
        }
    }
}
