//! The order of values: total over all types, by exact value, against comparisons with arbitrary precision.

use std::cmp::Ordering;

use proptest::{prelude::*, sample::select};
use trestle_model::time::Ticks;
use uuid::Uuid;

use super::*;

/// Compares by the parts of the double, in integers of 128 bits.
fn exact(whole: i64, double: f64) -> Ordering {
    if double.abs() >= 1e30 {
        return 0.0_f64.total_cmp(&double);
    }
    let bits = double.to_bits();
    let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap();
    let fraction = i128::from(bits & ((1 << 52) - 1));
    let (mantissa, exponent) =
        if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) };
    let mantissa = if bits >> 63 == 1 { -mantissa } else { mantissa };
    let whole = i128::from(whole);
    if exponent >= 0 {
        return whole.cmp(&(mantissa << exponent));
    }
    // A fraction lies between its floor and the next whole number.
    let shift = u32::try_from(-exponent).unwrap().min(120);
    let floor = mantissa >> shift;
    let has_fraction = floor << shift != mantissa;
    match whole.cmp(&floor) {
        Ordering::Equal if has_fraction => Ordering::Less,
        order => order,
    }
}

fn doubles() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("a number", |number| !number.is_nan()),
        any::<i64>().prop_map(|number| number as f64),
        (any::<i32>(), 0..4_u8)
            .prop_map(|(number, quarters)| f64::from(number) + f64::from(quarters) / 4.0),
        select(
            &[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324][..]
        ),
    ]
}

fn wholes() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        any::<i32>().prop_map(i64::from),
        select(&[0, i64::MAX, i64::MIN, 1 << 53, (1 << 53) + 1, -(1 << 53) - 1][..]),
    ]
}

fn values() -> impl Strategy<Value = Literal> {
    prop_oneof![
        "\\PC{0,3}".prop_map(Literal::String),
        any::<i32>().prop_map(Literal::Int32),
        wholes().prop_map(Literal::Int64),
        doubles().prop_map(Literal::Double),
        any::<bool>().prop_map(Literal::Boolean),
        (0..3_i64).prop_map(|second| Literal::DateTime(Ticks::from_unix(second, 0).unwrap())),
        any::<u128>().prop_map(|bits| Literal::Guid(Uuid::from_u128(bits))),
        proptest::collection::vec(any::<u8>(), 0..3)
            .prop_map(|bytes| Literal::Binary(bytes.into())),
    ]
}

/// The order of two values, by which operators hold.
fn order(a: &Literal, b: &Literal) -> Ordering {
    let is = |operator| holds(a.as_value(), operator, b.as_value());
    match (is(Operator::Less), is(Operator::Equal), is(Operator::Greater)) {
        (true, false, false) => Ordering::Less,
        (false, true, false) => Ordering::Equal,
        (false, false, true) => Ordering::Greater,
        other => panic!("{a:?}, {b:?}: {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn whole_numbers_and_doubles_compare_by_their_exact_value(
        whole in wholes(),
        double in doubles(),
    ) {
        prop_assert_eq!(compare_numbers(whole, double), Some(exact(whole, double)));
        let near = whole as f64;
        prop_assert_eq!(compare_numbers(whole, near), Some(exact(whole, near)), "{}", near);
        // The order is the same from both sides.
        let (left, right) = (Literal::Int64(whole), Literal::Double(double));
        prop_assert_eq!(order(&left, &right), order(&right, &left).reverse());
    }

    #[test]
    fn the_order_is_total_and_transitive(a in values(), b in values(), c in values()) {
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        prop_assert_eq!(order(&a, &a), Ordering::Equal);
        let mut sorted = [&a, &b, &c];
        sorted.sort_by(|one, other| order(one, other));
        let [first, _, last] = sorted;
        prop_assert!(order(first, last) != Ordering::Greater, "{:?} {:?} {:?}", a, b, c);
        let ranks = rank(a.as_value()).cmp(&rank(b.as_value()));
        if ranks.is_ne() {
            prop_assert_eq!(order(&a, &b), ranks);
        }
    }

    #[test]
    fn operators_are_each_other_mirrored_and_inverted(a in values(), b in values()) {
        for operator in Operator::ALL {
            let held = holds(a.as_value(), operator, b.as_value());
            let mirrored = holds(b.as_value(), operator.mirrored(), a.as_value());
            let inverted = holds(a.as_value(), operator.inverted(), b.as_value());
            prop_assert_eq!(held, mirrored, "{:?}", operator);
            prop_assert_eq!(held, !inverted, "{:?}", operator);
        }
    }

    #[test]
    fn texts_compare_as_their_utf_16(a in "\\PC{0,4}", b in "\\PC{0,4}") {
        let expected = a.encode_utf16().cmp(b.encode_utf16());
        prop_assert_eq!(order(&Literal::String(a), &Literal::String(b)), expected);
    }
}

#[test]
fn types_are_ordered_and_numbers_share_a_rank() {
    let ascending = [
        Literal::Boolean(false),
        Literal::Boolean(true),
        Literal::Double(f64::NEG_INFINITY),
        Literal::Int32(-1),
        Literal::Double(0.5),
        Literal::Int64(1),
        Literal::Double(f64::INFINITY),
        Literal::DateTime(Ticks::from_unix(0, 0).unwrap()),
        Literal::Guid(Uuid::nil()),
        Literal::Binary(bytes::Bytes::new()),
        Literal::String(String::new()),
        Literal::String("a".to_owned()),
        // By UTF-16 code unit: a surrogate comes before U+FFFF.
        Literal::String("𝄞".to_owned()),
        Literal::String("\u{ffff}".to_owned()),
    ];
    for pair in ascending.windows(2) {
        assert_eq!(order(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
    }
    assert_eq!(order(&Literal::Int32(1), &Literal::Int64(1)), Ordering::Equal);
    assert_eq!(order(&Literal::Int32(0), &Literal::Double(-0.0)), Ordering::Equal);
}

#[test]
fn nan_is_unequal_to_every_number_and_without_order() {
    let nan = EdmValueRef::Double(f64::NAN);
    assert_eq!(compare_numbers(0, f64::NAN), None);
    for number in [EdmValueRef::Int32(0), EdmValueRef::Int64(i64::MAX), nan] {
        for operator in Operator::ALL {
            let expected = operator == Operator::NotEqual;
            assert_eq!(holds(nan, operator, number), expected, "{operator:?} {number:?}");
            assert_eq!(holds(number, operator, nan), expected, "{operator:?} {number:?}");
        }
    }
    // Among the types it is a number.
    assert!(holds(nan, Operator::Less, EdmValueRef::String("")));
    assert!(holds(EdmValueRef::Boolean(true), Operator::Less, nan));
}
