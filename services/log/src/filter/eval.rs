//! Evaluating a filter on a record.
//!
//! Text is compared by bytes, numbers by their exact value. Values of different types are unequal and have no order.

use std::cmp::Ordering;

use trestle_filter::{Expr, Function, Literal, Operator, compare_numbers};

use super::condition::LogCondition;
use crate::row::{Property, RowFields, ValueRef};

/// Most bytes of an identifier.
const ID_BYTES_MAX: usize = 16;

/// Whether a record matches.
pub(super) fn matches(expr: &Expr<LogCondition>, row: &dyn RowFields) -> bool {
    match expr {
        Expr::Constant(truth) => *truth,
        Expr::Not(inner) => !matches(inner, row),
        Expr::And(parts) => parts.iter().all(|part| matches(part, row)),
        Expr::Or(parts) => parts.iter().any(|part| matches(part, row)),
        Expr::Compare(LogCondition::Compare { property, operator, literal }) => {
            compares(row, property, *operator, literal)
        }
        Expr::Compare(LogCondition::Call { function, property, text }) => {
            with_text(row, property, |found| match function {
                Function::Contains => found.contains(text.as_str()),
                Function::StartsWith => found.starts_with(text.as_str()),
            })
        }
    }
}

fn compares(
    row: &dyn RowFields,
    property: &Property,
    operator: Operator,
    literal: &Literal,
) -> bool {
    match (property, literal) {
        (Property::Time, Literal::DateTime(ticks)) => {
            let (seconds, nanos) = ticks.to_unix();
            let literal = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
            operator.holds(Some(i128::from(row.time()).cmp(&literal)))
        }
        (Property::Severity, _) => {
            let severity = row.severity();
            severity != 0 && operator.holds(order_of_whole(severity.into(), literal))
        }
        (Property::Sequence, _) => {
            let sequence = i64::try_from(row.sequence()).unwrap_or(i64::MAX);
            operator.holds(order_of_whole(sequence, literal))
        }
        (Property::Value, _) => {
            row.value().is_some_and(|value| operator.holds(order_of_double(value, literal)))
        }
        (Property::IsMonotonic, Literal::Boolean(literal)) => {
            row.is_monotonic().is_some_and(|truth| operator.holds(Some(truth.cmp(literal))))
        }
        (Property::Attribute(key), _) => {
            row.attribute(key).is_some_and(|value| operator.holds(order(&value, literal)))
        }
        (Property::Resource(key), _) => {
            row.resource(key).is_some_and(|value| operator.holds(order(&value, literal)))
        }
        (_, Literal::String(text)) => {
            with_text(row, property, |found| operator.holds(Some(found.cmp(text.as_str()))))
        }
        // The dialect has no such comparison.
        _ => false,
    }
}

/// Tests a property that is text; false where it is absent or another value.
fn with_text(row: &dyn RowFields, property: &Property, test: impl FnOnce(&str) -> bool) -> bool {
    let present = |text: &str| !text.is_empty();
    match property {
        Property::Body => row.body().is_some_and(test),
        Property::SeverityText => {
            Some(row.severity_text()).filter(|text| present(text)).is_some_and(test)
        }
        Property::EventName => {
            Some(row.event_name()).filter(|text| present(text)).is_some_and(test)
        }
        Property::Temporality => {
            Some(row.temporality()).filter(|text| present(text)).is_some_and(test)
        }
        Property::Unit => Some(row.unit()).filter(|text| present(text)).is_some_and(test),
        Property::Scope => {
            let name = row.scope_name();
            present(&name) && test(&name)
        }
        Property::TraceId => with_hex(row.trace_id(), test),
        Property::SpanId => with_hex(row.span_id(), test),
        Property::Attribute(key) => is_text(row.attribute(key), test),
        Property::Resource(key) => is_text(row.resource(key), test),
        Property::Time
        | Property::Sequence
        | Property::Severity
        | Property::Value
        | Property::IsMonotonic => false,
    }
}

fn is_text(value: Option<ValueRef<'_>>, test: impl FnOnce(&str) -> bool) -> bool {
    matches!(value, Some(ValueRef::Str(text)) if test(&text))
}

/// Tests an identifier as lower-case hexadecimal text, without allocation.
fn with_hex(id: &[u8], test: impl FnOnce(&str) -> bool) -> bool {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0; 2 * ID_BYTES_MAX];
    let Some(used) = text.get_mut(..2 * id.len()).filter(|_| !id.is_empty()) else {
        return false;
    };
    for (byte, pair) in id.iter().zip(used.as_chunks_mut::<2>().0) {
        let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or(b'0');
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    str::from_utf8(used).is_ok_and(test)
}

fn order(value: &ValueRef<'_>, literal: &Literal) -> Option<Ordering> {
    match (value, literal) {
        (ValueRef::Str(text), Literal::String(literal)) => {
            Some(text.as_ref().cmp(literal.as_str()))
        }
        (ValueRef::Bytes(bytes), Literal::Binary(literal)) => Some(bytes.as_ref().cmp(literal)),
        (ValueRef::Bool(truth), Literal::Boolean(literal)) => Some(truth.cmp(literal)),
        (ValueRef::Int(number), _) => order_of_whole(*number, literal),
        (ValueRef::Double(number), _) => order_of_double(*number, literal),
        _ => None,
    }
}

fn order_of_whole(number: i64, literal: &Literal) -> Option<Ordering> {
    match literal {
        Literal::Int32(literal) => Some(number.cmp(&i64::from(*literal))),
        Literal::Int64(literal) => Some(number.cmp(literal)),
        Literal::Double(literal) => compare_numbers(number, *literal),
        _ => None,
    }
}

fn order_of_double(number: f64, literal: &Literal) -> Option<Ordering> {
    match literal {
        Literal::Int32(literal) => {
            compare_numbers(i64::from(*literal), number).map(Ordering::reverse)
        }
        Literal::Int64(literal) => compare_numbers(*literal, number).map(Ordering::reverse),
        Literal::Double(literal) => number.partial_cmp(literal),
        _ => None,
    }
}
