//! Sentences of codes, and the texts of ours that replace them.

use trestle_model::fault::Reason;
use trestle_rpc::status::meaning;

use super::*;

#[test]
fn every_reason_that_clients_of_azure_compare_has_its_sentence() {
    for (reason, start) in [
        (Reason::TableNotFound, "The table specified does not exist."),
        (Reason::TableAlreadyExists, "The table specified already exists."),
        (Reason::ResourceNotFound, "The specified resource does not exist."),
        (Reason::EntityAlreadyExists, "The specified entity already exists."),
        (Reason::InvalidResourceName, "The specifed resource name contains invalid characters."),
        (Reason::UpdateConditionNotSatisfied, "The update condition specified in the request"),
        (Reason::CommandsInBatchActOnDifferentPartitions, "All commands in a batch must operate"),
        (Reason::InvalidDuplicateRow, "The batch request contains multiple changes with same row"),
        (Reason::PropertiesNeedValue, "The values are not specified for all properties"),
        (Reason::TooManyProperties, "The entity contains more properties than allowed."),
        (Reason::QueueNotFound, "The specified queue does not exist."),
        (Reason::MessageNotFound, "The specified message does not exist."),
        (Reason::InvalidMarker, "The specified marker is invalid."),
        (Reason::AuthenticationFailed, "Server failed to authenticate the request. Make sure"),
        (Reason::NoAuthenticationInformation, "Server failed to authenticate the request. Please"),
        (Reason::AccountIsDisabled, "The specified account is disabled."),
        (Reason::ServerBusy, "The server is busy."),
    ] {
        let sentence = of(meaning(reason).azure_code, None).unwrap_or_default();
        assert!(sentence.starts_with(start), "{reason:?}: {sentence:?}");
    }
}

#[test]
fn the_field_of_an_error_selects_its_sentence() {
    let etag = of("InvalidInput", Some("operations[1].update.if_match")).expect("a sentence");
    assert!(etag.starts_with("The etag value specified in one of the request headers"), "{etag}");
    for field in [None, Some("if_match.entity"), Some("filter")] {
        assert_eq!(of("InvalidInput", field), Some("One of the request inputs is not valid."));
    }
    let name = of("OutOfRangeInput", Some("queue.name")).expect("a sentence");
    assert!(name.starts_with("The specified resource name length"), "{name}");
    let other = of("OutOfRangeInput", Some("queue.metadata"));
    assert_eq!(other, Some("One of the request inputs is out of range."));
}

#[test]
fn a_code_without_a_sentence_has_none() {
    for code in ["", "Unheard", "tablenotfound", "TableNotFound "] {
        assert_eq!(of(code, None), None, "{code:?}");
    }
}

#[test]
fn only_whole_sentences_of_azure_replace_that_of_the_code() {
    assert!(is_one("Syntax error at position 7 in 'aaa bbb ccc'."));
    assert!(is_one("A required CORS header is not present. A preflight needs the header Origin"));
    assert!(is_one("The batch request operation exceeds the maximum 100 changes per change set."));
    for text in ["syntax error at position 7", "filter: Syntax error at position 7", ""] {
        assert!(!is_one(text), "{text:?}");
    }
}

#[test]
fn a_text_that_begins_with_the_sentence_adds_only_its_details() {
    let sentence = "The table specified does not exist.";
    for (text, expected) in [
        ("the table specified does not exist: table=`nope`", "\ntable=`nope`"),
        ("The table specified does not exist.\ntable=`nope`", "\ntable=`nope`"),
        ("the table specified does not exist, or was deleted", "\nor was deleted"),
        ("the table specified does not exist", ""),
        ("The table specified does not exist.", ""),
        ("", ""),
    ] {
        assert_eq!(with_details(sentence, text), format!("{sentence}{expected}"), "{text}");
    }
}

#[test]
fn a_text_with_another_beginning_is_added_whole() {
    let sentence = "The table specified does not exist.";
    for text in [
        "no such table: table=`nope`",
        "the table specified does not exist any more",
        "table: the table specified does not exist",
        "the table specified does not existé",
        "the table specified does not exis\u{15f}",
        "the table",
    ] {
        assert_eq!(with_details(sentence, text), format!("{sentence}\n{text}"));
    }
}

#[test]
fn a_text_that_repeats_the_sentence_adds_only_its_values() {
    for (reason, text, expected) in [
        (Reason::TableAlreadyExists, "table exists: TableName=`a`", "TableName=`a`"),
        (
            Reason::AuthenticationFailed,
            "the server failed to authenticate the request: the policy has expired",
            "the policy has expired",
        ),
        (Reason::UnsupportedHttpVerb, "the resource does not support this verb", ""),
        (Reason::AccountIsDisabled, "the account is disabled: account=`a`", "account=`a`"),
        (Reason::DuplicatePropertiesSpecified, "property is specified twice: name=`x`", "name=`x`"),
        (Reason::DuplicatePropertiesSpecified, "member is specified twice", ""),
        (Reason::TooManyProperties, "entity has too many properties: count=`253`", "count=`253`"),
        (Reason::EntityTooLarge, "entity is larger than 1 MiB: bytes=`9`", "bytes=`9`"),
        (Reason::InvalidDuplicateRow, "an entity can appear only once: RowKey=`r`", "RowKey=`r`"),
    ] {
        assert_eq!(addition(meaning(reason).azure_code, text), expected);
    }
}

#[test]
fn a_text_with_another_fact_is_kept_whole() {
    for (reason, text) in [
        (Reason::TableNotFound, "table exists: TableName=`a`"),
        (Reason::TableAlreadyExists, "table exists in another account"),
        (Reason::TableAlreadyExists, "the table exists: TableName=`a`"),
        (Reason::CommandsInBatchActOnDifferentPartitions, "all operations must be on one table"),
        (Reason::PropertyNameInvalid, "property name is reserved: name=`RowKey`"),
        (Reason::TooManyProperties, ""),
    ] {
        assert_eq!(addition(meaning(reason).azure_code, text), text);
    }
}
