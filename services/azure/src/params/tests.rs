//! Query strings, and the parameters in them.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

use super::*;

#[test]
fn parameters_are_decoded_and_found_in_any_case() {
    let params = Params::parse("Comp=list&a=b+c%2Bd&empty&x=%E2%82%AC&&a=2").expect("a query");

    assert_eq!(params.get("comp"), Some("list"));
    assert_eq!(params.get("a"), Some("b c+d"));
    assert_eq!(params.get("empty"), Some(""));
    assert_eq!(params.get("x"), Some("€"));
    assert_eq!(params.get("y"), None);
    assert!(params.is("COMP", "LIST") && !params.is("comp", "acl"));
    assert_eq!(params.iter().count(), 5);
}

#[test]
fn an_invalid_value_is_not_repeated_in_the_error() {
    let fault = Params::parse("se=1&sig=hunter2%FF").expect_err("rejected").to_string();

    assert!(fault.contains("`sig`") && !fault.contains("hunter2"), "{fault}");
}

#[test]
fn rejects_invalid_utf8_and_too_many_parameters() {
    for query in ["a=%FF".to_owned(), "a=1&".repeat(PARAMS_MAX + 1)] {
        let fault = Params::parse(&query).expect_err("rejected");
        assert_eq!(fault.reason, Reason::InvalidUri, "{query}");
    }
}

#[test]
fn the_first_parameter_of_a_name_applies_and_both_are_counted() {
    let params = Params::parse("comp=acl&COMP=list&Comp=").expect("a query");
    assert_eq!(params.get("comp"), Some("acl"));
    assert_eq!(params.iter().count(), 3);
}

#[test]
fn the_bound_counts_parameters_and_not_separators() {
    let most = vec!["a=1"; PARAMS_MAX].join("&&");
    assert_eq!(Params::parse(&most).expect("at the bound").iter().count(), PARAMS_MAX);
    assert!(Params::parse(&format!("{most}&a")).is_err());
}

#[test]
fn only_the_first_equals_sign_separates_and_a_stray_percent_sign_is_text() {
    let params = Params::parse("sig=ab==&%24top=1&=nameless&x=100%&y=%zz").expect("a query");
    assert_eq!(params.get("sig"), Some("ab=="));
    assert_eq!(params.get("$top"), Some("1"));
    assert_eq!(params.get(""), Some("nameless"));
    assert_eq!(params.get("x"), Some("100%"));
    assert_eq!(params.get("y"), Some("%zz"));
}

proptest! {
    #[test]
    fn encoded_parameters_are_decoded_in_their_order(
        pairs in proptest::collection::vec(("[a-z]{1,4}[&=+%é ]?", "\\PC{0,10}"), 0..10),
    ) {
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let encoded = pairs.iter().map(|(name, value)| {
            // A space has two forms.
            format!("{}={}", encode(name), encode(value).replace("%20", "+"))
        });
        let query = encoded.collect::<Vec<_>>().join("&");
        let params = Params::parse(&query).expect("a query");
        let found: Vec<_> = params.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        prop_assert_eq!(found, pairs);
    }
}
