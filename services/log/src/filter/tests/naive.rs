//! Filters against a naive evaluator, and their texts against the parser.

use proptest::{collection::vec, prelude::*, sample::select};
use trestle_filter::{Function, Literal, Operator};

use super::*;

fn words() -> impl Strategy<Value = String> {
    select(&["", "a", "ab", "b", "it's", "é", "\u{ffff}", "𝄞", "00", "0a"][..])
        .prop_map(str::to_owned)
}

fn keys() -> impl Strategy<Value = String> {
    select(&["k", "a.b-c:d", "any key", "it's", "a/b"][..]).prop_map(str::to_owned)
}

fn numbers() -> impl Strategy<Value = Literal> {
    prop_oneof![
        (-2..3).prop_map(Literal::Int32),
        (-2..3_i64).prop_map(Literal::Int64),
        (-4..6).prop_map(|half| Literal::Double(f64::from(half) / 2.0)),
    ]
}

fn values() -> impl Strategy<Value = Literal> {
    prop_oneof![
        words().prop_map(Literal::String),
        numbers(),
        any::<bool>().prop_map(Literal::Boolean),
        vec(0..2_u8, 0..2).prop_map(|bytes| Literal::Binary(bytes.into())),
    ]
}

fn text_property() -> impl Strategy<Value = Property> {
    prop_oneof![
        select(
            &[
                Property::Body,
                Property::SeverityText,
                Property::EventName,
                Property::Scope,
                Property::Temporality,
                Property::Unit,
                Property::TraceId,
                Property::SpanId,
            ][..]
        ),
        keys().prop_map(Property::Attribute),
        keys().prop_map(Property::Resource),
    ]
}

fn condition() -> impl Strategy<Value = LogCondition> {
    let any_value =
        prop_oneof![keys().prop_map(Property::Attribute), keys().prop_map(Property::Resource)];
    let number = select(&[Property::Severity, Property::Value, Property::Sequence][..]);
    let compared = prop_oneof![
        (text_property(), words().prop_map(Literal::String)),
        (any_value, values()),
        (number, numbers()),
        (Just(Property::IsMonotonic), any::<bool>().prop_map(Literal::Boolean)),
    ];
    let function = select(&[Function::Contains, Function::StartsWith][..]);
    prop_oneof![
        3 => (compared, select(&Operator::ALL[..])).prop_map(|((property, literal), operator)| {
            LogCondition::Compare { property, operator, literal }
        }),
        1 => (function, text_property(), words()).prop_map(|(function, property, text)| {
            LogCondition::Call { function, property, text }
        }),
    ]
}

fn expr() -> impl Strategy<Value = Expr<LogCondition>> {
    let leaf = prop_oneof![
        9 => condition().prop_map(Expr::Compare),
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

fn attribute_value() -> impl Strategy<Value = ValueRef<'static>> {
    values().prop_map(|literal| match literal {
        Literal::String(text) => ValueRef::Str(text.into()),
        Literal::Int32(number) => ValueRef::Int(number.into()),
        Literal::Int64(number) => ValueRef::Int(number),
        Literal::Double(number) => ValueRef::Double(number),
        Literal::Boolean(truth) => ValueRef::Bool(truth),
        _ => ValueRef::Bytes(vec![1].into()),
    })
}

fn row() -> impl Strategy<Value = SampleRow> {
    let entries = || proptest::collection::btree_map(keys(), attribute_value(), 0..4);
    let id = |bytes| prop_oneof![Just(Vec::new()), vec(0..11_u8, bytes)];
    let texts = (words(), proptest::option::of(words()), words(), words());
    let numbers = (0..3_i32, 0..3_u64, proptest::option::of((-4..6).prop_map(f64::from)));
    (texts, numbers, (id(16), id(8)), (entries(), entries())).prop_map(
        |(texts, numbers, (trace_id, span_id), (attributes, resource))| SampleRow {
            severity_text: texts.0,
            body: texts.1,
            unit: texts.3.clone(),
            temporality: texts.2.clone(),
            event_name: texts.2,
            is_monotonic: numbers.2.map(|value| value > 0.0),
            scope: texts.3,
            severity: numbers.0,
            sequence: numbers.1,
            value: numbers.2.map(|value: f64| value / 2.0),
            trace_id,
            span_id,
            attributes,
            resource,
            time: 0,
        },
    )
}

/// The value of a property as a literal.
fn naive_value(row: &SampleRow, property: &Property) -> Option<Literal> {
    let text = |text: &str| (!text.is_empty()).then(|| Literal::String(text.to_owned()));
    let hex = |id: &[u8]| text(&id.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let value = |value: &ValueRef<'static>| match value.clone() {
        ValueRef::Str(text) => Literal::String(text.into_owned()),
        ValueRef::Int(number) => Literal::Int64(number),
        ValueRef::Double(number) => Literal::Double(number),
        ValueRef::Bool(truth) => Literal::Boolean(truth),
        ValueRef::Bytes(bytes) => Literal::Binary(bytes.into_owned().into()),
    };
    match property {
        Property::Body => row.body.clone().map(Literal::String),
        Property::SeverityText => text(&row.severity_text),
        Property::EventName => text(&row.event_name),
        Property::Scope => text(&row.scope),
        Property::TraceId => hex(&row.trace_id),
        Property::SpanId => hex(&row.span_id),
        Property::Severity => Some(Literal::Int32(row.severity)).filter(|_| row.severity != 0),
        Property::Value => row.value.map(Literal::Double),
        Property::Sequence => Some(Literal::Int64(i64::try_from(row.sequence).unwrap())),
        Property::Attribute(key) => row.attributes.get(key).map(value),
        Property::Resource(key) => row.resource.get(key).map(value),
        Property::Temporality => text(&row.temporality),
        Property::IsMonotonic => row.is_monotonic.map(Literal::Boolean),
        Property::Unit => text(&row.unit),
        Property::Time => None,
    }
}

/// The samples are halves.
fn as_double(literal: &Literal) -> Option<f64> {
    match literal {
        Literal::Int32(number) => Some(f64::from(*number)),
        Literal::Int64(number) => Some(f64::from(i32::try_from(*number).unwrap())),
        Literal::Double(number) => Some(*number),
        _ => None,
    }
}

fn naive_matches(expr: &Expr<LogCondition>, row: &SampleRow) -> bool {
    match expr {
        Expr::Constant(truth) => *truth,
        Expr::Not(inner) => !naive_matches(inner, row),
        Expr::And(parts) => parts.iter().all(|part| naive_matches(part, row)),
        Expr::Or(parts) => parts.iter().any(|part| naive_matches(part, row)),
        Expr::Compare(LogCondition::Call { function, property, text }) => {
            let Some(Literal::String(found)) = naive_value(row, property) else { return false };
            match function {
                Function::Contains => found.contains(text.as_str()),
                Function::StartsWith => found.starts_with(text.as_str()),
            }
        }
        Expr::Compare(LogCondition::Compare { property, operator, literal }) => {
            let Some(value) = naive_value(row, property) else { return false };
            let order = match (&value, literal) {
                (Literal::String(a), Literal::String(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
                (Literal::Boolean(a), Literal::Boolean(b)) => Some(a.cmp(b)),
                (Literal::Binary(a), Literal::Binary(b)) => Some(a.cmp(b)),
                _ => as_double(&value).zip(as_double(literal)).and_then(|(a, b)| a.partial_cmp(&b)),
            };
            match operator {
                Operator::Equal => order.is_some_and(|order| order.is_eq()),
                Operator::NotEqual => !order.is_some_and(|order| order.is_eq()),
                Operator::Greater => order.is_some_and(|order| order.is_gt()),
                Operator::GreaterOrEqual => order.is_some_and(|order| order.is_ge()),
                Operator::Less => order.is_some_and(|order| order.is_lt()),
                Operator::LessOrEqual => order.is_some_and(|order| order.is_le()),
            }
        }
    }
}

/// Whether the record has what the filter requires.
fn has(row: &SampleRow, required: &RequiredEquality) -> bool {
    match required {
        RequiredEquality::TraceId(id) => row.trace_id == id,
        RequiredEquality::Attribute(key, value) => row.attributes.get(key) == Some(value),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn filters_match_as_a_naive_evaluator(expr in expr(), rows in vec(row(), 1..8)) {
        let filter = LogFilter { expr };
        for row in &rows {
            let expected = naive_matches(&filter.expr, row);
            prop_assert_eq!(filter.matches(row), expected, "{} on {:?}", filter.expr, row);
            if expected {
                let missing = filter.required().into_iter().find(|required| !has(row, required));
                prop_assert_eq!(missing, None, "{}", filter.expr);
            }
        }
    }

    #[test]
    fn canonical_text_parses_to_the_same_condition(expr in expr()) {
        let text = expr.to_string();

        prop_assert_eq!(filter(&text).expr, expr, "{}", text);
    }

    #[test]
    fn token_sequences_parse_or_report_a_position(
        tokens in vec(
            select(&[
                "body", "attributes/a", "attributes/'a b'", "resource/", "/", ",", "(", ")", "and",
                "or", "not", "eq", "lt", "1", "'x'", "contains", "contains(body, 'x')", "startswith(",
                "true", "severity", "'error'", "'",
            ][..]),
            0..12,
        ),
    ) {
        let text = tokens.join(" ");
        match LogFilter::parse(&text) {
            Ok(None) => prop_assert!(text.is_empty()),
            Ok(Some(parsed)) => prop_assert_eq!(filter(&parsed.expr.to_string()), parsed),
            Err(error) => prop_assert!(error.position <= text.len()),
        }
    }
}
