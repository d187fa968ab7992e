//! What filters of records can read and call.

use trestle_filter::{Dialect, Expr, FilterPath, Function, Literal, Operator};
use trestle_model::fault::quoted;

use super::{
    condition::{LogCondition, property_at, property_names},
    severity,
};
use crate::row::Property;

/// The filters of records.
pub(super) struct LogDialect;

impl Dialect for LogDialect {
    type Condition = LogCondition;

    const HAS_PATHS: bool = true;
    const FUNCTIONS: &[Function] = &[Function::Contains, Function::StartsWith];

    fn check(path: &FilterPath) -> Result<(), String> {
        property(path).map(|_| ())
    }

    fn compare(
        path: FilterPath,
        operator: Operator,
        literal: Literal,
    ) -> Result<Expr<LogCondition>, String> {
        let property = property(&path)?;
        if let (Property::Severity, Literal::String(name)) = (&property, &literal) {
            let named = severity::compare(operator, name);
            return named.ok_or_else(|| expected(severity::EXPECTED, &path));
        }
        let literal = match (of(&property), literal) {
            // Identifiers are compared as the lower-case text that they are read as.
            (Kind::Hex, Literal::String(text)) => Literal::String(text.to_ascii_lowercase()),
            (Kind::Text, literal @ Literal::String(_))
            | (
                Kind::Number,
                literal @ (Literal::Int32(_) | Literal::Int64(_) | Literal::Double(_)),
            )
            | (Kind::Time, literal @ Literal::DateTime(_))
            | (Kind::Truth, literal @ Literal::Boolean(_)) => literal,
            (Kind::Any, Literal::DateTime(_) | Literal::Guid(_)) => {
                return Err(expected("a text, a number, `true`, `false` or X'…'", &path));
            }
            (Kind::Any, literal) => literal,
            (Kind::Hex | Kind::Text, _) => return Err(expected("a text in single quotes", &path)),
            (Kind::Number, _) if property == Property::Severity => {
                return Err(expected(severity::EXPECTED, &path));
            }
            (Kind::Number, _) => return Err(expected("a number", &path)),
            (Kind::Truth, _) => return Err(expected("`true` or `false`", &path)),
            (Kind::Time, _) => {
                return Err(expected("datetime'YYYY-MM-DDThh:mm:ss[.fffffff]Z'", &path));
            }
        };
        Ok(Expr::Compare(LogCondition::Compare { property, operator, literal }))
    }

    fn call(
        function: Function,
        path: FilterPath,
        text: String,
    ) -> Result<Expr<LogCondition>, String> {
        let property = property(&path)?;
        let text = match of(&property) {
            Kind::Hex => text.to_ascii_lowercase(),
            Kind::Text | Kind::Any => text,
            Kind::Number | Kind::Time | Kind::Truth => {
                let name = function.text();
                return Err(format!("Function `{name}` expects a text, and `{path}` is none"));
            }
        };
        Ok(Expr::Compare(LogCondition::Call { function, property, text }))
    }
}

/// Which values a property can have.
enum Kind {
    Text,
    /// Bytes that are read as lower-case hexadecimal text.
    Hex,
    Number,
    Time,
    Truth,
    Any,
}

fn of(property: &Property) -> Kind {
    match property {
        Property::SeverityText
        | Property::Body
        | Property::EventName
        | Property::Temporality
        | Property::Unit
        | Property::Scope => Kind::Text,
        Property::IsMonotonic => Kind::Truth,
        Property::TraceId | Property::SpanId => Kind::Hex,
        Property::Severity | Property::Value | Property::Sequence => Kind::Number,
        Property::Time => Kind::Time,
        Property::Attribute(_) | Property::Resource(_) => Kind::Any,
    }
}

pub(super) fn property(path: &FilterPath) -> Result<Property, String> {
    property_at(path).ok_or_else(|| {
        let known = property_names();
        format!("No property of records is named `{}`, expected {known}", quoted(&path.to_string()))
    })
}

fn expected(what: &str, path: &FilterPath) -> String {
    format!("Expected {what} to compare `{path}` with")
}
