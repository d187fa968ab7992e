//! How values compare: one total order over all types, but for NaN.
//!
//! Values of one type compare naturally, numbers of different types by their exact value, text by
//! UTF-16 code unit. Other pairs are never equal and are ordered by type:
//! Boolean < numbers < DateTime < Guid < Binary < String. A comparison never fails.

use std::cmp::Ordering;

use trestle_kv::order::compare_text;

use crate::{EdmValueRef, Operator};

/// Whether `value operator literal` is true.
#[must_use]
#[inline]
pub fn holds(value: EdmValueRef<'_>, operator: Operator, literal: EdmValueRef<'_>) -> bool {
    let ordering = match (value, literal, operator) {
        // Equality of texts needs no order: length and memory are compared at full speed.
        (EdmValueRef::String(a), EdmValueRef::String(b), Operator::Equal) => return a == b,
        (EdmValueRef::String(a), EdmValueRef::String(b), Operator::NotEqual) => {
            return a != b;
        }
        _ => compare(value, literal),
    };
    operator.holds(ordering)
}

/// Compares two values; none when a NaN is compared with a number.
fn compare(a: EdmValueRef<'_>, b: EdmValueRef<'_>) -> Option<Ordering> {
    use EdmValueRef as V;
    match (a, b) {
        (V::String(a), V::String(b)) => Some(compare_text(a, b)),
        (V::Boolean(a), V::Boolean(b)) => Some(a.cmp(&b)),
        (V::DateTime(a), V::DateTime(b)) => Some(a.cmp(&b)),
        // The bytes of guids compare like their lower-case texts.
        (V::Guid(a), V::Guid(b)) => Some(a.cmp(&b)),
        (V::Binary(a), V::Binary(b)) => Some(a.cmp(b)),
        (V::Double(a), V::Double(b)) => a.partial_cmp(&b),
        (V::Double(a), b) => match whole(b) {
            Some(b) => compare_numbers(b, a).map(Ordering::reverse),
            None => Some(rank(V::Double(a)).cmp(&rank(b))),
        },
        (a, V::Double(b)) => match whole(a) {
            Some(a) => compare_numbers(a, b),
            None => Some(rank(a).cmp(&rank(V::Double(b)))),
        },
        (a, b) => match (whole(a), whole(b)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => Some(rank(a).cmp(&rank(b))),
        },
    }
}

fn whole(value: EdmValueRef<'_>) -> Option<i64> {
    match value {
        EdmValueRef::Int32(number) => Some(i64::from(number)),
        EdmValueRef::Int64(number) => Some(number),
        _ => None,
    }
}

/// Compares by exact value: a conversion of the whole number to a double would round it. None for NaN.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "the double is whole and in range")]
pub fn compare_numbers(whole: i64, double: f64) -> Option<Ordering> {
    /// 2^63, the first double above every `i64`.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() {
        None
    } else if double >= ABOVE {
        Some(Ordering::Less)
    } else if double < -ABOVE {
        Some(Ordering::Greater)
    } else {
        let floor = double.floor();
        let of_floor = whole.cmp(&(floor as i64));
        // Equal to the floor is less than what lies above it.
        Some(if of_floor.is_eq() && floor < double { Ordering::Less } else { of_floor })
    }
}

/// The rank of a type among the others; the numbers share one.
#[must_use]
pub fn rank(value: EdmValueRef<'_>) -> u8 {
    match value {
        EdmValueRef::Boolean(_) => 0,
        EdmValueRef::Int32(_) | EdmValueRef::Int64(_) | EdmValueRef::Double(_) => 1,
        EdmValueRef::DateTime(_) => 2,
        EdmValueRef::Guid(_) => 3,
        EdmValueRef::Binary(_) => 4,
        EdmValueRef::String(_) => 5,
    }
}
