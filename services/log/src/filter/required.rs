//! What every match of a filter has, so that segments without it are skipped.

use std::{borrow::Cow, ops::Range};

use trestle_filter::{Expr, Literal, Operator};
use trestle_model::time::Ticks;

use super::condition::LogCondition;
use crate::row::{Property, RequiredEquality, ValueRef};

/// The conditions that all matches meet.
fn conjuncts(expr: &Expr<LogCondition>) -> impl Iterator<Item = &LogCondition> {
    let parts = match expr {
        Expr::And(parts) => parts.as_slice(),
        other => std::slice::from_ref(other),
    };
    parts.iter().filter_map(|part| match part {
        Expr::Compare(condition) => Some(condition),
        _ => None,
    })
}

/// The nanoseconds since 1970 in which every match is; empty if none can match.
pub(super) fn times(expr: &Expr<LogCondition>) -> Range<u64> {
    conjuncts(expr).fold(0..u64::MAX, |all, condition| match condition {
        LogCondition::Compare {
            property: Property::Time,
            operator,
            literal: Literal::DateTime(ticks),
        } => {
            let range = range(*operator, *ticks);
            all.start.max(range.start)..all.end.min(range.end)
        }
        _ => all,
    })
}

fn range(operator: Operator, ticks: Ticks) -> Range<u64> {
    let (at, next) = (nanos(ticks, 0), nanos(ticks, 1));
    match operator {
        Operator::Equal => at..next,
        Operator::NotEqual => 0..u64::MAX,
        Operator::Greater => next..u64::MAX,
        Operator::GreaterOrEqual => at..u64::MAX,
        Operator::Less => 0..at,
        Operator::LessOrEqual => 0..next,
    }
}

/// A time and more nanoseconds, moved to the nearest one that records can have.
fn nanos(ticks: Ticks, more: i128) -> u64 {
    let (seconds, nanos) = ticks.to_unix();
    let nanos = i128::from(seconds) * 1_000_000_000 + i128::from(nanos) + more;
    u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
}

/// The equalities that every match satisfies.
pub(super) fn equalities(expr: &Expr<LogCondition>) -> Vec<RequiredEquality> {
    conjuncts(expr).filter_map(equality).collect()
}

/// Not of numbers: 5 equals 5.0, and a bloom filter has the values of one type.
fn equality(condition: &LogCondition) -> Option<RequiredEquality> {
    let LogCondition::Compare { property, operator: Operator::Equal, literal } = condition else {
        return None;
    };
    match (property, literal) {
        (Property::TraceId, Literal::String(text)) => trace_id(text).map(RequiredEquality::TraceId),
        (Property::Attribute(key), literal) => {
            let value = match literal {
                Literal::String(text) => ValueRef::Str(Cow::Owned(text.clone())),
                Literal::Boolean(truth) => ValueRef::Bool(*truth),
                Literal::Binary(bytes) => ValueRef::Bytes(Cow::Owned(bytes.to_vec())),
                _ => return None,
            };
            Some(RequiredEquality::Attribute(key.clone(), value))
        }
        _ => None,
    }
}

/// The bytes of a hexadecimal text; none if it is not the text of a trace.
fn trace_id(text: &str) -> Option<[u8; 16]> {
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = u128::from_str_radix(text, 16).ok().filter(|_| digits && text.len() == 32)?;
    Some(id.to_be_bytes())
}
