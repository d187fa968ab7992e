//! The naive evaluation of a filter.

use super::*;

pub(super) fn render(filter: &Filter) -> String {
    match filter {
        Filter::Constant(truth) => truth.to_string(),
        Filter::Compare(property, operator, literal) => {
            format!("{property} {operator} {}", render_literal(literal))
        }
        Filter::Not(inner) => format!("not ({})", render(inner)),
        Filter::And(a, b) => format!("({}) and ({})", render(a), render(b)),
        Filter::Or(a, b) => format!("({}) or ({})", render(a), render(b)),
    }
}

fn render_literal(literal: &Kind) -> String {
    match literal {
        Kind::StringValue(text) => format!("'{text}'"),
        Kind::Int32Value(number) => number.to_string(),
        Kind::Int64Value(number) => format!("{number}L"),
        Kind::DoubleValue(number) => format!("{number:?}"),
        Kind::BooleanValue(truth) => truth.to_string(),
        Kind::DatetimeValue(time) => {
            format!("datetime'1970-01-01T00:00:0{}.0000001Z'", time.seconds)
        }
        Kind::GuidValue(text) => format!("guid'{text}'"),
        Kind::BinaryValue(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("X'{hex}'")
        }
    }
}

/// The rules of the filter language, written literally.
pub(super) fn matches(filter: &Filter, entity: &Entity) -> bool {
    match filter {
        Filter::Constant(truth) => *truth,
        Filter::Not(inner) => !matches(inner, entity),
        Filter::And(a, b) => matches(a, entity) && matches(b, entity),
        Filter::Or(a, b) => matches(a, entity) || matches(b, entity),
        Filter::Compare(property, operator, literal) => {
            let value = match *property {
                "PartitionKey" => Some(Kind::StringValue(entity.partition_key.clone())),
                "RowKey" => Some(Kind::StringValue(entity.row_key.clone())),
                name => value_of(entity, name).cloned(),
            };
            let Some(value) = value else { return false };
            let ordering = compare(&value, literal);
            match *operator {
                "eq" => ordering == Some(Ordering::Equal),
                "ne" => ordering != Some(Ordering::Equal),
                "gt" => ordering == Some(Ordering::Greater),
                "ge" => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
                "lt" => ordering == Some(Ordering::Less),
                _ => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
            }
        }
    }
}

fn compare(a: &Kind, b: &Kind) -> Option<Ordering> {
    match (a, b) {
        (Kind::StringValue(a), Kind::StringValue(b)) => Some(utf16(a).cmp(&utf16(b))),
        (Kind::BooleanValue(a), Kind::BooleanValue(b)) => Some(a.cmp(b)),
        (Kind::DatetimeValue(a), Kind::DatetimeValue(b)) => Some(a.seconds.cmp(&b.seconds)),
        (Kind::GuidValue(a), Kind::GuidValue(b)) => Some(a.cmp(b)),
        (Kind::BinaryValue(a), Kind::BinaryValue(b)) => Some(a.cmp(b)),
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => a.partial_cmp(&b),
            _ => Some(rank(a).cmp(&rank(b))),
        },
    }
}

/// Exact for the numbers of these tests.
#[allow(clippy::cast_precision_loss, reason = "the numbers are small")]
fn number(kind: &Kind) -> Option<f64> {
    match kind {
        Kind::Int32Value(number) => Some(f64::from(*number)),
        Kind::Int64Value(number) => Some(*number as f64),
        Kind::DoubleValue(number) => Some(*number),
        _ => None,
    }
}

fn rank(kind: &Kind) -> u8 {
    match kind {
        Kind::BooleanValue(_) => 0,
        Kind::Int32Value(_) | Kind::Int64Value(_) | Kind::DoubleValue(_) => 1,
        Kind::DatetimeValue(_) => 2,
        Kind::GuidValue(_) => 3,
        Kind::BinaryValue(_) => 4,
        Kind::StringValue(_) => 5,
    }
}
