//! Planning and evaluation against a naive evaluator.

use std::cmp::Ordering;

use proptest::{collection::vec, prelude::*, sample::select};
use trestle_model::time::Ticks;

use super::*;
use crate::{
    authorize::tests::ranges,
    corrupt::CorruptRecord,
    entity::{Entity, EntityKey, samples},
    stored::{encode_body, seal, wire},
    value::Value,
};

fn literal() -> impl Strategy<Value = Literal> {
    samples::value().prop_map(|value| match value {
        Value::String(text) => Literal::String(text),
        Value::Int32(number) => Literal::Int32(number),
        Value::Int64(number) => Literal::Int64(number),
        Value::Double(number) if number.is_finite() => Literal::Double(number),
        Value::Double(_) => Literal::Double(1e-7),
        Value::Boolean(truth) => Literal::Boolean(truth),
        Value::DateTime(ticks) => Literal::DateTime(ticks),
        Value::Guid(guid) => Literal::Guid(guid),
        Value::Binary(bytes) => Literal::Binary(bytes),
    })
}

/// Conditions, mostly on keys.
fn expr() -> impl Strategy<Value = Expr> {
    let key_name = select(&["PartitionKey", "RowKey"][..]).prop_map(str::to_owned);
    let any_name = prop_oneof![
        4 => samples::name(),
        1 => select(&["PartitionKey", "RowKey", "Timestamp"][..]).prop_map(str::to_owned),
    ];
    let operator = || select(&Operator::ALL[..]);
    let leaf = prop_oneof![
        6 => (key_name, operator(), samples::key_text())
            .prop_map(|(name, operator, key)| Expr::compare(&name, operator, Literal::String(key))),
        3 => (any_name, operator(), literal())
            .prop_map(|(name, operator, literal)| Expr::compare(&name, operator, literal)),
        1 => any::<bool>().prop_map(Expr::Constant),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 2..4).prop_map(Expr::all),
            2 => vec(inner.clone(), 2..4).prop_map(Expr::any),
            // The opposite of an opposite is not kept.
            1 => inner.prop_map(|inner| match inner {
                Expr::Not(inner) => *inner,
                inner => Expr::Not(Box::new(inner)),
            }),
        ]
    })
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// All samples are halves at most, so four times a sample is whole.
fn quarters(value: &Value) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Int32(number) => Some(i128::from(*number)),
        Value::Int64(number) => Some(i128::from(*number)),
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the samples are small or cut off above")]
fn naive_order(value: &Value, literal: &Value) -> Option<Ordering> {
    let rank = |value: &Value| match value {
        Value::Boolean(_) => 0,
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) => 1,
        Value::DateTime(_) => 2,
        Value::Guid(_) => 3,
        Value::Binary(_) => 4,
        Value::String(_) => 5,
    };
    // Beyond 1e20 a double is beyond every whole number, for any exact value.
    let scaled = |double: f64| (double.clamp(-1e20, 1e20) * 1e8) as i128;
    let scaled_whole = |number: i128| number * 100_000_000;
    match (value, literal) {
        (Value::String(a), Value::String(b)) => Some(units(a).cmp(&units(b))),
        (Value::Boolean(a), Value::Boolean(b)) => Some(a.cmp(b)),
        (Value::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
        (Value::Guid(a), Value::Guid(b)) => Some(a.to_string().cmp(&b.to_string())),
        (Value::Binary(a), Value::Binary(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        _ if rank(value) != rank(literal) => Some(rank(value).cmp(&rank(literal))),
        _ => match (whole(value), quarters(value), whole(literal), quarters(literal)) {
            (Some(a), _, Some(b), _) => Some(a.cmp(&b)),
            (Some(a), _, _, Some(b)) => Some(scaled_whole(a).cmp(&scaled(b))),
            (_, Some(a), Some(b), _) => Some(scaled(a).cmp(&scaled_whole(b))),
            _ => None,
        },
    }
}

fn naive_value(literal: &Literal) -> Value {
    match literal.clone() {
        Literal::String(text) => Value::String(text),
        Literal::Int32(number) => Value::Int32(number),
        Literal::Int64(number) => Value::Int64(number),
        Literal::Double(number) => Value::Double(number),
        Literal::Boolean(truth) => Value::Boolean(truth),
        Literal::DateTime(ticks) => Value::DateTime(ticks),
        Literal::Guid(guid) => Value::Guid(guid),
        Literal::Binary(bytes) => Value::Binary(bytes),
    }
}

fn naive_matches(expr: &Expr, entity: &Entity, written_at: Ticks) -> bool {
    match expr {
        Expr::Constant(truth) => *truth,
        Expr::Not(inner) => !naive_matches(inner, entity, written_at),
        Expr::And(parts) => parts.iter().all(|part| naive_matches(part, entity, written_at)),
        Expr::Or(parts) => parts.iter().any(|part| naive_matches(part, entity, written_at)),
        Expr::Compare(Comparison { property, operator, literal }) => {
            let value = match property.as_str() {
                "PartitionKey" => Some(Value::String(entity.key.partition_key.clone())),
                "RowKey" => Some(Value::String(entity.key.row_key.clone())),
                "Timestamp" => Some(Value::DateTime(written_at)),
                name => {
                    let found = entity.properties.iter().find(|(own, _)| own == name);
                    found.map(|(_, value)| value.clone())
                }
            };
            let Some(value) = value else { return false };
            let order = naive_order(&value, &naive_value(literal));
            match operator {
                Operator::Equal => order == Some(Ordering::Equal),
                Operator::NotEqual => order != Some(Ordering::Equal),
                Operator::Greater => order == Some(Ordering::Greater),
                Operator::Less => order == Some(Ordering::Less),
                Operator::GreaterOrEqual => {
                    matches!(order, Some(Ordering::Greater | Ordering::Equal))
                }
                Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            }
        }
    }
}

/// Whether a key is on the inner side of a bound, which is a start (`Greater`) or an end (`Less`).
fn is_within(key: &EntityKey, bound: Option<&KeyBound>, inner: Ordering) -> bool {
    let Some(bound) = bound else { return true };
    let partition = units(&key.partition_key).cmp(&units(&bound.partition_key));
    let order = match &bound.row_key {
        Some(row) => partition.then(units(&key.row_key).cmp(&units(row))),
        None => partition,
    };
    order == inner || order == Ordering::Equal && bound.inclusive
}

fn planned_matches(
    plan: &QueryPlan,
    entity: &Entity,
    written_at: Ticks,
) -> Result<bool, CorruptRecord> {
    let Some(range) = &plan.range else {
        return Ok(false);
    };
    let in_range = is_within(&entity.key, range.start.as_ref(), Ordering::Greater)
        && is_within(&entity.key, range.end.as_ref(), Ordering::Less);
    let encoded = wire(&seal(&encode_body(entity), written_at))?;
    let residual = plan.residual.as_ref().map_or(Ok(true), |filter| filter.matches(&encoded));
    Ok(in_range && residual?)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn planned_queries_match_a_naive_scan(
        expr in expr(),
        entities in vec((samples::entity(), samples::ticks()), 1..12),
        granted in ranges::range(),
    ) {
        let filter = Filter::new(expr.clone());
        let plan = QueryPlan::new(Some(&filter));
        let narrowed = QueryPlan::within(Some(&filter), &granted);

        for (entity, written_at) in &entities {
            let expected = naive_matches(&expr, entity, *written_at);
            let planned = planned_matches(&plan, entity, *written_at).unwrap();
            prop_assert_eq!(planned, expected, "{} on {:?}: {:?}", filter, entity, plan);
            let planned = planned_matches(&narrowed, entity, *written_at).unwrap();
            let within = expected && ranges::naively_in(&granted, &entity.key);
            prop_assert_eq!(planned, within, "{} on {:?}: {:?}", filter, entity, narrowed);
            let encoded = wire(&seal(&encode_body(entity), *written_at)).unwrap();
            prop_assert_eq!(filter.matches(&encoded).unwrap(), expected, "{}", filter);
        }
    }

    #[test]
    fn canonical_text_parses_to_the_same_condition(expr in expr()) {
        let text = expr.to_string();

        prop_assert_eq!(parse(&text), expr, "{}", text);
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!(text.is_char_boundary(error.position), "{}", error);
        }
    }

    #[test]
    fn token_sequences_parse_or_report_a_position(
        tokens in vec(
            select(&[
                "a", "b", "(", ")", "and", "or", "not", "eq", "lt", "1", "2L", "-1.5", "'x'",
                "null", "true", "PartitionKey", "RowKey", "datetime'2026-01-01T00:00:00Z'",
                "X'00'", "'",
            ][..]),
            0..12,
        ),
    ) {
        let text = tokens.join(" ");
        match Filter::parse(&text) {
            Ok(None) => prop_assert!(text.is_empty()),
            Ok(Some(filter)) => prop_assert_eq!(&parse(&filter.to_string()), filter.expr()),
            Err(error) => prop_assert!(error.position <= text.len()),
        }
    }

    #[test]
    fn filters_on_arbitrary_bytes_never_panic(
        expr in expr(),
        bytes in vec(any::<u8>(), 0..64),
    ) {
        if let Err(corrupt) = Filter::new(expr).matches(&bytes) {
            prop_assert!(!corrupt.to_string().is_empty());
        }
    }

    #[test]
    fn the_name_range_contains_every_match(
        expr in expr(),
        name in select(&["", "a", "aa", "b", "c", "d"][..]),
    ) {
        let text = expr.to_string().replace("PartitionKey", "TableName");
        let Ok(Some(filter)) = NameFilter::parse(&text) else { return Ok(()) };

        if filter.matches(name) {
            let range = filter.range().expect("something matches");
            let after_start = range.start.as_ref().is_none_or(|bound| {
                name > bound.name.as_str() || bound.inclusive && name == bound.name
            });
            let before_end = range.end.as_ref().is_none_or(|bound| {
                name < bound.name.as_str() || bound.inclusive && name == bound.name
            });
            prop_assert!(after_start && before_end, "{}: {:?}", text, range);
        }
    }
}
