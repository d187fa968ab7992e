//! The elements that an error body has beside code and message.

use super::*;

fn extras(fault: Fault, query: &str) -> Vec<(&'static str, String)> {
    let params = Params::parse(query).expect("a query");
    explain(fault.into(), &params).extras
}

fn invalid(field: &str) -> Fault {
    Fault::violation(Reason::InvalidQueryParameterValue, field, "rule")
}

#[test]
fn an_invalid_field_of_the_call_is_reported_as_the_parameter_of_the_request() {
    for (field, query, name, value) in [
        ("pop_receipt", "popreceipt=a%2Bb", "popreceipt", "a+b"),
        ("messages[0].pop_receipt", "PopReceipt=x", "popreceipt", "x"),
        ("pop_receipt", "", "popreceipt", ""),
        ("messages[0].visibility_delay", "visibilitytimeout=9", "visibilitytimeout", "9"),
    ] {
        let found = extras(invalid(field), query);
        assert_eq!(found[0], ("QueryParameterName", name.to_owned()), "{field}");
        assert_eq!(found[1], ("QueryParameterValue", value.to_owned()), "{field}");
        assert_eq!((found[2].0, found.len()), ("Reason", 3), "{field}");
    }
}

#[test]
fn the_reason_of_an_invalid_parameter_is_that_of_azure() {
    let reason = |field| extras(invalid(field), "")[2].1.clone();
    assert_eq!(reason("pop_receipt"), "Invalid pop receipt format");
    let expected = "messagettl must be greater than visibilitytimeout";
    assert_eq!(reason("visibility_delay"), expected);
}

#[test]
fn an_invalid_page_token_becomes_an_invalid_marker() {
    let params = Params::parse("comp=list&marker=mine").expect("a query");

    let error = explain(invalid("page_token").into(), &params);

    assert!(error.is(Reason::InvalidMarker) && !error.is(Reason::InvalidQueryParameterValue));
    assert!(error.status.message().contains("`mine`"), "{}", error.status.message());
}

#[test]
fn a_body_that_is_too_large_has_its_bound() {
    let found = extras(Fault::new(Reason::RequestBodyTooLarge, "too large"), "");
    assert_eq!(found, [("MaxLimit", "65536".to_owned())]);
}

#[test]
fn other_errors_and_those_with_elements_are_unchanged() {
    for fault in [
        invalid("queue"),
        Fault::new(Reason::InvalidQueryParameterValue, "without a field"),
        Fault::violation(Reason::InvalidInput, "pop_receipt", "another reason"),
        Fault::new(Reason::QueueNotFound, "no such queue"),
    ] {
        assert_eq!(extras(fault.clone(), "popreceipt=x"), [], "{fault:?}");
    }
    let own = RestError::from(invalid("pop_receipt")).with("Reason", "own");
    let params = Params::parse("popreceipt=x").expect("a query");
    assert_eq!(explain(own, &params).extras, [("Reason", "own".to_owned())]);
}
