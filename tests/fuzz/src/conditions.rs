//! Conditions of the filter language as typed inputs.

use arbitrary::Arbitrary;
use trestle_filter::{Expr, Literal, Operator};
use trestle_model::time::Ticks;
use uuid::Uuid;

use crate::{Key, Name};

/// Conditions nest this deep at most; the language has a bound of its own.
const DEPTH_MAX: usize = 6;

/// A condition on an entity.
#[derive(Debug, Clone, Arbitrary)]
pub enum Condition {
    /// Always, or never.
    Constant(bool),
    /// On the partition key.
    Partition(u8, Key),
    /// On the row key.
    Row(u8, Key),
    /// On the time of the last write.
    Timestamp(u8, u64),
    /// On a property.
    Property(Name, u8, Constant),
    /// The opposite.
    Not(Box<Condition>),
    /// All of them.
    All(Vec<Condition>),
    /// Any of them.
    Any(Vec<Condition>),
}

/// A literal of a filter.
#[derive(Debug, Clone, Arbitrary)]
pub enum Constant {
    /// `'text'`
    String(String),
    /// `12`
    Int32(i32),
    /// `12L`
    Int64(i64),
    /// `1.5`
    Double(f64),
    /// `true`
    Boolean(bool),
    /// `datetime'…'`
    Time(u64),
    /// `guid'…'`
    Guid(u128),
    /// `X'…'`
    Binary(Vec<u8>),
}

impl Condition {
    /// The condition as the query language has it; too deep ones are cut off.
    #[must_use]
    pub fn expr(&self) -> Expr {
        self.at_depth(0)
    }

    fn at_depth(&self, depth: usize) -> Expr {
        if depth == DEPTH_MAX {
            return Expr::Constant(true);
        }
        let key =
            |name, number: u8, key: &Key| Expr::compare(name, operator(number), text(key.text()));
        let list = |parts: &[Self]| -> Vec<_> {
            parts.iter().map(|part| part.at_depth(depth + 1)).collect()
        };
        match self {
            Self::Constant(truth) => Expr::Constant(*truth),
            Self::Partition(number, value) => key("PartitionKey", *number, value),
            Self::Row(number, value) => key("RowKey", *number, value),
            Self::Timestamp(number, ticks) => {
                Expr::compare("Timestamp", operator(*number), time(*ticks))
            }
            Self::Property(name, number, value) => {
                Expr::compare(&name.text(), operator(*number), value.literal())
            }
            Self::Not(inner) => match inner.at_depth(depth + 1) {
                Expr::Not(inner) => *inner,
                inner => Expr::Not(Box::new(inner)),
            },
            Self::All(parts) => Expr::all(list(parts)),
            Self::Any(parts) => Expr::any(list(parts)),
        }
    }
}

impl Constant {
    fn literal(&self) -> Literal {
        match self.clone() {
            Self::String(value) => text(value),
            Self::Int32(number) => Literal::Int32(number),
            Self::Int64(number) => Literal::Int64(number),
            // A filter cannot spell the others.
            Self::Double(number) if number.is_finite() => Literal::Double(number),
            Self::Double(_) => Literal::Double(0.5),
            Self::Boolean(truth) => Literal::Boolean(truth),
            Self::Time(ticks) => time(ticks),
            Self::Guid(bits) => Literal::Guid(Uuid::from_u128(bits)),
            Self::Binary(bytes) => Literal::Binary(bytes.into()),
        }
    }
}

fn text(value: String) -> Literal {
    Literal::String(value)
}

fn time(ticks: u64) -> Literal {
    Literal::DateTime(Ticks::new(ticks).unwrap_or(Ticks::MAX))
}

fn operator(number: u8) -> Operator {
    match number % 6 {
        0 => Operator::Equal,
        1 => Operator::NotEqual,
        2 => Operator::Greater,
        3 => Operator::GreaterOrEqual,
        4 => Operator::Less,
        _ => Operator::LessOrEqual,
    }
}
