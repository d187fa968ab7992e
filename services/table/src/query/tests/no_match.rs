//! Why no entity matches a filter.

use bytes::Bytes;
use uuid::Uuid;

use super::{
    super::MatchTrial,
    semantics::{encoded, text},
    *,
};
use crate::value::Value;

/// The reasons after these entities, none of which matches.
fn reasons(filter: &str, entities: &[&[(&str, Value)]]) -> Vec<String> {
    let filter = Filter::parse(filter).unwrap().unwrap();
    let mut trial = MatchTrial::new(&filter);
    for properties in entities {
        let wire = encoded(properties);
        assert!(!filter.matches(&wire).unwrap(), "{filter}");
        trial.observe(&wire).unwrap();
    }
    trial.reasons(&QueryPlan::new(Some(&filter)), false)
}

/// The literal to write instead, for one value.
fn advised(value: Value, literal: &str) -> Option<String> {
    let reasons = reasons(&format!("v eq {literal}"), &[&[("v", value)]]);
    let (_, advice) = reasons[0].split_once(": write ")?;
    Some(advice.strip_suffix(&format!(", not {literal}")).unwrap().to_owned())
}

#[test]
fn a_property_that_no_entity_has_is_named_with_the_nearest() {
    let (total, state) = (("total", Value::Int32(5)), ("state", text("open")));
    let entities: [&[_]; 2] = [&[total.clone(), state.clone()], &[state]];

    let absent = "none of the 2 entities scanned has a property";
    assert_eq!(
        reasons("totl gt 1 and state eq 'open'", &entities),
        [format!("{absent} `totl`; the nearest name is `total`")]
    );
    assert_eq!(reasons("customer eq 'x'", &entities), [format!("{absent} `customer`")]);
    assert_eq!(reasons("total eq 6", &entities), [""; 0], "one entity has it");
    assert_eq!(
        reasons("b eq 1 or a eq 1 or b eq 2", &entities[..1]),
        ["a", "b"].map(|name| format!("the entity scanned has no property `{name}`"))
    );
    assert_eq!(reasons("not (total eq 5) and totl eq 1", &[std::slice::from_ref(&total)]).len(), 1);
    let not_absent = reasons("not (absent eq 1) and total eq 6", &[&[total]]);
    assert_eq!(not_absent, [""; 0], "an entity without the property fulfils the condition");
}

#[test]
fn only_the_first_entities_of_more_are_claimed() {
    let filter = Filter::parse("a eq 1").unwrap().unwrap();
    let mut trial = MatchTrial::new(&filter);
    (0..3).for_each(|_| trial.observe(&encoded(&[])).unwrap());

    let reasons = trial.reasons(&QueryPlan::new(Some(&filter)), true);

    assert_eq!(reasons, ["none of the first 3 entities scanned has a property `a`"]);
}

#[test]
fn a_literal_of_another_type_is_rewritten_where_it_has_that_value() {
    let time = Value::DateTime(trestle_model::etag::parse_time("2026-01-31T08:00:00Z").unwrap());
    let guid = Value::Guid(Uuid::nil());
    for (value, literal, expected) in [
        (Value::Int32(1), "'990'", Some("990")),
        (Value::Int64(1), "'990'", Some("990")),
        (Value::Double(1.0), "'9.5'", Some("9.5")),
        (Value::Int64(1), "'99000000000'", Some("99000000000L")),
        (Value::Int32(1), "'many'", None),
        (Value::Int32(1), "'1 or b eq 2'", None),
        (Value::Boolean(true), "'true'", Some("true")),
        (Value::Boolean(true), "1", None),
        (text("x"), "990", Some("'990'")),
        (text("x"), "990L", Some("'990'")),
        (text("x"), "true", Some("'true'")),
        (time.clone(), "'2026-01-31T08:00:00Z'", Some("datetime'2026-01-31T08:00:00Z'")),
        (time, "'soon'", None),
        (text("x"), "datetime'2026-01-31T08:00:00Z'", Some("'2026-01-31T08:00:00Z'")),
        (
            guid,
            "'0f8fad5b-d9cb-469f-a165-70867728950e'",
            Some("guid'0f8fad5b-d9cb-469f-a165-70867728950e'"),
        ),
        (Value::Binary(Bytes::from_static(b"a")), "'0aff'", Some("X'0aff'")),
        (text("x"), "X'0aff'", None),
    ] {
        let found = advised(value.clone(), literal);
        assert_eq!(found.as_deref(), expected, "{value:?}: {literal}");
    }
}

#[test]
fn the_stored_types_and_that_of_the_literal_are_named() {
    let entities: [&[_]; 2] = [&[("v", Value::Int64(1))], &[("v", Value::Boolean(true))]];

    let found = reasons("v eq 'it''s'", &entities);

    assert_eq!(found, ["`v` is Edm.Boolean or Edm.Int64, and Edm.String in the filter"]);
    let long = "x".repeat(200);
    let found = reasons(&format!("v eq '{long}'"), &entities[..1]);
    assert_eq!(found, ["`v` is Edm.Int64, and Edm.String in the filter"]);
}

#[test]
fn numbers_of_different_types_and_comparisons_that_hold_are_no_reason() {
    let number: &[_] = &[("v", Value::Int64(5))];

    for filter in ["v eq 6", "v eq 6L", "v eq 5.5", "v gt 5.0", "v lt 5L"] {
        assert_eq!(reasons(filter, &[number]), [""; 0], "{filter}");
    }
    // A number precedes every text, so that this comparison holds.
    assert_eq!(reasons("v lt '1' and v gt 5", &[number]), [""; 0]);
    let mixed: [&[_]; 2] = [number, &[("v", text("x"))]];
    assert_eq!(reasons("v eq '5'", &mixed), [""; 0], "one entity has a text");
}

#[test]
fn a_key_range_without_entities_is_the_reason() {
    for (filter, expected) in [
        ("PartitionKey eq 'p' and RowKey eq 'x'", "no entity has this key; keys"),
        ("PartitionKey eq 'q'", "no entity has a key in the range of the filter; keys"),
        ("a eq 1", "the table has no entity"),
        ("PartitionKey eq 'p' and PartitionKey eq 'q'", "the conditions contradict each other"),
        (
            "PartitionKey eq 5",
            "`PartitionKey` is Edm.String, and Edm.Int32 in the filter: write '5', not 5",
        ),
        (
            "Timestamp gt '2026-01-31T08:00:00Z'",
            "`Timestamp` is Edm.DateTime, and Edm.String in the filter: write \
             datetime'2026-01-31T08:00:00Z', not '2026-01-31T08:00:00Z'",
        ),
    ] {
        let found = reasons(filter, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(expected), "{filter}: {found:?}");
    }
}

#[test]
fn what_is_stored_of_a_trial_is_bounded() {
    let filter = (0..100).map(|at| format!("a{at} eq 1")).collect::<Vec<_>>().join(" and ");
    let names: Vec<_> = (0..1000).map(|at| format!("b{at:04}")).collect();
    let entities: Vec<_> =
        names.iter().map(|name| vec![(name.as_str(), Value::Int32(1))]).collect();
    let entities: Vec<&[_]> = entities.iter().map(Vec::as_slice).collect();

    let found = reasons(&filter, &entities);

    assert_eq!(found.len(), 16);
}
