use std::sync::Arc;

use trestle_identity::caller::{AccountGrant, Authority, Caller, Letters};
use trestle_model::name::AccountName;

use super::*;
use crate::authorize::BlobAccess;

fn etags(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn texts_that_are_no_etags_are_each_rejected_with_field_and_value() {
    let mut parser = RequestParser::default();
    let if_match = etags(&["*", "\"0x8DE2A1B2C3D4E5F\"", "other", "o\"ther", ""]);
    let if_none_match = etags(&["W/\"0x8DE2A1B2C3D4E5F\"", "\""]);
    let conditions = proto::BlobConditions { if_match, if_none_match, ..Default::default() };
    let parsed = parser.blob_conditions(Some(conditions));

    let fault = parser.finish(Some(parsed)).expect_err("it is rejected");

    let violations = fault.violations.iter();
    let found: Vec<(&str, &str)> =
        violations.map(|it| (it.field.as_str(), it.description.as_str())).collect();
    let rule = |value| format!("must be `*` or an etag that a response carried: value=`{value}`");
    let rules = [rule("o\"ther"), rule(""), rule("\"")];
    let [other, empty, open] = rules.each_ref().map(String::as_str);
    let (if_match, if_none_match) = ("conditions.if_match", "conditions.if_none_match");
    assert_eq!(found, [(if_match, other), (if_match, empty), (if_none_match, open)]);
    assert_eq!(fault.reason, Reason::InvalidHeaderValue);
}

#[test]
fn the_etags_of_another_server_may_have_any_form() {
    let source = |if_none_match: &[&str], is_elsewhere| {
        let (if_match, if_none_match) = (etags(&["\"abc\""]), etags(if_none_match));
        let conditions = proto::BlobConditions { if_match, if_none_match, ..Default::default() };
        let mut parser = RequestParser::default();
        let parsed = parser.source_conditions(Some(conditions), is_elsewhere);
        parser.finish(Some(parsed)).map_err(|fault| fault.violations[0].clone())
    };

    assert_eq!(source(&["W/\"1\""], true), Ok((Conditions::default(), None)));
    let (own, _) = source(&[], false).expect("an etag that no blob has");
    assert_ne!(own, Conditions::default());
    let any = source(&["*"], true).expect_err("a source exists");
    assert_eq!(any.reason, Reason::UnsatisfiableCondition);
    let many = source(&["\"1\""; 65], true).expect_err("they are too many");
    assert_eq!(many.field, "source_conditions.if_none_match");
}

#[test]
fn what_a_condition_is_compared_with_is_for_those_who_may_read_or_write() {
    let letters = |text| Letters::parse(text).expect("letters");
    for (permissions, need, is_shown) in [
        ("r", BlobNeed::Read, true),
        ("w", BlobNeed::Write, true),
        ("d", BlobNeed::Delete, false),
        ("a", BlobNeed::Append, false),
        ("t", BlobNeed::Tags, false),
        ("c", BlobNeed::Create, false),
    ] {
        let authority = Authority::Account(AccountGrant {
            services: letters("b"),
            resource_types: letters("o"),
            permissions: letters(permissions),
        });
        let caller = Arc::new(Caller::new(AccountName::development(), authority));
        let access = BlobAccess::new(caller, None, need).expect("permitted");
        let conditions = Some(proto::BlobConditions::default());
        let (parsed, _) = RequestParser::of(&access).blob_conditions(conditions);
        assert_eq!(parsed.shows_current, is_shown, "{permissions}");
    }
}

#[test]
fn the_times_for_another_server_are_those_that_http_has() {
    let header = |seconds| {
        let time = Some(Timestamp { seconds, nanos: 999_999_999 });
        let conditions = proto::BlobConditions { if_modified_since: time, ..Default::default() };
        let mut parser = RequestParser::default();
        let headers = parser.condition_headers(Some(&conditions));
        let fields: Vec<_> = match parser.finish(Some(())) {
            Ok(()) => Vec::new(),
            Err(fault) => fault.violations.iter().map(|it| it.field.clone()).collect(),
        };
        let text = headers.get(header::IF_MODIFIED_SINCE).map(|it| it.to_str().expect("text"));
        (text.map(str::to_owned), fields)
    };
    let valid = |text: &str| (Some(text.to_owned()), Vec::new());
    let rejected = || (None, vec!["source_conditions.if_modified_since".to_owned()]);

    assert_eq!(header(0), valid("Thu, 01 Jan 1970 00:00:00 GMT"));
    assert_eq!(header(253_402_300_799), valid("Fri, 31 Dec 9999 23:59:59 GMT"));
    for seconds in [-1, -62_135_596_800, 253_402_300_800, i64::MIN, i64::MAX] {
        assert_eq!(header(seconds), rejected(), "{seconds}");
    }
}

#[test]
fn times_that_are_none_are_rejected_with_their_field() {
    for (seconds, nanos) in [
        (0, i32::MIN),
        (0, -1),
        (0, 1_000_000_000),
        (0, i32::MAX),
        (i64::MIN, 0),
        (i64::MAX, 0),
        (-62_135_596_801, 0),
        (253_402_300_800, 0),
    ] {
        let time = Some(Timestamp { seconds, nanos });
        let conditions = proto::BlobConditions { if_modified_since: time, ..Default::default() };
        let mut parser = RequestParser::default();
        let parsed = parser.blob_conditions(Some(conditions));
        let fault = parser.finish(Some(parsed)).expect_err("it is rejected");
        assert_eq!(fault.violations[0].field, "conditions.if_modified_since");
    }
}
