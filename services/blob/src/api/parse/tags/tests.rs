//! Tests of the tags of a request, of conditions on tags, and of requests to find blobs.

use super::*;
use crate::api::parse::tests::{assert_rejected, parsed};

fn tags(pairs: &[(&str, &str)]) -> Result<Tags, Fault> {
    let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let pairs = pairs.collect::<HashMap<_, _>>();
    parsed(|parser| parser.tags(pairs, "tags"))
}

fn find(filter: &str, container: &str, page_size: Option<i32>) -> Result<FindBlobs, Fault> {
    find_blobs(proto::FindBlobsRequest {
        filter: filter.to_owned(),
        container: container.to_owned(),
        page_size,
        page_token: "t".to_owned(),
    })
}

#[test]
fn tags_are_sorted_by_key_and_keys_differ_in_case() {
    let found = tags(&[("b", "1"), ("a", ""), ("B", "2")]).expect("valid");
    let expected = [("B", "2"), ("a", ""), ("b", "1")];
    assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    assert_eq!(tags(&[]).ok(), Some(Tags::new()));
}

#[test]
fn a_blob_has_at_most_10_tags() {
    let keys: Vec<_> = (0..11).map(|number| format!("k{number}")).collect();
    let pairs: Vec<_> = keys.iter().map(|key| (key.as_str(), "v")).collect();
    assert_eq!(tags(&pairs[..10]).map(|it| it.len()).ok(), Some(10));
    assert_rejected(tags(&pairs), &[(Reason::TagsTooLarge, "tags")]);
}

#[test]
fn keys_have_1_to_128_characters_and_values_at_most_256() {
    let (key, value) = ("k".repeat(128), "v".repeat(256));
    assert!(tags(&[(&key, &value)]).is_ok());
    assert_rejected(tags(&[("", "v")]), &[(Reason::EmptyTagName, "tags")]);
    let (long_key, long_value) = ("k".repeat(129), "v".repeat(257));
    let too_large = (Reason::TagsTooLarge, "tags");
    assert_rejected(tags(&[(&long_key, "")]), &[too_large]);
    assert_rejected(tags(&[("k", &long_value)]), &[too_large]);
    assert_rejected(tags(&[(&long_key, &long_value)]), &[too_large, too_large]);
}

#[test]
fn keys_and_values_are_of_the_characters_that_azure_permits() {
    let allowed = "azAZ09 +-./:=_";
    let found = tags(&[(allowed, allowed)]).expect("valid");
    assert_eq!(found, [(allowed.to_owned(), allowed.to_owned())]);
    for character in ["'", "\"", "&", "<", "$", "@", "%", ",", "\n", "\u{0}", "é", "日"] {
        let rejected = [(Reason::InvalidTags, "tags")];
        assert_rejected(tags(&[(character, "")]), &rejected);
        assert_rejected(tags(&[("k", character)]), &rejected);
    }
}

#[test]
fn a_condition_on_tags_keeps_its_text_and_may_be_absent() {
    let condition =
        |text: &str| parsed(|parser| parser.tag_condition(text.to_owned(), "conditions.if_tags"));
    let text = "a = '1' OR a = '2'";
    let found = condition(text).expect("valid").expect("stated");
    assert_eq!(found.text, text);
    assert_eq!(Ok(found.condition), TagCondition::parse(text));
    assert!(condition("").expect("absent").is_none());
    let expected = [(Reason::InvalidHeaderValue, "conditions.if_tags")];
    for text in [" ", "a", "a = 1", "@container = 'logs' AND a = '1'"] {
        assert_rejected(condition(text), &expected);
    }
}

#[test]
fn the_container_of_a_request_precedes_that_of_its_filter() {
    let found = |filter, container| {
        let found = find(filter, container, None).expect("valid");
        found.container.map(|it| it.as_str().to_owned())
    };
    assert_eq!(found("a = '1'", ""), None);
    assert_eq!(found("a = '1'", "logs").as_deref(), Some("logs"));
    assert_eq!(found("@container = 'other' AND a = '1'", "").as_deref(), Some("other"));
    assert_eq!(found("@container = 'other' AND a = '1'", "logs").as_deref(), Some("logs"));
}

#[test]
fn a_container_that_is_no_name_is_reported_where_it_is_stated() {
    let rejected = |field| [(Reason::InvalidResourceName, field)];
    assert_rejected(find("a = '1'", "UPPER", None), &rejected("container"));
    assert_rejected(find("@container = 'UPPER' AND a = '1'", "", None), &rejected("filter"));
}

#[test]
fn a_page_of_found_blobs_has_1_to_5000() {
    for (page_size, expected) in [(None, 5000), (Some(1), 1), (Some(5001), 5000)] {
        let found = find("a = '1'", "", page_size).expect("valid");
        assert_eq!((found.page_size, found.page_token.as_str()), (expected, "t"));
    }
    for page_size in [0, -1, i32::MIN] {
        let expected = [(Reason::OutOfRangeQueryParameterValue, "page_size")];
        assert_rejected(find("a = '1'", "", Some(page_size)), &expected);
    }
    for filter in ["", "a <> '1'", "@container = 'logs'"] {
        let expected = [(Reason::InvalidQueryParameterValue, "filter")];
        assert_rejected(find(filter, "", None), &expected);
    }
}
