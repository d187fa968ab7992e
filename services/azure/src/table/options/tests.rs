//! Options of queries, and continuation tokens.

use proptest::prelude::*;

use super::*;

fn read(query: &str) -> Result<Options, Reason> {
    Options::read(&Params::parse(query).expect("a query")).map_err(|fault| fault.reason)
}

#[test]
fn top_is_a_number_up_to_a_thousand() {
    for (query, top) in [("", None), ("$top=0", Some(0)), ("%24top=1000", Some(1000))] {
        assert_eq!(read(query).expect("fine").top, top, "{query}");
    }
    for query in ["$top=1001", "$top=-1", "$top=%2B1", "$top=x", "$top=", "$top=1.0"] {
        assert_eq!(read(query), Err(Reason::InvalidInput), "{query}");
    }
}

#[test]
fn unsupported_options_are_never_ignored() {
    let check = |query: &str| check(&Params::parse(query).expect("a query"));
    for name in ["orderby", "skip", "count", "inlinecount", "expand", "apply", "ORDERBY"] {
        let rejected = check(&format!("$filter=a&${name}=x")).expect_err(name);
        assert_eq!(rejected.reason, Reason::NotImplemented);
    }
    assert_eq!(check("$Filter=a&$select=b&%24top=1&$format=json&timeout=3&custom=4"), Ok(()));
    let options = read("$filter=a+eq+1&$format=json&timeout=3&custom=4").expect("fine");
    assert_eq!(options.filter, "a eq 1");
}

#[test]
fn a_continuation_token_survives_a_header() {
    let token = |query: &str| {
        let params = Params::parse(query).expect("a query");
        page_token_of(&params, "NextPartitionKey").map_err(|fault| fault.reason)
    };
    assert_eq!(continuation_token("aB_-"), "1!4!aB_-");
    assert_eq!(token("NextPartitionKey=1!4!aB_-"), Ok("aB_-".to_owned()));
    assert_eq!(token("nextpartitionkey=1%214%21aB_-"), Ok("aB_-".to_owned()));
    assert_eq!(token("NextPartitionKey=&NextRowKey="), Ok(String::new()));
    for query in ["x", "1!3!aB_-", "2!4!aB_-", "1!4", "1!+4!aB_-", "!"] {
        let rejected = Err(Reason::InvalidQueryParameterValue);
        assert_eq!(token(&format!("NextPartitionKey={query}").replace('+', "%2B")), rejected);
    }
}

#[test]
fn an_empty_token_and_that_of_another_header_name_no_page() {
    let token = continuation_token("");
    assert_eq!(token, "1!0!");
    let params = Params::parse(&format!("NextTableName={token}")).expect("a query");
    assert_eq!(page_token_of(&params, "NextTableName").as_deref(), Ok(""));
    assert_eq!(page_token_of(&params, "NextPartitionKey").as_deref(), Ok(""), "another name");
}

#[test]
fn the_error_of_an_option_names_it_and_its_value() {
    let error = |query: &str| {
        let params = Params::parse(query).expect("a query");
        check(&params).and(Options::read(&params).map(drop)).expect_err(query)
    };
    let top = error("$top=many");
    assert_eq!(top.violations[0].field, "$top");
    assert!(top.message.contains("`many`"), "{}", top.message);
    assert_eq!(error("$OrderBy=a").violations[0].field, "$OrderBy");
    let long = error(&format!("$top={}", "9".repeat(10_000)));
    assert!(long.message.len() < 200, "a bounded part of the value");
}

proptest! {
    #[test]
    fn a_page_token_survives_a_header_and_an_address(page_token in "[A-Za-z0-9_!-]{0,40}") {
        let token = continuation_token(&page_token);
        prop_assert!(http::HeaderValue::from_str(&token).is_ok());
        let params = Params::parse(&format!("NextPartitionKey={token}")).expect("a query");
        prop_assert_eq!(page_token_of(&params, "NextPartitionKey"), Ok(page_token));
    }

    #[test]
    fn a_token_that_was_cut_or_extended_is_rejected(
        page_token in "[A-Za-z0-9_-]{1,20}",
        extra in "[A-Za-z0-9]{1,3}",
    ) {
        let token = continuation_token(&page_token);
        for wrong in [&token[..token.len() - 1], &format!("{token}{extra}")] {
            let params = Params::parse(&format!("NextPartitionKey={wrong}")).expect("a query");
            let read = page_token_of(&params, "NextPartitionKey").map_err(|fault| fault.reason);
            prop_assert_eq!(read, Err(Reason::InvalidQueryParameterValue));
        }
    }
}
