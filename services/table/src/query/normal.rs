//! The normal form of a condition, from which plans are made.
//!
//! Every `not` is pushed down to the comparisons, and through those of properties that every
//! entity has: `not (PartitionKey lt 'a')` is `PartitionKey ge 'a'`. Through the comparison of a
//! custom property it must not be pushed, because where the property is missing both `lt` and
//! `ge` are false. Constants are folded, and so are comparisons of keys and timestamps with
//! literals of another type, which are true for every entity or for none.

use trestle_filter::{Comparison, EdmValueRef, Expr, holds, rank};
use trestle_model::time::Ticks;

use super::eval::{TIMESTAMP, system_slot};

/// The normal form of a condition.
pub(super) fn normalize(expr: &Expr) -> Expr {
    push_down(expr, false)
}

fn push_down(expr: &Expr, negated: bool) -> Expr {
    match expr {
        Expr::Constant(truth) => Expr::Constant(*truth != negated),
        Expr::Not(inner) => push_down(inner, !negated),
        Expr::Compare(comparison) => push_into(comparison, negated),
        // De Morgan: not (a and b) is (not a) or (not b).
        Expr::And(parts) if negated => any(parts, negated),
        Expr::Or(parts) if negated => all(parts, negated),
        Expr::And(parts) => all(parts, negated),
        Expr::Or(parts) => any(parts, negated),
    }
}

fn push_into(comparison: &Comparison, negated: bool) -> Expr {
    let Comparison { property, operator, literal } = comparison;
    let Some(slot) = system_slot(property) else {
        let same = Expr::Compare(comparison.clone());
        return if negated { Expr::Not(Box::new(same)) } else { same };
    };
    let example = match slot {
        TIMESTAMP => EdmValueRef::DateTime(Ticks::MAX),
        _ => EdmValueRef::String(""),
    };
    if rank(example) != rank(literal.as_value()) {
        return Expr::Constant(holds(example, *operator, literal.as_value()) != negated);
    }
    let operator = if negated { operator.inverted() } else { *operator };
    Expr::compare(property, operator, literal.clone())
}

fn all(parts: &[Expr], negated: bool) -> Expr {
    let parts: Vec<_> = parts.iter().map(|part| push_down(part, negated)).collect();
    if parts.contains(&Expr::Constant(false)) {
        return Expr::Constant(false);
    }
    Expr::all(parts.into_iter().filter(|part| *part != Expr::Constant(true)).collect())
}

fn any(parts: &[Expr], negated: bool) -> Expr {
    let parts: Vec<_> = parts.iter().map(|part| push_down(part, negated)).collect();
    if parts.contains(&Expr::Constant(true)) {
        return Expr::Constant(true);
    }
    Expr::any(parts.into_iter().filter(|part| *part != Expr::Constant(false)).collect())
}
